import { ifKnown, Mismatch, precondition } from '../../check.ts';
import { type BoxCheck, spec } from '../box-check.ts';
import { LINGER_MS } from '../box-pages.ts';
import type { Body, CheckContext, ProblemNow } from '../check-context.ts';
import { RETURN_MS } from '../subject.ts';
import { expectIgnored } from './ignored.ts';
import { waitForSessionAge } from './pushes.ts';
import { jsonOf, signer, tampered } from './signing.ts';

type Forged = Body<'show'> | Body<'withdraw'> | Body<'ack'>;

type Provoke = () => void | Promise<void>;

/** A forged message that would change something, and a harmless one of its type. */
interface Bait {
  message: Forged;
  other: Forged;
  /** Undefined where only the next session shows it. */
  problemNow: ProblemNow | undefined;
  /** Throws Mismatch when the provocation changes something. */
  expectIgnored(provoke: Provoke): Promise<void>;
}

/** Baits of each type; `signing.ts` forges payments. */
const BAITS: readonly [type: string, bait: (t: CheckContext) => Promise<Bait>][] = [
  ['push', pushBait],
  ['withdrawal', withdrawalBait],
  ['acknowledgement', ackBait],
];

/** Ways to forge a message of any type. */
const WAYS: readonly [clause: string, how: string, send: (t: CheckContext, bait: Bait) => void | Promise<void>][] = [
  ['SIG-1', 'that is not signed', (t, { message }) => t.sendRaw(jsonOf(t, message))],
  [
    'SIG-3',
    'that was changed on the way',
    (t, { message, other }) => t.sendRaw(tampered(signer(t).forge(jsonOf(t, other), {}), jsonOf(t, message))),
  ],
  ['SIG-4', 'that has expired', sendExpired],
];

/** Forged messages of every type (PROTOCOL.md, clauses SIG-1, SIG-3 and SIG-4). */
export const FORGERY_CHECKS: readonly BoxCheck[] = [
  ...BAITS.flatMap(([type, baitOf]) =>
    WAYS.map(([clause, how, send]) =>
      spec(clause, `a forged ${type} ${how} changes nothing`, [], async (t) => {
        const bait = await baitOf(t);
        if (clause === 'SIG-4') await waitForSessionAge(t, 1_000);
        await bait.expectIgnored(() => send(t, bait));
      }),
    ),
  ),
  spec('SIG-3', 'a withdrawal that comes a second time changes nothing', [], async (t) => {
    const { pushId } = t.order();
    const signed = signer(t).sign(jsonOf(t, { type: 'withdraw', pushId, why: 'timeout' }));
    t.sendRaw(signed);
    const isIt = (message: { pushId: string }) => message.pushId === pushId;
    await precondition('its answer', () => t.receive('rejected', ['rejected'], isIt));
    await expectIgnored(
      t,
      () => t.sendRaw(signed),
      () => (t.received('rejected').some(isIt) ? 'the box believed it, and answered' : undefined),
    );
  }),
];

async function pushBait(t: CheckContext): Promise<Bait> {
  const message = t.order();
  const isIt = ({ pushId }: { pushId: string }) => pushId === message.pushId;
  const problemNow = async () => {
    const reaction = t.received('accepted', 'shown', 'rejected').find(isIt)?.type;
    if (reaction !== undefined) return `the box believed it, and answered ${reaction}`;
    return (await t.box.isQrSeen(message)) ? 'the box believed it, and shows its QR' : undefined;
  };
  const ignored = (provoke: Provoke) => expectIgnored(t, provoke, problemNow);
  return { message, other: t.order(), problemNow, expectIgnored: ignored };
}

async function withdrawalBait(t: CheckContext): Promise<Bait> {
  const order = await t.pushShown();
  const { pushId } = order;
  // A new session must not end it either.
  t.gateway.openPushIds = [pushId];
  const withdraw = { type: 'withdraw', why: 'cancelled' } as const;
  const problemNow = () => (t.hasEnded(order) ? 'the box believed it, and ended its push' : undefined);
  const other = { ...withdraw, pushId: t.gateway.random.uuid() };
  const ignored = (provoke: Provoke) => expectIgnored(t, provoke, problemNow);
  return { message: { ...withdraw, pushId }, other, problemNow, expectIgnored: ignored };
}

/**
 * Makes a bait of an acknowledgement. The box must report the payment again in the next session, because nobody has
 * acknowledged it.
 */
async function ackBait(t: CheckContext): Promise<Bait> {
  t.gateway.acksReports = false;
  const { transactionId, ...payment } = t.payment();
  t.send({ transactionId, ...payment });
  const { id } = await precondition('a report', () => t.paid(transactionId));
  t.ignoreEarlier();
  // MSG-6 judges a box that forgets its reports without an acknowledgement.
  const session = await t.reconnect();
  await precondition('a report that comes again', () => t.paid(transactionId));
  const expectReported = async (provoke: Provoke) => {
    t.ignoreEarlier();
    await provoke();
    await t.time.wait(LINGER_MS);
    if (t.gateway.session === session) await t.reconnect();
    const isAgain = await ifKnown(() => precondition('it again', () => t.paid(transactionId)).then(() => true));
    if (isAgain !== true) throw new Mismatch('the box believed it, and does not report the payment again');
  };
  const ack = { type: 'ack' } as const;
  const other = { ...ack, reportIds: [t.gateway.random.uuid()] };
  return { message: { ...ack, reportIds: [id] }, other, problemNow: undefined, expectIgnored: expectReported };
}

/** Sends an expired message, which ends the session. */
async function sendExpired(t: CheckContext, { message, problemNow }: Bait): Promise<void> {
  const { session } = t.gateway;
  t.sendRaw(signer(t).forge(jsonOf(t, message), { expiresMs: 0 }));
  const isBelieved = async () => (await problemNow?.()) !== undefined;
  await t.until('a new hello, or a betrayal', RETURN_MS, async () => t.gateway.session !== session || isBelieved());
}
