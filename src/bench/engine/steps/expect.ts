import { MissingPeerError, reasonOf } from '../../../lib/errors.ts';
import { decodeVietQr } from '../../../protocol/vietqr.ts';
import {
  cutToDifference,
  difference,
  firstDifference,
  type Problem,
  prefixed,
  reasonIn,
  shown,
} from '../../scenarios/difference.ts';
import { durationMs } from '../../scenarios/durations.ts';
import type { Expectation } from '../../scenarios/expect.ts';
import { mistake } from '../../scenarios/expression.ts';
import { screenKindOf } from '../../scenarios/screen-kind.ts';
import type { CallbackView, GatewayClient } from '../clients/gateway.ts';
import { waitUntilRight, watchWhileRight } from '../test-time.ts';
import { announcementProblem, settlementProblem } from './account.ts';
import { boxOf, type PushedOrder, type StepContext, StepFailure } from './context.ts';
import { faultProblem } from './faults.ts';
import { goldenProblem } from './golden.ts';

const WITHIN_MS = 5_000;

/** Runs `expect`: all conditions must be true at one moment within the time limit. Throws StepFailure. */
export async function expect(args: Expectation, context: StepContext): Promise<undefined> {
  const { target, signal, transcript } = context;
  const { within, for: stays } = args;
  const withinMs = durationOf(within) ?? WITHIN_MS;
  let last: Problem | undefined;
  const look = async () => {
    last = await problemOf(args, context);
    return last && reasonIn(last);
  };
  const fail = async (words: (reason: string) => string) => {
    const problem = last ?? 'nothing was seen';
    const reason = words(reasonIn(problem));
    const notes = await target.time.inRealTime(async () => [
      ...(await otherProblems(args, reasonIn(problem), context)),
      ...(await notesOn(args, context)),
    ]);
    throw new StepFailure(typeof problem === 'string' ? reason : { ...problem, reason }, context, { notes });
  };
  const until = () => waitUntilRight(target.time, withinMs, look, signal);
  const problem = await transcript.timed(`until ${nameOf(args)}`, until, target.time.clock);
  if (problem !== undefined) await fail((reason) => `${reason}, after ${within ?? '5s'}`);
  const forMs = durationOf(stays);
  if (forMs === undefined) return undefined;
  const later = await watchWhileRight(target.time, forMs, look, signal);
  if (later !== undefined) await fail((reason) => `it did not stay true for ${stays}: ${reason}`);
  return undefined;
}

/** Returns why the first condition is not true; undefined when all are true. */
async function problemOf(args: Expectation, context: StepContext): Promise<Problem | undefined> {
  const { within: _within, for: _for, golden, tolerance, report, callback, ...rest } = args;
  const { announced, settled, fault, unreachable, ...shown } = rest;
  try {
    return (
      (unreachable && (await reachableProblem(context))) ??
      (report && (await reportProblem(report, context))) ??
      (callback && (await callbackProblem(callback, context))) ??
      (fault && (await faultProblem(fault, context))) ??
      (announced === undefined ? undefined : await announcementProblem(countOf(announced), context)) ??
      (settled && (await settlementProblem(context, announced !== undefined))) ??
      (await boxProblem(shown, context)) ??
      (golden === undefined ? undefined : await goldenProblem({ golden, tolerance }, context))
    );
  } catch (error) {
    // A part that is off or not ready is checked again. The last reason becomes the verdict when time is over.
    return reasonOf(error);
  }
}

/** Returns the names of the conditions. */
function conditionsIn(args: Expectation): (keyof Expectation)[] {
  const { within: _within, for: _for, tolerance: _tolerance, ...conditions } = args;
  return Object.keys(conditions) as (keyof Expectation)[];
}

/** Returns notes on the other conditions that are not true, each checked alone. */
async function otherProblems(args: Expectation, first: string, context: StepContext): Promise<string[]> {
  const names = conditionsIn(args);
  if (names.length < 2) return [];
  const others = new Set<string>();
  for (const name of names) {
    // The meaning of these two depends on another condition.
    const beside = name === 'golden' ? 'tolerance' : name === 'settled' ? 'announced' : name;
    const problem = await problemOf({ [beside]: args[beside], [name]: args[name] }, context);
    if (problem !== undefined && reasonIn(problem) !== first) others.add(`also wrong: ${reasonIn(problem)}`);
  }
  return [...others];
}

/** Returns the payment that the steps before made. */
function paidIn(scope: StepContext['scope']): string | undefined {
  const paid = scope.valueOf('pay');
  const isPaid = typeof paid === 'object' && paid !== null && 'transactionId' in paid;
  return isPaid && typeof paid.transactionId === 'string' ? paid.transactionId : undefined;
}

