import { describe, expect, it, onTestFinished } from 'vitest';
import { SEND_QR, testGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { FAIR, openNamespace, whyNoNamespaces } from '../support/netem.ts';
import { seeded } from '../support/seeded.ts';
import { isOnline, isReady, startBox } from './box.ts';
import { PATIENCE_MS, payAnOrder, pushOf, reported } from './trade.ts';

const SEED = 4;
const KEEPALIVE_SECONDS = 5;

const whyNot = whyNoNamespaces();

describe.skipIf(whyNot !== undefined)(`a box behind a bad network${whyNot === undefined ? '' : ` (${whyNot})`}`, () => {
  it('SND-5 MSG-7 TOP-4 a box behind a bad network gets each payment once through delay, reordering, loss and a cut, and each push is answered', {
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
    const offline = () => gateway.log.filter((it) => it.event === 'box-disconnected').length > 0;
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
    const times = () => paid.map((id) => box.logged('payment-shown').filter((it) => it.transactionId === id).length);
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
