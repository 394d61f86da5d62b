import { CODES } from '../../protocol/codes.ts';
import {
  BOX_ALIVE_MAX_MS,
  BOX_ALIVE_MS,
  type DownBody,
  type DownOf,
  SPREAD_MAX_MS,
  type UpOf,
} from '../../protocol/messages.ts';
import type { Box } from '../common/directory.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

/** The reason for refusing a hello. */
export type Refusal = Pick<DownOf<'refused'>, 'code' | 'reason' | 'disabled' | 'shard'>;

/**
 * Returns the box that said hello under this login, or the reason for refusing it, which is logged (PROTOCOL.md,
 * clauses MSG-4 and SHA-2).
 */
export function checkHello(
  box: Box | undefined,
  login: string,
  { terminalCode, serialNumber }: UpOf<'hello'>,
  { log }: World,
): { box: Box } | { refusal: Refusal } {
  const isThisBox = box?.terminalCode === terminalCode && box.serialNumber === serialNumber;
  if (!isThisBox || box.disabled) {
    const code = 'NOT_REGISTERED';
    const reason = CODES[isThisBox ? 'BOX_DISABLED' : code];
    // A disabled box asks every few seconds. Its log lines would hide the others.
    if (!isThisBox) log.warn('box-refused', { box: login, code, reason, saidToBe: terminalCode });
    return { refusal: { code, reason, disabled: isThisBox } };
  }
  return { box };
}

/** Returns the welcome of a box, with the interval of its signs of life. */
export async function welcomeOf(
  box: Box,
  aliveMs: number,
  { config: { sandbox, sandboxMark } }: World,
  { directory, store }: Stored,
): Promise<DownBody> {
  return {
    type: 'welcome',
    link: await directory.accountOf(box),
    openPushIds: await store.orders.openPushIds(box.terminalCode),
    mode: sandbox ? 'sandbox' : 'live',
    sandboxMark: sandbox && sandboxMark,
    ...namedAliveMs(aliveMs),
  };
}

/** Returns the interval as a field. It is left out if it is `BOX_ALIVE_MS`, which boxes of earlier versions use. */
export function namedAliveMs(aliveMs: number): { aliveMs?: number } {
  return aliveMs === BOX_ALIVE_MS ? {} : { aliveMs };
}

/** How many signs of life a hub asks for per second, whatever the number of its boxes (PROTOCOL.md, clause MSG-11). */
const ALIVE_PER_SECOND_MAX = 200;

/** How long the gateway works on one hello: 1.5 ms over SQLite, more over PostgreSQL. */
const HELLO_MS = 2;
/** Below this number of boxes, all hellos are answered within a moment. */
const SPREAD_FROM_BOXES = 100;

/**
 * Returns over how many milliseconds this many boxes spread their hellos after a return of the gateway (PROTOCOL.md,
 * clause PRE-6).
 */
export function spreadMsFor(boxes: number): number {
  return boxes < SPREAD_FROM_BOXES ? 0 : Math.min(Math.round(boxes * HELLO_MS), SPREAD_MAX_MS);
}

/** Returns the interval of the signs of life of each of this many boxes, in milliseconds. */
export function aliveMsFor(boxes: number): number {
  const neededMs = Math.ceil((boxes * 1000) / ALIVE_PER_SECOND_MAX);
  return Math.min(Math.max(neededMs, BOX_ALIVE_MS), BOX_ALIVE_MAX_MS);
}
