import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { type AgentAt, type GatewayAt, paybox, run, START_MS, startConfigured } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { ACCOUNT, getJson, PARTNER, Shop } from './walk.ts';

/** All of it is a sample, as a service would hand it out. */
const SERVICE = {
  checkSumSalt: 'sample-check-sum-salt',
  boxIdSalt: 'sample-box-id-salt',
  login: { username: 'vietqr-boxes', password: 'sample-password-of-all-boxes' },
};
const NAMES = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const MAC = '02:00:5E:10:00:01';
const { missing, note } = without(PROGRAMS.mosquitto);

async function qrOnScreen(boxUrl: string): Promise<string> {
  const png = new Uint8Array(await (await fetch(`${boxUrl}/screen.png`)).arrayBuffer());
  const [one, other] = decodeQrTwice(png);
  expect(other).toBe(one);
  return one;
}

/** Starts a gateway and a box that speak the dialect to each other, and walks from the enrolment to the payment. */
async function walk(mqtt: object, brokerUrl: string): Promise<void> {
  const folder = await temporaryFolder();
  const partner = await startPartnerServer();
  const gatewayConfig = {
    http: { port: await freePort() },
    mqtt,
    dataDir: 'gateway',
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: partner.url } }],
    accounts: [ACCOUNT],
    boxes: [{ ...NAMES, dialect: 'vietqr', macAddr: MAC, account: ACCOUNT.bankAccount }],
    vietqrBoxes: SERVICE,
  };
  const { checkSumSalt, boxIdSalt, login } = SERVICE;
  const agentConfig = {
    box: NAMES,
    link: { transport: 'vietqr', url: brokerUrl, macAddr: MAC, checkSumSalt, boxIdSalt, ...login },
    displays: [{ driver: 'png', path: 'screen.png' }],
    http: { port: await freePort() },
    dataDir: 'box',
  };
  const gateway = await startConfigured<GatewayAt>('gateway', gatewayConfig, folder);
  const agent = await startConfigured<AgentAt>('agent', agentConfig, folder);
  const { boxUrl } = agent.at;
  const status = () => getJson(`${boxUrl}/status`);
  const isIn = (state: string) => async () => (await status()).state === state;
  await eventually('idle', isIn('idle')).catch((error) => {
    throw new Error(`${error}\n${gateway.running.output()}\n${agent.running.output()}`);
  });
  // The certificate may be on the screen until the next picture is drawn.
  const fixed = await eventually('the static QR', async () => {
    const { display } = await status();
    const decoded = Object(display).qr === null ? undefined : decodeVietQr(await qrOnScreen(boxUrl).catch(() => ''));
    return decoded?.ok === true ? decoded.value : undefined;
  });
  expect(fixed).toMatchObject({ account: ACCOUNT.bankAccount, amount: undefined });

  const shop = new Shop(gateway.at.baseUrl);
  await shop.login();
  const qrCode = await pushed(shop, 'DH001', 50_000);
  await eventually('the QR', isIn('showing'));
  expect(await eventually('it is drawn', async () => (await qrOnScreen(boxUrl).catch(() => '')) === qrCode)).toBe(true);
  expect((await shop.pay({ content: 'DH001', amount: 50_000 })).body.status).toBe('SUCCESS');
  await eventually('paid', isIn('paid'));
  expect((await status()).lastPayment).toMatchObject({
    amount: 50_000,
    orderId: '',
    content: expect.stringContaining('DH001'),
  });
  await eventually('the callback', () => partner.received.length === 1);

  await gateway.running.stop('SIGKILL');
  if ('embedded' in mqtt) await eventually('offline', async () => (await status()).online === false);
  const { running: again } = await gateway.again();
  await eventually('online', async () => (await status()).online === true, START_MS);
  const tries: unknown[] = [];
  const second = await eventually('the next QR', async () => {
    try {
      await shop.login();
      return await pushed(shop, 'DH002', 60_000);
    } catch (error) {
      tries.push(error);
      return undefined;
    }
  }).catch((error) => {
    throw new Error(`${error}\n${tries.at(-1)}\n${again.output()}\n${agent.running.output()}`);
  });
  await eventually('it is drawn too', async () => (await qrOnScreen(boxUrl).catch(() => '')) === second);
  const doctor = paybox('doctor', '--config', join(folder, 'agent.yaml'), '--json');
  const findings = await eventually('the findings', () => /^\[.*\]$/m.exec(doctor.output())?.[0]);
  expect(findings).toMatch(/"check":"login","result":"ok","found":"[^"]*knows this MAC address as VVB000001"/);
  for (const secret of [checkSumSalt, boxIdSalt, login.password]) {
    for (const text of [agent.running.output(), findings, JSON.stringify(await status())]) {
      expect(text).not.toContain(secret);
    }
  }
  expect(await agent.running.stop('SIGTERM')).toBe(0);
  expect(await again.stop('SIGTERM')).toBe(0);
}

async function pushed(shop: Shop, orderId: string, amount: number): Promise<string> {
  const { body } = await shop.generate({ amount, content: orderId, orderId });
  expect((await shop.sendQr(body)).body).toEqual({ status: 'SUCCESS', message: '' });
  return String(body.qrCode);
}

describe('our box and our gateway in the dialect vietqr', () => {
  it('VQD-3 DIA-4 DIA-5 DIA-6 our box and our gateway speak the dialect at the embedded broker', {
    timeout: 180_000,
  }, async () => {
    const port = await freePort();
    await walk({ embedded: { port } }, `mqtt://127.0.0.1:${port}`);
  });

  it.skipIf(missing)(
    `VQD-3 DIA-4 DIA-5 DIA-6 our box and our gateway speak the dialect at Mosquitto${note}`,
    { timeout: 180_000 },
    async () => {
      const folder = await temporaryFolder();
      const port = await freePort();
      const own = { username: 'gateway', password: 'sample-gateway-secret' };
      const logins = { [own.username]: own.password, [SERVICE.login.username]: SERVICE.login.password };
      const file = await writeMosquittoConfig(folder, port, logins);
      run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', file]);
      const url = `mqtt://127.0.0.1:${port}`;
      await walk({ url, ...own }, url);
    },
  );
});
