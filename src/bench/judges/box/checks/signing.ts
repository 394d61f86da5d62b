import { LIMITS } from '../../../../protocol/fields.ts';
import { signingKeyOf } from '../../../../protocol/keys.ts';
import type { DownBody } from '../../../../protocol/messages.ts';
import { ifKnown, Mismatch, precondition } from '../../check.ts';
import { spec } from '../box-check.ts';
import type { Body, CheckContext } from '../check-context.ts';
import type { Defects } from '../gateway/message-signer.ts';
import { RETURN_MS } from '../subject.ts';
import { expectIgnored, expectPaymentIgnored } from './ignored.ts';
import { waitForSessionAge } from './pushes.ts';

const SEED_BYTES = 32;

/** A payment with changed JSON, or signed with defects. */
interface Forgery {
  json?: (t: CheckContext, payment: Body<'payment'>) => object;
  defects?: (t: CheckContext) => Defects;
}

const newKey = ({ gateway }: CheckContext) => signingKeyOf(gateway.random.secret(SEED_BYTES));

/** Messages that a broker, a proxy or a neighbour could send, and that a box must refuse. */
const FORGED: readonly [clause: string, title: string, forgery: Forgery][] = [
  [
    'SIG-1',
    'a message with an extension that must be understood',
    { defects: () => ({ head: { crit: ['b64'], b64: true } }) },
  ],
  ['SIG-1', 'a message by another algorithm', { defects: () => ({ head: { alg: 'none' } }) }],
  ['SIG-3', 'a message by a key that nobody has introduced', { defects: (t) => ({ key: newKey(t), proof: false }) }],
  [
    'SIG-3',
    'a message by a key that is introduced under another secret',
    { defects: (t) => ({ key: newKey(t), proof: 'a secret that the box does not have' }) },
  ],
  ['SIG-3', 'a message for another box', { defects: (t) => ({ head: { terminalCode: otherCode(t) } }) }],
  ['SIG-3', 'a message that names another session', { json: (t) => ({ sessionId: t.gateway.random.uuid() }) }],
  ['MSG-3', 'a message of an unknown type', { json: () => ({ type: 'gift' }) }],
  ['MSG-3', 'a message whose amount is no number', { json: (_, { amount }) => ({ amount: String(amount) }) }],
  ['LIM-4', 'a message of more than 16,384 bytes', { json: () => ({ padding: 'x'.repeat(LIMITS.messageBytesMax) }) }],
];

/**
 * Messages that a box must refuse: it takes unchanged messages of its gateway only, once, and in their session
 * (PROTOCOL.md, clauses SIG, MSG-3 and LIM-4).
 */
export const SIGNING_CHECKS = [
  spec('SIG-1', 'a message that is not signed changes nothing', [], async (t) => {
    const payment = t.payment();
    await expectPaymentIgnored(t, payment, () => t.sendRaw(jsonOf(t, payment)));
  }),
  ...FORGED.map(([clause, title, { json, defects }]) =>
    spec(clause, `${title} changes nothing`, [], async (t) => {
      const payment = t.payment();
      await expectPaymentIgnored(t, payment, () => {
        t.sendRaw(signer(t).forge(jsonOf(t, payment, json?.(t, payment)), defects?.(t) ?? {}));
      });
    }),
  ),
  spec('SIG-3', 'a message that was changed on the way changes nothing', [], async (t) => {
    const payment = t.payment();
    await expectPaymentIgnored(t, payment, () => {
      const original = signer(t).forge(jsonOf(t, { ...payment, amount: payment.amount + 1 }), {});
      t.sendRaw(tampered(original, jsonOf(t, payment)));
    });
  }),
  spec('SIG-3', 'a message that comes a second time changes nothing', [], async (t) => {
    const payment = t.payment();
    const signed = signer(t).sign(jsonOf(t, payment));
    t.sendRaw(signed);
    await precondition('its report', () => t.paid(payment.transactionId));
    await ifKnown(() => precondition('its screen', () => t.box.expectText(payment.content)));
    await expectPaymentIgnored(t, payment, () => t.sendRaw(signed));
  }),
  spec('SIG-3', 'a push that is replayed after its end changes nothing', [], async (t) => {
    const order = t.order();
    const { pushId } = order;
    const signed = signer(t).sign(jsonOf(t, order));
    t.sendRaw(signed);
    await precondition('an order on the screen', () => t.receive('shown', ['shown'], (it) => it.pushId === pushId));
    t.withdraw(pushId);
    await precondition('its end', () => t.ended(pushId));
    const wasGone = await ifKnown(() =>
      precondition('a screen without it', () => t.box.expectQrGone(order)).then(() => true),
    );
    const reaction = () => t.received('accepted', 'shown', 'rejected').find((it) => it.pushId === pushId)?.type;
    await expectIgnored(
      t,
      () => t.sendRaw(signed),
      async () => {
        if (reaction() !== undefined) return `the box answered ${reaction()}`;
        return wasGone === true && (await t.box.isQrSeen(order)) ? 'its QR came back' : undefined;
      },
    );
  }),
  spec('SIG-3', 'a message that comes after a later one changes nothing', [], async (t) => {
    const payment = t.payment();
    const delayed = signer(t).sign(jsonOf(t, payment));
    await expectPaymentIgnored(t, payment, () => t.sendRaw(delayed));
  }),
  spec('SIG-3', 'a message of an earlier session changes nothing in the next one', [], async (t) => {
    const payment = t.payment();
    const early = signer(t).forge(jsonOf(t, payment), {});
    await t.reconnect();
    await expectPaymentIgnored(t, payment, () => t.sendRaw(early));
  }),
  spec('SIG-4', 'a message that has expired changes nothing, and ends the session', [], async (t) => {
    await waitForSessionAge(t, 1_000);
    const payment = t.payment();
    const { session } = t.gateway;
    await expectPaymentIgnored(t, payment, async () => {
      t.sendRaw(signer(t).forge(jsonOf(t, payment), { expiresMs: 0 }));
      const isBelieved = () => t.received('paid').some((it) => it.transactionId === payment.transactionId);
      await t.until('a new hello, or a betrayal', RETURN_MS, () => t.gateway.session !== session || isBelieved());
    });
  }),
  spec('SIG-5', 'the box follows the gateway to a new key, and takes the old one no more', [], async (t) => {
    const old = t.gateway.rotate();
    const follows = t.payment();
    t.send(follows);
    await t.paid(follows.transactionId);
    const payment = t.payment();
    await expectPaymentIgnored(t, payment, () => {
      t.sendRaw(signer(t).forge(jsonOf(t, payment), { key: old }));
    });
  }),
  spec('MSG-3', 'fields that the box does not know change nothing', [], async (t) => {
    const payment = t.payment();
    t.sendRaw(signer(t).sign(jsonOf(t, payment, { tip: 5_000, note: { from: 'a later version' } })));
    await t.paid(payment.transactionId);
  }),
];

/** Returns a signed message with another payload under its signature. */
export function tampered(signed: string, payload: string): string {
  const [head, , signature] = signed.split('.');
  return [head, Buffer.from(payload, 'utf8').toString('base64url'), signature].join('.');
}

export function signer({ gateway: { session } }: CheckContext) {
  if (session === undefined) throw new Mismatch('there is no session');
  return session.signer;
}

export function jsonOf({ gateway }: CheckContext, body: DownBody, more?: object): string {
  return gateway.messageJson(body, gateway.session, more);
}

function otherCode({ gateway }: CheckContext): string {
  return gateway.identity.terminalCode === 'VVB999999' ? 'VVB999998' : 'VVB999999';
}
