import { reasonOf } from '../../lib/errors.ts';
import type { FaultName } from '../../protocol/faults.ts';
import type { TransactionSync } from '../../protocol/http-api.ts';
import { parseJson } from '../common/decode.ts';
import type { Directory } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { paymentOf } from '../money/callback-body.ts';
import type { Answer, CallbackRequest, MakeAttempt, Post } from '../money/callbacks/attempt.ts';
import type { DelayedOccurrence, Subject } from './active-faults.ts';
import type { Faults } from './faults.ts';
import type { LatePayments } from './payment-faults.ts';

/** The longest time that a callback waits for the next one to its partner. */
const NEXT_TIMEOUT_MS = 30_000;

/** Answers that replace the answer of the partner. */
const ANSWERS: readonly (readonly [fault: FaultName, answer: Answer])[] = [
  ['partner-500', { status: 500, body: '' }],
  ['partner-201', { status: 201, body: '' }],
  ['partner-shape', { status: 200, body: '{"result":"ok"}' }],
];

/** The faults of callbacks, and the parts that they use. */
interface CallbackEdge {
  faults: Faults;
  latePayments: LatePayments;
  /** Makes one more attempt of a callback. */
  resendCallback: (callbackId: string) => Promise<unknown>;
}

/** Adds the faults of callbacks to attempts. The partner still receives every POST (PROTOCOL.md, clause FLT-8). */
export function withCallbackFaults(
  make: MakeAttempt,
  { log }: World,
  { directory }: Stored,
  { faults, resendCallback, latePayments }: CallbackEdge,
): MakeAttempt {
  const swapped = new Swapped();
  return async (to, how, stop) => {
    const payment = paymentIn(to.body);
    const subject = { boxes: await boxesOf(payment, directory), content: payment?.content };
    const isFirst = to.tries === 0 && !to.byHand;
    const late = isFirst ? faults.delay('sync-late', subject) : undefined;
    await Promise.all([
      late?.delayed((late.seconds ?? 0) * 1000, stop),
      payment && latePayments.until({ ...payment, bankAccount: payment.bankaccount }),
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

/** Delays attempts until the next one to the same URL. At most one attempt waits for each URL. */
class Swapped {
  readonly #waiting = new Map<string, AbortController>();

  async wait(url: string, delay: () => DelayedOccurrence | undefined, stop: AbortSignal): Promise<void> {
    const fault = this.#waiting.has(url) ? undefined : delay();
    if (fault === undefined) return;
    const next = new AbortController();
    this.#waiting.set(url, next);
    await fault.delayed(NEXT_TIMEOUT_MS, AbortSignal.any([stop, next.signal]));
    this.#waiting.delete(url);
  }

  /** Returns a function that releases the waiting attempt. The caller calls it after an attempt that begins now. */
  overtaken(url: string): () => void {
    const waiting = this.#waiting.get(url);
    return () => waiting?.abort();
  }
}

/** Returns a `Post` in which a fault may replace the answer to the callback. */
function answered(to: CallbackRequest, post: Post, faults: Faults, subject: Subject): Post {
  return async (url, headers, body, signal) => {
    const answer = await post(url, headers, body, signal);
    // Faults do not change the request for a token.
    if (body !== to.body) return answer;
    await faults.delay('partner-never', subject)?.delayed(Number.POSITIVE_INFINITY, signal);
    // The attempt may have been stopped during the delay. If only the fault has ended, the answer passes.
    signal.throwIfAborted();
    return ANSWERS.find(([fault]) => faults.take(fault, subject) !== undefined)?.[1] ?? answer;
  };
}

/** Returns the payment in a callback. Undefined if it cannot be read. Then only faults of no box and content happen to it. */
function paymentIn(body: string): TransactionSync | undefined {
  const json = parseJson(Buffer.from(body));
  return json.ok ? paymentOf(json.value) : undefined;
}

async function boxesOf(payment: TransactionSync | undefined, directory: Directory): Promise<string[]> {
  if (payment === undefined) return [];
  const { terminalCode, bankaccount } = payment;
  if (terminalCode !== '') return [terminalCode];
  return (await directory.boxesOf(bankaccount)).map((it) => it.terminalCode);
}
