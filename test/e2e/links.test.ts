import { describe, expect, it, onTestFinished } from 'vitest';
import { GENERATE, order, push, qrFor, SEND_QR, type TestGateway, testGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { FAIR, openNamespace, whyNoNamespaces } from '../support/netem.ts';
import { seeded } from '../support/seeded.ts';
import { isOnline, isReady, startBox } from './box.ts';

const SEED = 4;
const KEEPALIVE_SECONDS = 5;
/** What a loaded machine may need beyond what the protocol allows. */
const PATIENCE_MS = 60_000;
/** An agent that was superseded asks once a minute whether the newer one is gone. */
const RETURN_MS = 90_000;

/** Makes an order without pushing it, and pays it; the transaction id. */
async function payAnOrder(gateway: TestGateway, orderId: string): Promise<string> {
  await gateway.post(GENERATE, order({ orderId, content: orderId }));
  return (await gateway.mock<{ message: string }>(`/orders/${orderId}/pay`, 'POST')).message;
}

const pushOf = (orderId: string) => push({ orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) });

/** The payments that the box has said that it announced, as the gateway knows it. */
async function reported(gateway: TestGateway): Promise<string[]> {
  const payments = await gateway.mock<{ id: string; boxes?: { reportedAt: unknown }[] }[]>('/payments');
  return payments.filter((it) => JSON.stringify(it).match(/"reportedAt":"?\d/)).map((it) => JSON.stringify(it));
}

describe('two agents with one identity', () => {
  it.each(['mqtt', 'http'] as const)(
    'MSG-8 over %s: the newer one wins, the older one says so and has the box back once the newer one is gone, and one announces a payment',
    { timeout: 180_000 },
    async (transport) => {
      const gateway = await testGateway();
      const link = { transport, url: transport === 'mqtt' ? gateway.mqttUrl : gateway.origin };
      const older = await startBox(link);
      await eventually('the older one online', () => isOnline(older), PATIENCE_MS);
      const newer = await startBox(link);
      await eventually('the newer one online', () => isReady(newer), PATIENCE_MS);
      const superseded = async () => (await older.status()).fault?.code === 'SUPERSEDED';
      await eventually('the older one superseded', superseded, PATIENCE_MS);
      expect(older.logged('link-down').at(-1)?.reason).toContain('SUPERSEDED');

      expect((await gateway.post(SEND_QR, pushOf('DH1'))).body).toEqual({ status: 'SUCCESS', message: '' });
      expect((await newer.status()).order?.orderId).toBe('DH1');
      await gateway.mock('/orders/DH1/pay', 'POST');
      await eventually('the payment', () => newer.logged('paid-shown').length === 1, PATIENCE_MS);
      await eventually('its report', async () => (await reported(gateway)).length === 1, PATIENCE_MS);

      await newer.running.stop('SIGTERM');
      await eventually('the box offline', () => gateway.log.some((it) => it.event === 'box-offline'), PATIENCE_MS);
      await payAnOrder(gateway, 'DH2');
      expect((await gateway.post(SEND_QR, pushOf('DH3'))).body.message).toBe('BOX_OFFLINE');
      expect(await superseded()).toBe(true);
      expect(older.logged('paid-shown')).toEqual([]);
      await eventually('the older one has the box again', () => isReady(older), RETURN_MS);
      await eventually('the payment of meanwhile', () => older.logged('paid-shown').length === 1, PATIENCE_MS);
      expect((await gateway.post(SEND_QR, pushOf('DH4'))).body).toEqual({ status: 'SUCCESS', message: '' });
      expect(newer.logged('paid-shown')).toHaveLength(1);
    },
  );
});

const whyNot = whyNoNamespaces();

describe.skipIf(whyNot !== undefined)(`a box behind a bad network${whyNot === undefined ? '' : ` (${whyNot})`}`, () => {
  it('SND-5 MSG-7 TOP-4 is told each payment once through delay, reordering, loss and a cut, and each push is answered', {
    timeout: 300_000,
  }, async () => {
    const place = await openNamespace(seeded(SEED));
    onTestFinished(() => place.close());
    const gateway = await testGateway({
      config: { mqtt: { embedded: { host: place.here, port: 0, allowPlain: true } } },
    });
    const link = { transport: 'mqtt', url: gateway.mqttUrl, keepaliveSeconds: KEEPALIVE_SECONDS, allowPlain: true };
    const box = await startBox(link, { host: place.there, place });
    await eventually('online', () => isReady(box), PATIENCE_MS);
    const paid: string[] = [];
    const answers: unknown[] = [];
    const trade = async (name: string, count: number) => {
      for (let n = 0; n < count; n += 1) {
        answers.push((await gateway.post(SEND_QR, pushOf(`${name}${n}`))).body);
        paid.push(await payAnOrder(gateway, `${name}P${n}`));
      }
    };
    await trade('FAIR', 1);
    expect(answers).toEqual([{ status: 'SUCCESS', message: '' }]);
    place.setConditions({ delayMs: 200, jitterMs: 100, reordered: 0.25, lost: 0 });
    await trade('LATE', 3);
    place.setConditions({ delayMs: 20, jitterMs: 10, reordered: 0.25, lost: 0.2 });
    await trade('LOST', 3);
    place.cut();
    const cutMs = performance.now();
    const offline = () => gateway.log.filter((it) => it.event === 'box-offline').length > 0;
    await eventually('the gateway to miss the box', () => offline(), PATIENCE_MS);
    await eventually('the box to miss the gateway', async () => !(await isOnline(box)), PATIENCE_MS);
    const foundMs = Math.round(performance.now() - cutMs);
    await trade('CUT', 1);
    expect(answers.at(-1)).toEqual({ status: 'FAILED', message: 'BOX_OFFLINE' });
    place.setConditions(FAIR);
    await eventually('online again', () => isOnline(box), PATIENCE_MS);
    await eventually(
      'each payment reported',
      async () => (await reported(gateway)).length === paid.length,
      PATIENCE_MS,
    );
    const times = () => paid.map((id) => box.logged('paid-shown').filter((it) => it.transactionId === id).length);
    await eventually('each payment announced', () => times().every((count) => count > 0), PATIENCE_MS);
    expect(times()).toEqual(paid.map(() => 1));
    for (const answer of answers) {
      expect(answer).toMatchObject({ message: expect.stringMatching(/^(|BOX_TIMEOUT|BOX_OFFLINE|REPLACED)$/) });
    }
    expect((await gateway.post(SEND_QR, pushOf('LAST'))).body).toEqual({ status: 'SUCCESS', message: '' });
    expect((await box.status()).order?.orderId).toBe('LAST');
    const { carried, lost } = place.counts();
    expect(lost).toBeGreaterThan(0);
    process.stdout.write(
      `bad network: ${carried} packets carried, ${lost} lost; ${paid.length} payments announced once; ` +
        `a cut found at both ends after ${foundMs} ms at a keepalive of ${KEEPALIVE_SECONDS} s\n`,
    );
  });
});
