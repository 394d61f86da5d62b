import { MissingPeerError } from '../../../lib/errors.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import type { UpMessage } from '../../../protocol/messages.ts';
import { type Check, type CheckRun, checksOf, PreconditionFailed, type Prepared } from '../check.ts';
import { CheckContext } from './check-context.ts';
import { ACCOUNT } from './gateway/scripted-gateway.ts';
import { type BoxNeed, type BoxSubject, RETURN_MS } from './subject.ts';

/** Time to withdraw a push between two checks. */
const CLEANUP_MS = 5_000;
/** For answers, two reconnections and a slow box. */
const TIMEOUT_MS = 180_000;

export type BoxCheck = Check<BoxSubject, BoxNeed, CheckContext>;

/**
 * Makes a check of an idle box in a session. Between gateway and box PROTOCOL.md is the only source: no clause there
 * fills a gap of the service specification.
 */
export const { spec } = checksOf<BoxSubject, BoxNeed, CheckContext>(idleBox, TIMEOUT_MS);

const { spec: afterwards } = checksOf<BoxSubject, BoxNeed, CheckContext>(async (run) => ({
  context: new CheckContext(run),
}));

/** Makes a check that passes if the box violated this clause in none of the earlier checks. */
export function noViolation(clause: string, title: string, needs: readonly BoxNeed[]): BoxCheck {
  return afterwards(clause, title, needs, async ({ gateway }) => {
    gateway.log.expectNoViolation(clause);
    if (gateway.sessions.length === 0) throw new PreconditionFailed('the box has not been in a session');
  });
}

async function idleBox(run: CheckRun<BoxSubject>): Promise<Prepared<CheckContext>> {
  const context = new CheckContext(run);
  const { gateway } = context;
  gateway.log.onTraffic = (title, detail) => run.evidence.add('call', title, { detail });
  await waitForSession(context);
  return { context, tearDown: (isFailed) => tearDown(context, isFailed) };
}

/** Waits for a session. Throws PreconditionFailed when no hello was legal, MissingPeerError when none came. */
export async function waitForSession(t: CheckContext): Promise<void> {
  const { gateway } = t;
  t.throwIfTwoBoxes();
  const { log, sessions } = gateway;
  const withinMs = sessions.length === 0 && log.violations.length > 0 ? 0 : RETURN_MS;
  if (!(await t.run.isSoon(withinMs, () => isWelcomed(t)))) {
    const against = log.lastViolation;
    if (sessions.length === 0) throw new PreconditionFailed(`there is no session${against}`);
    throw new MissingPeerError(`the box has not come back within ${RETURN_MS / 1000} s${against}`, 'look at the box');
  }
  t.ignoreEarlier();
}

function isWelcomed({ gateway: { session } }: CheckContext): boolean {
  return session?.isWelcomed === true && session.connection.isOpen;
}

/** Leaves an idle box in a session. After a failed check it is a new session, because the check may have broken it. */
async function tearDown(t: CheckContext, isFailed: boolean): Promise<void> {
  await t.box.endFaults();
  const { gateway } = t;
  const isChanged = gateway.helloAnswer !== 'welcome' || gateway.account !== ACCOUNT || 'mode' in gateway.mode;
  Object.assign(gateway, { helloAnswer: 'welcome', account: ACCOUNT, mode: {}, openPushIds: [], acksReports: true });
  Object.assign(gateway.http, { refusesWith: undefined, isSilent: false });
  if (isFailed || isChanged) {
    const { session } = gateway;
    gateway.cut();
    await t.run.isSoon(RETURN_MS, () => gateway.session !== session);
  }
  if (isWelcomed(t)) acknowledgeAll(t);
  if (isWelcomed(t)) await withdrawAll(t);
  gateway.log.onTraffic = undefined;
}

/** Acknowledges the reports of this check, so that the box does not repeat them in the next one. */
function acknowledgeAll({ gateway }: CheckContext): void {
  const unacked = gateway.log.recent.flatMap(({ message: { type, id }, session }) => {
    return (type === 'ended' || type === 'paid') && session === gateway.session ? [id] : [];
  });
  if (unacked.length > 0) gateway.acknowledge([...new Set(unacked)].slice(0, LIMITS.ackIdsMax));
}

async function withdrawAll(t: CheckContext): Promise<void> {
  const { gateway, run } = t;
  for (const pushId of t.pushed) {
    const from = gateway.log.arrived.length;
    gateway.send({ type: 'withdraw', pushId, why: 'timeout' });
    const hasEnded = () => gateway.log.arrived.slice(from).some(({ message }) => isEndOf(message, pushId));
    await run.isSoon(CLEANUP_MS, () => hasEnded() || !isWelcomed(t));
  }
}

function isEndOf(message: UpMessage, pushId: string): boolean {
  return (message.type === 'ended' || message.type === 'rejected') && message.pushId === pushId;
}
