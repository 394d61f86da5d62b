import { MissingPeerError } from '../../../lib/errors.ts';
import { RETURN_MS } from '../box/subject.ts';
import { type Check, type CheckRun, checksOf, PreconditionFailed } from '../check.ts';
import { DialectContext } from './check-context.ts';
import type { DialectNeed, DialectSubject } from './subject.ts';

/** For answers of a person. */
const TIMEOUT_MS = 600_000;
const DEAF = 'the box has enrolled and listens no more: restart it, or give --restart-command';

export type DialectCheck = Check<DialectSubject, DialectNeed, DialectContext>;

/** Make checks of a box that listens and has its account. */
export const { spec, gap } = checksOf<DialectSubject, DialectNeed, DialectContext>(async (run) => {
  const ready = await listeningBox(run);
  const { context } = ready;
  await context.end();
  await context.say(context.linked());
  return ready;
}, TIMEOUT_MS);

/** Make checks of a box that listens and has no account yet. */
export const unlinked = checksOf<DialectSubject, DialectNeed, DialectContext>(async (run) => {
  const ready = await listeningBox(run);
  if (run.subject.service.hasLinked) throw new PreconditionFailed('the box is linked already');
  return ready;
}, TIMEOUT_MS);

const { spec: afterwards } = checksOf<DialectSubject, DialectNeed, DialectContext>(async (run) => ({
  context: new DialectContext(run),
}));

/** Makes a check that passes if the box violated this clause in none of the earlier checks. */
export function noViolation(clause: string, title: string): DialectCheck {
  return afterwards(clause, title, [], async ({ service }) => {
    service.log.expectNoViolation(clause);
    if (service.line === undefined) throw new PreconditionFailed('the box has not enrolled');
  });
}

async function listeningBox(run: CheckRun<DialectSubject>) {
  const context = new DialectContext(run);
  const { service } = context;
  service.log.onTraffic = (title, detail) => run.evidence.add('call', title, { detail });
  if (service.line === undefined && service.log.violations.length > 0) {
    throw new PreconditionFailed('the box has not enrolled');
  }
  if (!(await listensAgain(context))) {
    if (service.line?.client.connected === true) throw new PreconditionFailed(DEAF);
    throw new MissingPeerError('the box does not come back', 'look at the box');
  }
  return { context, tearDown: () => tearDown(context) };
}

async function tearDown(t: DialectContext): Promise<void> {
  const { service } = t;
  Object.assign(service, { isSilent: false, certificate: undefined });
  service.leave(false);
  await listensAgain(t);
  service.log.onTraffic = undefined;
}

/** Waits for the box. Restarts it if that is possible, because some firmware listens after its start only. */
async function listensAgain(t: DialectContext): Promise<boolean> {
  const { service, subject, run } = t;
  const { restart } = subject.controls;
  const withinMs = service.isGivenUp ? 0 : RETURN_MS;
  if (!(await run.isSoon(withinMs, () => service.isHeard)) && restart !== undefined) {
    await restart();
    await t.isBack();
  }
  service.isGivenUp = !service.isHeard;
  return service.isHeard;
}