/** Returns further explanations of a failure: a payment that was made before, or went to another box. */
async function notesOn(expected: Expectation, context: StepContext): Promise<string[]> {
  const transactionId = paidIn(context.scope);
  const isOfBox = ['state', 'screen', 'text', 'qr', 'status', 'announced', 'report'].some((key) => key in expected);
  const box = context.target.boxes[context.box];
  if (!isOfBox || box === undefined || transactionId === undefined) return [];
  try {
    const payment = await found(context.target.gateway.payments(), (it) => it.transactionId === transactionId);
    const others = payment?.boxes.map(({ terminalCode }) => terminalCode) ?? [];
    if (payment === undefined || others.length === 0 || others.includes(box.terminalCode)) return [];
    const order = typeof payment.orderId === 'string' ? `order ${payment.orderId}` : 'an order';
    return [
      `another box's order was paid: payment ${transactionId} paid ${order} of ${others.join(', ')}, not of ${box.terminalCode}`,
    ];
  } catch {
    // The gateway may be off; the failure itself says so.
    return [];
  }
}

/** Returns a number that an expression may have made. Throws PayboxError. */
function countOf(value: number | string): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw mistake(`expected a whole number from 0 on, is ${shown(value)}`);
}

/** Returns a short name of the expectation. */
function nameOf(args: Expectation): string {
  const { state, screen, callback, report, settled, unreachable } = args;
  if (state !== undefined) return `the box is ${state}`;
  if (screen !== undefined) return `the screen is ${screen}`;
  if (callback !== undefined) return `the callback is ${callback.status ?? 'delivered'}`;
  if (report !== undefined) return 'the box has reported';
  if (settled) return 'all is settled';
  return unreachable ? 'the box is off' : `${conditionsIn(args).join(' and ')} as expected`;
}

function durationOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : durationMs(text);
}

/** Returns why the box is not off. Any answer means that it is on. */
async function reachableProblem(context: StepContext): Promise<string | undefined> {
  const box = boxOf(context);
  try {
    const { state } = await box.status();
    return `${box.terminalCode}: expected it to be off, it is ${state}`;
  } catch (error) {
    if (error instanceof MissingPeerError) return undefined;
    return `${box.terminalCode}: expected it to be off, ${reasonOf(error)}`;
  }
}

type BoxExpectation = Pick<Expectation, 'state' | 'screen' | 'text' | 'no text' | 'qr' | 'online' | 'status'>;

/** Returns why a box is not as expected; undefined when it is. Throws PayboxError when the box does not answer. */
export async function boxProblem(expected: BoxExpectation, context: StepContext): Promise<Problem | undefined> {
  const { state, online, status, screen, text, qr } = expected;
  if (Object.values(expected).every((it) => it === undefined)) return undefined;
  const { terminalCode } = boxOf(context);
  const asked = { ...(state === undefined ? {} : { state }), ...(online === undefined ? {} : { online }), ...status };
  const hasText = screen !== undefined || text !== undefined || expected['no text'] !== undefined;
  const problem =
    (Object.keys(asked).length === 0 ? undefined : difference(await boxOf(context).status(), asked)) ??
    (hasText ? textProblem(await boxOf(context).text(), expected) : undefined) ??
    (qr === undefined ? undefined : await qrProblem(String(qr), context));
  return problem === undefined ? undefined : prefixed(`${terminalCode}: `, problem);
}

function textProblem(text: string, expected: BoxExpectation): Problem | undefined {
  const kind = screenKindOf(text);
  if (expected.screen !== undefined && kind !== expected.screen) {
    const actual = kind ?? `an unknown one, ${shown(text)}`;
    return { reason: `screen: expected ${expected.screen}, is ${actual}`, expected: expected.screen, actual };
  }
  const missing = [expected.text ?? []].flat().find((words) => !text.includes(String(words)));
  const actual = text.split('\n').join(' | ');
  if (missing !== undefined) {
    const reason = `text: expected ${shown(missing)} on the screen, which says ${shown(text)}`;
    return { reason, expected: String(missing), actual };
  }
  const wrong = [expected['no text'] ?? []].flat().find((words) => text.includes(String(words)));
  if (wrong === undefined) return undefined;
  const reason = `text: expected no ${shown(wrong)} on the screen, which says ${shown(text)}`;
  return { reason, expected: `no ${wrong}`, actual };
}

async function qrProblem(expected: string, context: StepContext): Promise<Problem | undefined> {
  const box = boxOf(context);
  const seen = await context.target.probe.capture(box);
  if (seen === undefined) return 'qr: there is no picture of the screen yet';
  context.transcript.addScreen(box.terminalCode, seen.file, seen.qr);
  if (expected === 'none')
    return seen.qr === undefined || isStaticQr(seen.qr, context)
      ? undefined
      : `qr: expected none, the screen has ${shown(seen.qr)}`;
  if (seen.qr === expected) return undefined;
  const whose = context.state.pushed?.get(seen.qr ?? '');
  const ownerOf = (order: PushedOrder | undefined) =>
    order === undefined ? '' : `, of order ${order.orderId} for ${order.terminalCode}`;
  const [left, right] = cutToDifference(expected, seen.qr ?? '');
  if (seen.qr === undefined) return `qr: expected ${shown(left)}, ${seen.noQrReason ?? 'none is read on the screen'}`;
  const from = firstDifference(expected, seen.qr) + 1;
  const meant = ownerOf(context.state.pushed?.get(expected));
  const reason = `qr: expected ${shown(left)}${meant}, the screen has ${shown(right)}${ownerOf(whose)}; they differ from character ${from} on`;
  return { reason, expected: left, actual: right };
}

