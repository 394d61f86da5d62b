import { LIMITS } from '../../../protocol/fields.ts';
import { signingKeyOf } from '../../../protocol/keys.ts';
import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import type { Trial } from '../check-context.ts';
import type { Body } from '../gateway-transcript.ts';
import { oldEnough } from './pushes.ts';

const SEED_BYTES = 32;

/** A message that says that somebody paid, which nobody may say but the gateway in this session. */
interface Lie {
  payment: Body<'payment'>;
  payload: string;
}

/** What a broker, a proxy or a neighbour may do with messages, none of which a box may believe. */
const HOSTILE: readonly [clause: string, title: string, make: (trial: Trial, lie: Lie) => string | Uint8Array][] = [
  ['SIG-1', 'a message that is not sealed', (_, { payload }) => payload],
  [
    'SIG-1',
    'a message with an extension that must be understood',
    (trial, { payload }) => sealer(trial).forge(payload, { head: { crit: ['b64'], b64: true } }),
  ],
  [
    'SIG-1',
    'a message by another algorithm',
    (trial, { payload }) => sealer(trial).forge(payload, { head: { alg: 'none' } }),
  ],
  [
    'SIG-3',
    'a message whose words were changed on the way',
    (trial, { payload, payment }) =>
      withPayload(sealer(trial).forge(stamped(trial, { ...payment, amount: payment.amount + 1 }), {}), payload),
  ],
  [
    'SIG-3',
    'a message by a key that nobody has introduced',
    (trial, { payload }) => sealer(trial).forge(payload, { key: strangersKey(trial), proof: false }),
  ],
  [
    'SIG-3',
    'a message by a key that is introduced under another secret',
    (trial, { payload }) =>
      sealer(trial).forge(payload, { key: strangersKey(trial), proof: 'a secret that the box does not have' }),
  ],
  [
    'SIG-3',
    'a message for another box',
    (trial, { payload }) => sealer(trial).forge(payload, { head: { terminalCode: otherCode(trial) } }),
  ],
  [
    'SIG-3',
    'a message that says another session',
    (trial, { payment }) =>
      sealer(trial).forge(stamped(trial, payment, { sessionId: trial.gateway.random.uuid() }), {}),
  ],
  [
    'MSG-3',
    'a message of an unknown type',
    (trial, { payment }) => sealer(trial).forge(stamped(trial, payment, { type: 'gift' }), {}),
  ],
  [
    'MSG-3',
    'a message whose amount is no number',
    (trial, { payment }) => sealer(trial).forge(stamped(trial, payment, { amount: String(payment.amount) }), {}),
  ],
  [
    'LIM-4',
    'a message of more than 16,384 bytes',
    (trial, { payment }) =>
      sealer(trial).forge(stamped(trial, payment, { padding: 'x'.repeat(LIMITS.messageBytesMax) }), {}),
  ],
];

/** Clauses SIG, MSG-3 and LIM-4 of PROTOCOL.md. */
export const SEAL_CHECKS = [
  ...HOSTILE.map(([clause, title, make]) =>
    boxCheck(clause, `${title} changes nothing`, async (trial) => {
      const payment = trial.payment();
      trial.deliver(make(trial, { payment, payload: stamped(trial, payment) }));
      await unheard(trial, payment);
    }),
  ),
  boxCheck('SIG-3', 'a message that comes a second time changes nothing', async (trial) => {
    const payment = trial.payment();
    const sealed = sealer(trial).sign(stamped(trial, payment));
    trial.deliver(sealed);
    await trial.given('its report', () => trial.paid(payment.transactionId));
    trial.mark();
    trial.deliver(sealed);
    await unheard(trial, payment);
  }),
  boxCheck('SIG-3', 'a push that is replayed after its end changes nothing', async (trial) => {
    const order = trial.order();
    const sealed = sealer(trial).sign(stamped(trial, order));
    trial.deliver(sealed);
    await trial.given('an order on the screen', () =>
      trial.hear('shown', ['shown'], (it) => it.pushId === order.pushId),
    );
    trial.withdraw(order.pushId);
    await trial.given('its end', () => trial.ended(order.pushId));
    trial.mark();
    trial.deliver(sealed);
    await trial.echo();
    const reaction = trial.since('accepted', 'shown', 'rejected').find(({ pushId }) => pushId === order.pushId);
    if (reaction !== undefined) throw new Mismatch(`the box answered ${reaction.type}`);
  }),
  boxCheck('SIG-3', 'a message that is overtaken by a later one changes nothing', async (trial) => {
    const payment = trial.payment();
    const held = sealer(trial).sign(stamped(trial, payment));
    await trial.echo();
    trial.deliver(held);
    await unheard(trial, payment);
  }),
  boxCheck('SIG-3', 'a message of an earlier session changes nothing in the next one', async (trial) => {
    const payment = trial.payment();
    const early = sealer(trial).forge(stamped(trial, payment), {});
    await trial.reconnected();
    await trial.given('a session', () => trial.begin());
    trial.deliver(early);
    await unheard(trial, payment);
  }),
  boxCheck('SIG-4', 'a message that has expired changes nothing, and ends the session', async (trial) => {
    await oldEnough(trial, 1_000);
    const payment = trial.payment();
    const { session } = trial.gateway;
    trial.deliver(sealer(trial).forge(stamped(trial, payment), { expiresMs: 0 }));
    await trial.nextSession(session);
    await unheard(trial, payment);
  }),
  boxCheck('SIG-5', 'the box follows the gateway to a new key, and takes the old one no more', async (trial) => {
    const old = trial.gateway.rotate();
    const follows = trial.payment();
    trial.tell(follows);
    await trial.paid(follows.transactionId);
    trial.mark();
    const payment = trial.payment();
    trial.deliver(sealer(trial).forge(stamped(trial, payment), { key: old }));
    await unheard(trial, payment);
  }),
  boxCheck('MSG-3', 'fields that it does not know do not keep the box from a message', async (trial) => {
    const payment = trial.payment();
    trial.deliver(sealer(trial).sign(stamped(trial, payment, { tip: 5_000, note: { from: 'a later version' } })));
    await trial.paid(payment.transactionId);
  }),
];

function sealer(trial: Trial) {
  const { session } = trial.gateway;
  if (session === undefined) throw new Mismatch('there is no session');
  return session.signer;
}

function stamped(trial: Trial, body: Body<'payment'> | Body<'show'>, more?: object): string {
  return trial.gateway.messageJson(body, trial.gateway.session, more);
}

function strangersKey({ gateway }: Trial) {
  return signingKeyOf(gateway.random.secret(SEED_BYTES));
}

function otherCode({ gateway }: Trial): string {
  return gateway.identity.terminalCode === 'VVB999999' ? 'VVB999998' : 'VVB999999';
}

/** A sealed message with other words under the same signature. */
function withPayload(sealed: string, payload: string): string {
  const [head, , signature] = sealed.split('.');
  return [head, Buffer.from(payload, 'utf8').toString('base64url'), signature].join('.');
}

/** Throws Mismatch when the box says that this was paid. */
async function unheard(trial: Trial, { transactionId }: Body<'payment'>): Promise<void> {
  await trial.echo();
  if (trial.since('paid').some((message) => message.transactionId === transactionId)) {
    throw new Mismatch('the box believed it, and says that somebody paid');
  }
}
