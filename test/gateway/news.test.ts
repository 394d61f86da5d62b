import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import type { GatewayAddress, Transport } from '../../src/device/agent/contract.ts';
import { LightAgent, lightSetupOf } from '../../src/device/agent/light-agent.ts';
import { httpTransport } from '../../src/device/agent/transports/http.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import type { BoxTransport } from '../../src/device/agent/transports/registry.ts';
import type { Scene } from '../../src/device/scene.ts';
import { PaymentNews } from '../../src/gateway/boxes/news.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { connectFakeBox, type FakeBox } from '../support/fake-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { BOX1, BOX2, partnerServer, processed, type TestGateway, type TestOptions, testGateway } from './harness.ts';
import { storedOf, worldOf } from './stage-records.ts';

const MINUTE_MS = 60_000;
/** More than a gateway sends a box at once. */
const OLD_PAYMENTS = 102;

const payingGateway = async (options: TestOptions = {}) =>
  testGateway({ callback: { url: (await partnerServer(processed)).url }, ...options });
const pay = async (gateway: TestGateway) => String((await gateway.testCallback()).body.message);
const report = (box: FakeBox, transactionId: string) =>
  box.send({ type: 'paid', transactionId, orderId: '', amount: 50_000, recorded: true }, transactionId);
const isOnline = async (gateway: TestGateway) => {
  const boxes = await gateway.mock<{ terminalCode: string; online: boolean }[]>('/boxes');
  return boxes.find((it) => it.terminalCode === BOX1.terminalCode)?.online;
};
/** What the list of payments says of box 1, the newest first. */
const listed = async (gateway: TestGateway) => {
  const payments =
    await gateway.mock<{ boxes: { terminalCode: string; late: boolean; reportedAt: unknown }[] }[]>(
      '/payments?limit=500',
    );
  return payments.map(({ boxes }) => {
    const box = boxes.find((it) => it.terminalCode === BOX1.terminalCode);
    return [box?.late, typeof box?.reportedAt];
  });
};

/** A light box that says hello for the first time. */
async function lightBox<Options extends GatewayAddress>(
  transport: Transport<Options>,
  link: { transport: string; url: string | undefined },
) {
  const scenes: Scene[] = [];
  const { log, lines } = keptLog(systemClock);
  const opener = (await transport.openLight?.(systemClock)) ?? expect.fail('no light boxes');
  const { terminalCode, serialNumber, secret } = BOX1;
  const box = { terminalCode, serialNumber, secret };
  const config = parseAgentConfig({ box, link, displays: [{ driver: 'browser' }], dataDir: '.' }, 'test');
  const setup = lightSetupOf(config, transport as unknown as BoxTransport, opener as never);
  const deps = { clock: systemClock, random: systemRandom, log, onScene: (it: Scene) => void scenes.push(it) };
  const agent = new LightAgent(setup, deps);
  onTestFinished(async () => {
    await agent.close();
    opener.close();
  });
  return { agent, scenes, lines };
}

describe.each(['mqtt', 'http'] as const)('over %s', (transport) => {
  it('MSG-14 a new box lists what its account got before, and shows and says nothing; the partner is told of all', async () => {
    const partner = await partnerServer(processed);
    const gateway = await testGateway({ callback: { url: partner.url } });
    for (let n = 0; n < OLD_PAYMENTS; n += 1) await pay(gateway);
    const kind = transport === 'mqtt' ? mqttTransport : httpTransport;
    const url = transport === 'mqtt' ? gateway.mqttUrl : gateway.origin;
    const box = await lightBox<GatewayAddress>(kind as unknown as Transport<GatewayAddress>, { transport, url });
    await eventually('all reports', () => gateway.logged('payment-listed').length === OLD_PAYMENTS);
    const news = await pay(gateway);
    await eventually('the new payment', () => box.agent.announcements > 0);
    const paid = box.scenes.filter((it) => it.kind === 'paid').map((it) => it.transactionId);
    expect([box.agent.announcements, new Set(paid)]).toEqual([1, new Set([news])]);
    await eventually('the report', () => gateway.logged('payment-announced').length === 1);
    await eventually('all callbacks', () => partner.calls.length === OLD_PAYMENTS + 1);
    const old = Array.from({ length: OLD_PAYMENTS }, () => [true, 'string']);
    expect(await listed(gateway)).toEqual([[false, 'string'], ...old]);
  });

  it('MSG-14 a box whose first hello was in an earlier run of the gateway plays what came while it was away', async () => {
    const dataDir = await temporaryFolder();
    const first = await payingGateway({ dataDir });
    const old = await pay(first);
    const box = await connectFakeBox({ gateway: first, identity: BOX1, transport });
    expect(await box.next('payment')).toMatchObject({ transactionId: old, late: true });
    await report(box, old);
    await box.next('ack');
    await first.close();
    const second = await payingGateway({ dataDir });
    const news = await pay(second);
    const back = await connectFakeBox({ gateway: second, identity: BOX1, transport });
    expect(await back.next('payment')).toMatchObject({ transactionId: news, late: false, repeated: false });
    const other = await connectFakeBox({ gateway: second, identity: BOX2, transport });
    await eventually('both payments', () => other.of('payment').length === 2);
    expect(other.of('payment').map((it) => it.late)).toEqual([true, true]);
  });
});

