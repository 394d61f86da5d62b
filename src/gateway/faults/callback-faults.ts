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

/** A callback that is to come after the next one to its partner waits so long for it, and no longer. */
const NEXT_TIMEOUT_MS = 30_000;

/** What a partner's answer is taken for. */
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

/** Attempts that wait for the next one at their URL, one at each: the next one itself does not wait. */
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

  /** To be called after an attempt that begins here. */
  overtaken(url: string): () => void {
    const waiting = this.#waiting.get(url);
    return () => waiting?.abort();
  }
}

/** Posts as `post` does; what the partner answers to the callback itself may be taken for something else. */
function answered(to: CallbackRequest, post: Post, faults: Faults, subject: Subject): Post {
  return async (url, headers, body, signal) => {
    const answer = await post(url, headers, body, signal);
    // The token, which is asked for before, is none of it.
    if (body !== to.body) return answer;
    await faults.delay('partner-never', subject)?.delayed(Number.POSITIVE_INFINITY, signal);
    // The attempt is over, and nobody hears of its answer; a fault that is ended meanwhile has it heard at once.
    signal.throwIfAborted();
    return ANSWERS.find(([fault]) => faults.take(fault, subject) !== undefined)?.[1] ?? answer;
  };
}

/** Never throws: a callback that nobody understands is brought all the same. */
function toldIn(body: string): TransactionSync | undefined {
  const json = parseJson(Buffer.from(body));
  return json.ok ? transactionSync.safeParse(json.value).data : undefined;
}

function boxesOf(told: TransactionSync | undefined, directory: Directory): string[] {
  if (told === undefined) return [];
  const { terminalCode, bankaccount } = told;
  return terminalCode === '' ? directory.boxesOf(bankaccount).map((it) => it.terminalCode) : [terminalCode];
}
