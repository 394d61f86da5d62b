import { expect, it, onTestFinished } from 'vitest';
import { startGuardedPartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { TEST_CALLBACK, testCallback, testGateway } from '../gateway/harness.ts';
import { quietLog } from '../support/kept-log.ts';
import { eventually } from '../support/net.ts';

/** A gateway that calls the sample partner, signed as told, and one payment. */
async function paid(sign: (secret: string) => string | undefined) {
  const payments: unknown[] = [];
  const partner = await startGuardedPartnerServer({
    clock: systemClock,
    random: systemRandom,
    log: quietLog(),
    onPayment: ({ transactionid }) => payments.push(transactionid),
  });
  onTestFinished(() => partner.close());
  const { url, tokenUrl, username, password } = partner;
  const auth = { kind: 'token', url: tokenUrl, username, password };
  const gateway = await testGateway({
    callback: { url, auth, signingSecret: sign(partner.signingSecret) },
    config: { mqtt: null },
  });
  const { body } = await gateway.post(TEST_CALLBACK, testCallback());
  const [attempt] = await eventually('an attempt', async () => {
    const [callback] = await gateway.mock<{ attempts: { response: { status: number } | null }[] }[]>('/callbacks');
    return callback !== undefined && callback.attempts.length > 0 && callback.attempts;
  });
  return { status: attempt?.response?.status, payments, transactionId: body.message };
}

it('takes a payment that its own gateway has signed', async () => {
  const { status, payments, transactionId } = await paid((secret) => secret);
  expect([status, payments]).toEqual([200, [transactionId]]);
});

it.each<[string, string | undefined]>([
  ['that is not signed', undefined],
  ['that another has signed', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
])('SYN-8 THR-9 takes no payment %s, although it has the bearer', async (_name, secret) => {
  const { status, payments } = await paid(() => secret);
  expect([status, payments]).toEqual([401, []]);
});