describe('a box that was away', () => {
  it.each([
    [60, 6, true],
    [60, 4, false],
    [4, 4, false],
  ])('MSG-14 for %i minutes gets a test payment of %i minutes ago, late: %s', async (awayMinutes, ageMinutes, late) => {
    const clock = new VirtualClock();
    const gateway = await payingGateway({ clock });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    await box.close();
    await eventually('offline', async () => !(await isOnline(gateway)));
    await clock.advance((awayMinutes - ageMinutes) * MINUTE_MS);
    const transactionId = await pay(gateway);
    await clock.advance(ageMinutes * MINUTE_MS);
    const back = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect(await back.next('payment')).toMatchObject({ transactionId, late });
    expect(await listed(gateway)).toEqual([[late, 'object']]);
  });

  it('MSG-14 a box that lost its journal shows what is recent and was not reported, and lists what is old', async () => {
    const clock = new VirtualClock();
    const gateway = await payingGateway({ clock });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const transactionId = await pay(gateway);
    await box.next('payment');
    await box.close();
    await eventually('offline', async () => !(await isOnline(gateway)));
    const anew = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect(await anew.next('payment')).toMatchObject({ transactionId, late: false, repeated: true });
    await anew.close();
    await eventually('offline', async () => !(await isOnline(gateway)));
    await clock.advance(6 * MINUTE_MS);
    const later = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    expect(await later.next('payment')).toMatchObject({ transactionId, late: true, repeated: true });
  });
});

it('MSG-14 another device under the code of a box has a first hello of its own', async () => {
  const dataDir = await temporaryFolder();
  const first = await payingGateway({ dataDir });
  await connectFakeBox({ gateway: first, identity: BOX1, transport: 'mqtt' });
  await first.close();
  const swapped = { ...BOX1, serialNumber: 'VVB900009' };
  const second = await payingGateway({ dataDir, config: { boxes: [swapped] } });
  const transactionId = await pay(second);
  const box = await connectFakeBox({ gateway: second, identity: swapped, transport: 'mqtt' });
  expect(await box.next('payment')).toMatchObject({ transactionId, late: true });
});

describe('the rule of news', () => {
  const BOX = { ...BOX1, dialect: 'paybox' } as const;

  /** The rule for a box that said hello at minute 0, was lost at minute 10 and is back. */
  async function backAfter(awayMinutes: number) {
    const clock = new VirtualClock();
    const firstHelloMs = clock.wallMs();
    const kept = new Map<string, string>();
    const setting = async (name: string, make: () => string) => {
      if (!kept.has(name)) kept.set(name, make());
      return kept.get(name) ?? '';
    };
    const news = new PaymentNews(worldOf({ clock }), storedOf({ store: { setting } }));
    await news.begin(BOX, false);
    await clock.advance(10 * MINUTE_MS);
    news.lost(BOX.terminalCode);
    await clock.advance(awayMinutes * MINUTE_MS);
    const isNews = await news.begin(BOX, false);
    const minutesAgo = (paid: number, stored = paid) => {
      const at = (minutes: number) => clock.wallMs() - minutes * MINUTE_MS;
      return isNews({ paid_at_ms: at(paid), stored_at_ms: at(stored) });
    };
    return { clock, firstHelloMs, isNews, minutesAgo, names: kept };
  }

  it('MSG-14 VQD-8 a payment older than 5 minutes is news only to a box that was away for less', async () => {
    const [long, short] = [await backAfter(6), await backAfter(4)];
    expect([long.minutesAgo(6), long.minutesAgo(4), short.minutesAgo(6)]).toEqual([false, true, true]);
  });

  it('MSG-14 VQD-8 a payment that is old by a calendar that was set is news to a box that was away for 4 minutes', async () => {
    const { isNews, clock } = await backAfter(4);
    const stored_at_ms = clock.wallMs();
    expect(isNews({ paid_at_ms: stored_at_ms - 120 * MINUTE_MS, stored_at_ms })).toBe(true);
  });

  it('MSG-14 a payment that came within the session is news however late it is sent', async () => {
    const { isNews, clock } = await backAfter(60);
    const at = { paid_at_ms: clock.wallMs(), stored_at_ms: clock.wallMs() };
    await clock.advance(20 * MINUTE_MS);
    expect(isNews(at)).toBe(true);
  });

  it('MSG-14 VQD-8 a payment that was stored before the first hello is no news', async () => {
    const { isNews, firstHelloMs, names } = await backAfter(1);
    const at = (stored_at_ms: number) => isNews({ paid_at_ms: stored_at_ms, stored_at_ms });
    expect([at(firstHelloMs - 1), at(firstHelloMs)]).toEqual([false, true]);
    expect([...names]).toEqual([[`paybox-box-${BOX.terminalCode}-${BOX.serialNumber}`, String(firstHelloMs)]]);
  });
});
