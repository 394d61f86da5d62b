import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { seededRandom } from '../../src/lib/random.ts';
import { VIETQR, VIETQR_BOX } from '../gateway/dialect/support.ts';
import { FirmwareBox } from '../support/firmware-box.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { type GatewayAt, START_MS, startConfigured } from '../support/processes.ts';
import { ACCOUNT, getJson, PARTNER, Shop } from './walk.ts';

const KILLS = 3;
const KILL_WITHIN_MS = 25;

interface PaymentView {
  content: string;
  boxes: { unconfirmed: string | null }[];
}

it('VQD-6 a gateway that is killed at any moment of a payment has its box say it once at most, and tells which may be lost', async () => {
  const [mqttPort, httpPort] = [await freePort(), await freePort()];
  const partner = await startPartnerServer();
  const config = {
    http: { port: httpPort },
    mqtt: { embedded: { port: mqttPort } },
    dataDir: 'gateway',
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: partner.url } }],
    accounts: [ACCOUNT],
    boxes: [VIETQR_BOX],
    vietqrBoxes: VIETQR,
  };
  const random = seededRandom(16);
  let gateway = await startConfigured<GatewayAt>('gateway', config, await temporaryFolder());
  const mqttUrl = `mqtt://127.0.0.1:${mqttPort}`;
  const box = new FirmwareBox({ ...VIETQR, mqttUrl, macAddr: VIETQR_BOX.macAddr, reconnectMs: 50 });
  const mock = (path: string) => getJson(`${new URL(gateway.at.baseUrl).origin}/_mock${path}`);
  const online = () =>
    eventually('online', async () => (await mock(`/boxes/${VIETQR_BOX.terminalCode}`)).online === true, START_MS);
  const shopAtHand = async () => {
    const shop = new Shop(gateway.at.baseUrl);
    await shop.login();
    return shop;
  };
  const contents = Array.from({ length: KILLS }, (_, at) => `KILL${at}`);
  for (const content of contents) {
    await online();
    const shop = await shopAtHand();
    const paid = shop.pay({ amount: 50_000, content }).catch(() => undefined);
    // From before the payment is stored to after its notice.
    await delay(random.fraction() * KILL_WITHIN_MS);
    await gateway.running.stop('SIGKILL');
    await paid;
    gateway = await gateway.again();
  }
  await online();
  await (await shopAtHand()).pay({ amount: 50_000, content: 'END' });
  await eventually('the last payment', () => box.spoken.some((it) => it.includes('END')));
  const payments = (await mock('/payments')) as unknown as PaymentView[];
  for (const content of contents) {
    const said = box.spoken.filter((it) => it.includes(content)).length;
    expect([content, said <= 1]).toEqual([content, true]);
    const notices = payments.filter((it) => it.content === content).flatMap((it) => it.boxes);
    for (const { unconfirmed } of notices) expect(['sent', 'maybe sent']).toContain(unconfirmed);
    if (notices.length === 0) expect(said).toBe(0);
  }
});
