import { systemClock } from '../../../../lib/clock.ts';
import { PATHS } from '../../../../protocol/http-api.ts';
import { Breach, Mismatch, PreconditionFailed } from '../../check.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, codeOf, isRefusal, summaryOf } from '../client.ts';
import { forEachCase } from '../expectations.ts';
import { recordOf } from '../json.ts';
import { type OnShow, type SimulatedBox, withSimulatedBox } from '../simulated-box.ts';
import type { Order, SentRequest, ServiceNeed } from '../subject.ts';

/** Real time. An answer that has not come by then is waiting for something. */
const HELD_MS = 300;
/** Real time. A push that is forwarded although it was refused is on its way by then. */
const FORWARDED_MS = 150;
/** Time for which the bench watches that nothing comes. */
export const QUIET_MS = 2_000;

export const showNothing: OnShow = async () => undefined;

type BoxJudge = (t: CheckContext, box: SimulatedBox) => Promise<void>;
type MakeBoxCheck = (clause: string, title: string, needs: readonly ServiceNeed[], judge: BoxJudge) => ServiceCheck;

const makerOf =
  (make: typeof spec): MakeBoxCheck =>
  (clause, title, needs, judge) =>
    make(clause, title, ['a simulated box', ...needs], withBox(judge));

/** Make checks with a simulated box that shows every push. */
export const [specWithBox, gapWithBox] = [makerOf(spec), makerOf(gap)];

/** A judge with a simulated box. `onShow` replaces its handling of pushes. */
export const withBox =
  (judge: BoxJudge, onShow?: OnShow) =>
  (t: CheckContext): Promise<void> =>
    withSimulatedBox(t.run, (box) => judge(t, box), onShow);

/**
 * Sends what must be refused while the box is on, as far as the bench can simulate it: a box that is off would hide what
 * a service takes. Throws a Breach when a QR is on the box although its push was refused.
 */
export async function whileBoxIsOn(t: CheckContext, send: () => Promise<void>): Promise<void> {
  const { boxSecret, boxOn, seeQr } = t.options;
  const { sent } = t.subject;
  const from = sent.length;
  const expectNone = async (shown: () => Promise<readonly (string | undefined)[]>) => {
    await t.time.inRealTime(() => systemClock.sleep(FORWARDED_MS));
    const pushes = sent.slice(from).filter(({ path }) => path.endsWith(PATHS.sendQr));
    const isRefused = ({ answer }: SentRequest) => answer !== undefined && isRefusal(answer);
    const [refused = [], taken = []] = [true, false].map((is) =>
      pushes.filter((it) => isRefused(it) === is).map(({ fields }) => fields.qrCode),
    );
    const seen = (await shown()).find((qr) => refused.includes(qr) && !taken.includes(qr));
    if (seen !== undefined) throw new Breach(`a push was refused, and its QR is on the box all the same: ${seen}`);
  };
  if (boxSecret !== undefined) {
    await withSimulatedBox(t.run, (box) =>
      forEachCase([send, () => expectNone(async () => box.of('show').map(({ qrCode }) => qrCode))], (it) => it()),
    );
  } else if (boxOn !== undefined && seeQr !== undefined) {
    await forEachCase([send, () => expectNone(async () => [await t.time.inRealTime(seeQr)])], (it) => it());
  } else await send();
}

/** Sends a push to the simulated box, and waits until it has arrived. */
export async function startPush(t: CheckContext, box: SimulatedBox, order: Order = t.newOrder()) {
  const before = box.of('show').length;
  const qrCode = await t.generatedQr(order);
  const answer = pending(t.sendPush(t.pushBody(order, qrCode)));
  const show = await box.expect('show', before + 1);
  return { order, qrCode, answer, show };
}

/** A request that must not be answered yet. */
export interface PendingAnswer {
  called: Promise<Answer>;
  isAnswered(): boolean;
}

export function pending(called: Promise<Answer>): PendingAnswer {
  let isAnswered = false;
  const end = () => {
    isAnswered = true;
  };
  // The error is thrown to the code that awaits `called`.
  called.then(end, end);
  return { called, isAnswered: () => isAnswered };
}

export async function expectUnanswered(
  t: CheckContext,
  { called, isAnswered }: PendingAnswer,
  what: string,
): Promise<void> {
  await t.time.inRealTime(() => systemClock.sleep(HELD_MS));
  if (isAnswered()) throw new Mismatch(`${what} the push is answered ${summaryOf(await called)}`);
}

/** Throws PreconditionFailed unless the box shows the push. */
export async function pushShown(t: CheckContext, order: Order, change: object = {}): Promise<void> {
  const qrCode = t.makeQr(order);
  const called = await t.sendPush(t.pushBody(order, qrCode, { ...change }));
  if (codeOf(called) !== undefined)
    throw new PreconditionFailed(`needs a push that is shown, this one is answered ${summaryOf(called)}`);
}

export function expectNoMessage({ json, text }: Answer): void {
  if (recordOf(json).message !== '') throw new Mismatch(`expected an empty message, is ${text}`);
}

/** Pushes to the running box. Throws PreconditionFailed when it is offline. */
export async function pushToRunningBox(
  t: CheckContext,
  order: Order = t.newOrder(),
): Promise<{ called: Answer; qrCode: string }> {
  const qrCode = await t.generatedQr(order);
  const { terminalCode = '', serialNumber = '' } = t.options.boxOn ?? {};
  const called = await t.sendPush(t.pushBody(order, qrCode, { terminalCode, serialNumber }));
  if (codeOf(called) === 'BOX_OFFLINE') throw new PreconditionFailed('needs a box that is on: turn it on');
  return { called, qrCode };
}
