import type { Clock } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { FaultName } from '../../protocol/faults.ts';
import { type TransactionSync, transactionSync } from '../../protocol/http-api.ts';
import type { MakeAttempt, Outgoing } from '../callbacks/attempt.ts';
import type { Answer, Post } from '../callbacks/post.ts';
import type { Directory } from '../directory.ts';
import { parseJson } from '../domain/decode.ts';
import type { Faults } from './faults.ts';
import type { HeldBack } from './held-back.ts';

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
  heldBack: HeldBack;
  directory: Directory;
  clock: Clock;
  log: Logger;
  /** Makes one attempt more of a callback. */
  sendAgain: (callbackId: string) => Promise<unknown>;
}

/** Attempts of callbacks with the faults of this place: the partner gets every POST (PROTOCOL.md, clause FLT-8). */
export function withCallbackFaults(make: MakeAttempt, deps: CallbackFaultsDeps): MakeAttempt {
  const { faults, clock, log, sendAgain } = deps;
  /** By URL, those that wait for the next one. */
  const waiting = new Map<string, Set<AbortController>>();
  return async (to, how, stop) => {
    const told = toldIn(to.body);
    const subject = { boxes: boxesOf(told, deps.directory), content: told?.content };
    const isFirst = to.tries === 0 && !to.byHand;
    const late = isFirst ? faults.take('sync-late', subject) : undefined;
    const waitMs = Math.max((late?.seconds ?? 0) * 1000, heldBackMs(told, deps.heldBack));
    if (waitMs > 0) await clock.sleep(waitMs, stop);
    if (isFirst && faults.take('sync-swapped', subject)) {
      const own = waiting.get(to.url) ?? new Set();
      const next = new AbortController();
      waiting.set(to.url, own.add(next));
      await clock.sleep(NEXT_TIMEOUT_MS, AbortSignal.any([stop, next.signal]));
      own.delete(next);
    }
    const post = answered(
      to,
      how.post,
      (fault) => faults.take(fault, { ...subject, isRepeated: !isFirst }) !== undefined,
    );
    const attempt = await make(to, { ...how, post }, stop);
    for (const next of waiting.get(to.url) ?? []) next.abort();
    if (attempt.result === 'delivered' && !to.byHand && faults.take('sync-twice', subject)) {
      sendAgain(to.id).catch((error: unknown) =>
        log.error('callback-stuck', { callback: to.id, reason: reasonOf(error) }),
      );
    }
    return attempt;
  };
}

/** Posts as `post` does; what the partner answers to the callback itself may be taken for something else. */
function answered(to: Outgoing, post: Post, happens: (fault: FaultName) => boolean): Post {
  return async (url, headers, body, signal) => {
    const answer = await post(url, headers, body, signal);
    // The token, which is asked for before, is none of it.
    if (body !== to.body) return answer;
    if (happens('partner-never')) {
      // An attempt that ended with the answer hears of no end any more.
      signal.throwIfAborted();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    }
    return ANSWERS.find(([fault]) => happens(fault))?.[1] ?? answer;
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

function heldBackMs(told: TransactionSync | undefined, heldBack: HeldBack): number {
  return told === undefined ? 0 : heldBack.leftMs({ ...told, bankAccount: told.bankaccount });
}
