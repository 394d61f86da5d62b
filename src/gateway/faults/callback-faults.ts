import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { FaultName } from '../../protocol/faults.ts';
import { type TransactionSync, transactionSync } from '../../protocol/http-api.ts';
import type { Answer, CallbackRequest, MakeAttempt, Post } from '../callbacks/attempt.ts';
import { parseJson } from '../decode.ts';
import type { Directory } from '../directory.ts';
import type { DelayedOccurrence, Subject } from './active-faults.ts';
import type { Faults } from './faults.ts';
import type { LatePayments } from './payment-faults.ts';

/** Longest wait of a callback for the next one to its partner. */
const NEXT_TIMEOUT_MS = 30_000;

/** Answers that replace the partner's own. */
const ANSWERS: readonly (readonly [fault: FaultName, answer: Answer])[] = [
  ['partner-500', { status: 500, body: '', cut: false }],
  ['partner-201', { status: 201, body: '', cut: false }],
  ['partner-shape', { status: 200, body: '{"result":"ok"}', cut: false }],
];

export interface CallbackFaultsDeps {
  faults: Faults;
  latePayments: LatePayments;
  directory: Directory;
  log: Logger;
  /** Makes one further attempt of a callback. */
  resendCallback: (callbackId: string) => Promise<unknown>;
}

/** Attempts of callbacks with the faults of this place: the partner gets every POST (PROTOCOL.md, clause FLT-8). */
export function withCallbackFaults(make: MakeAttempt, deps: CallbackFaultsDeps): MakeAttempt {
  const { faults, log, resendCallback, latePayments, directory } = deps;
  const swapped = new Swapped();
  return async (to, how, stop) => {
    const told = toldIn(to.body);
    const subject = { boxes: boxesOf(told, directory), content: told?.content };
    const isFirst = to.tries === 0 && !to.byHand;
    const late = isFirst ? faults.delay('sync-late', subject) : undefined;
    await Promise.all([
      late?.delayed((late.seconds ?? 0) * 1000, stop),
      told && latePayments.until({ ...told, bankAccount: told.bankaccount }),
    ]);
    if (isFirst) await swapped.wait(to.url, () => faults.delay('sync-swapped', subject), stop);
    const overtake = swapped.overtaken(to.url);
    const post = answered(to, how.post, faults, { ...subject, isRepeated: !isFirst });
    const attempt = await make(to, { ...how, post }, stop);
    overtake();
    if (attempt.result === 'delivered' && !to.byHand && faults.take('sync-twice', subject)) {
      resendCallback(to.id).catch((error: unknown) =>
        log.error('callback-store-failed', { callback: to.id, reason: reasonOf(error) }),
      );
    }
    return attempt;
  };
}

/** Attempts that wait for the next one to their URL, at most one for each URL. */
class Swapped {
  readonly #waiting = new Map<string, AbortController>();

  async wait(url: string, hold: () => DelayedOccurrence | undefined, stop: AbortSignal): Promise<void> {
    const holding = this.#waiting.has(url) ? undefined : hold();
    if (holding === undefined) return;
    const next = new AbortController();
    this.#waiting.set(url, next);
    await holding.delayed(NEXT_TIMEOUT_MS, AbortSignal.any([stop, next.signal]));
    this.#waiting.delete(url);
  }

  /** Returns what to call after an attempt that begins now. */
  overtaken(url: string): () => void {
    const waiting = this.#waiting.get(url);
    return () => waiting?.abort();
  }
}

/** Posts as `post` does; the partner's answer to the callback may be replaced. */
function answered(to: CallbackRequest, post: Post, faults: Faults, subject: Subject): Post {
  return async (url, headers, body, signal) => {
    const answer = await post(url, headers, body, signal);
    // The request for a token is not concerned.
    if (body !== to.body) return answer;
    await faults.delay('partner-never', subject)?.delayed(Number.POSITIVE_INFINITY, signal);
    // The attempt was stopped during the wait. A fault that ended meanwhile lets the answer through.
    signal.throwIfAborted();
    return ANSWERS.find(([fault]) => faults.take(fault, subject) !== undefined)?.[1] ?? answer;
  };
}

/** The payment in a callback; undefined if it cannot be read, which does not stop the callback. */
function toldIn(body: string): TransactionSync | undefined {
  const json = parseJson(Buffer.from(body));
  return json.ok ? transactionSync.safeParse(json.value).data : undefined;
}

function boxesOf(told: TransactionSync | undefined, directory: Directory): string[] {
  if (told === undefined) return [];
  const { terminalCode, bankaccount } = told;
  return terminalCode === '' ? directory.boxesOf(bankaccount).map((it) => it.terminalCode) : [terminalCode];
}