/** Returns whether this is the QR of the account, which a box of a dialect shows while it has no order. */
function isStaticQr(qr: string, { target: { dialect, gateway } }: StepContext): boolean {
  const decoded = dialect === undefined ? undefined : decodeVietQr(qr);
  if (decoded?.ok !== true) return false;
  const { account, amount } = decoded.value;
  return amount === undefined && account === gateway.account.bankAccount;
}

/** Returns why the gateway does not have the expected report of the box; undefined when it does. */
export async function reportProblem(
  report: NonNullable<Expectation['report']>,
  context: StepContext,
): Promise<Problem | undefined> {
  const { gateway } = context.target;
  if ('order' in report) {
    const order = await found(gateway.orders(), (it) => [it.id, it.orderId].includes(String(report.order)));
    if (order === undefined) return `report: the gateway knows no order ${report.order}`;
    return difference(order, { status: report.status }, `report: order ${report.order}`);
  }
  const { terminalCode } = boxOf(context);
  const payment = await found(gateway.payments(), (it) => it.transactionId === String(report.payment));
  if (payment === undefined) return `report: the gateway knows no payment ${report.payment}`;
  const told = payment.boxes.find((it) => it.terminalCode === terminalCode);
  if (told === undefined) return `report: ${terminalCode} was not sent payment ${report.payment}`;
  return told.reportedAt === null ? `report: ${terminalCode} has not reported payment ${report.payment}` : undefined;
}

/** Returns the newest row that matches, on any page. */
async function found<T>(pages: AsyncIterable<T[]>, isMeant: (row: T) => boolean): Promise<T | undefined> {
  for await (const rows of pages) {
    const row = rows.find(isMeant);
    if (row !== undefined) return row;
  }
  return undefined;
}

/**
 * Returns the callbacks of a payment. The gateway creates them at the same time, so they are next to each other, on one
 * page or two.
 */
async function callbacksOf(transactionId: string, gateway: GatewayClient): Promise<CallbackView[]> {
  const own: CallbackView[] = [];
  for await (const rows of gateway.callbacks()) {
    own.push(...rows.filter((it) => it.transactionId === transactionId));
    if (own.length > 0 && rows.at(-1)?.transactionId !== transactionId) break;
  }
  return own;
}

/**
 * Returns why the callbacks are not as expected. It compares the gateway's list and the callbacks that the partner's
 * server received.
 */
export async function callbackProblem(
  expected: NonNullable<Expectation['callback']>,
  { target }: StepContext,
): Promise<Problem | undefined> {
  const transactionId = String(expected.payment);
  const status = expected.status ?? 'delivered';
  const callbacks = await callbacksOf(transactionId, target.gateway);
  const [callback] = callbacks;
  if (callback === undefined) return `callback: the gateway has none for payment ${transactionId}`;
  if (callbacks.length > 1) return `callback: the gateway has ${callbacks.length} for payment ${transactionId}`;
  if (callback.status !== status) {
    const last = callback.attempts.at(-1);
    const why = last === undefined ? 'no attempt was made' : (last.error ?? `answered ${last.response?.status}`);
    const reason = `callback: expected ${status}, is ${callback.status} (${why})`;
    return { reason, expected: status, actual: `${callback.status} (${why})` };
  }
  const made = callback.attempts.length;
  if (expected.attempts !== undefined && made !== countOf(expected.attempts)) {
    const reason = `callback: expected ${expected.attempts} attempts, ${made} were made`;
    return { reason, expected: `${expected.attempts} attempts`, actual: `${made}` };
  }
  const received = target.partnerServer?.received.filter((it) => it.transactionId === transactionId);
  // An attempt under way has reached the partner but is not in the list yet.
  const underWay = status === 'pending' && received?.length === made + 1;
  if (received !== undefined && received.length !== made && !underWay) {
    return `callback: ${made} attempts were made, ${received.length} reached the partner`;
  }
  const bodies = received?.map(({ body }) => body) ?? callback.attempts.map(({ request }) => request.body);
  const [body] = bodies;
  const other = bodies.find((it) => it !== body);
  if (other !== undefined) return `callback: attempts differ, ${shown(body)} and ${shown(other)}`;
  if (expected.fields === undefined) return undefined;
  return difference(body === undefined ? undefined : JSON.parse(body), expected.fields, 'callback');
}
