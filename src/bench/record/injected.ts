import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { faultOrder, standingFault } from '../../protocol/faults.ts';
import type { Call } from './calls.ts';
import { durationText } from './durations.ts';
import { type Line, line, note } from './line.ts';
import type { Stand } from './stand.ts';

const END_ALL = { end: 'all' };
const FAULTS = '/_mock/faults';
const KEYS_ROTATED = '/_mock/keys/rotate';
const RESENT = /^\/_mock\/callbacks\/[^/]+\/resend$/;

/** Behind `lines`, where faults may still stand: one that did not happen in the session need not happen in its replay. */
export function endOfFaults(lines: readonly Line[]): Line[] {
  const last = lines.findLast(({ step }) => step !== undefined && 'fault' in step && isOfFaultByName(step.fault));
  if (last === undefined || isDeepStrictEqual(last.step?.fault, END_ALL)) return [];
  return [line(lines.at(-1)?.atMs ?? last.atMs, { fault: END_ALL })];
}

function isOfFaultByName(args: unknown): boolean {
  return typeof args === 'string' || (typeof args === 'object' && args !== null && ('inject' in args || 'end' in args));
}

/** What owners did besides orders, as steps or notes. */
export class OwnersDeeds {
  readonly #stand: Stand;
  /** What faults are called, by their ids. */
  readonly #names = new Map<string, string>();

  constructor(stand: Stand) {
    this.#stand = stand;
  }

  /** Undefined for what is no part of a session. */
  lineOf(call: Call): Line | undefined {
    const { atMs, method, path, status } = call;
    if (path === KEYS_ROTATED) return note(atMs, 'the gateway got another key to sign with');
    if (RESENT.test(path)) return note(atMs, 'a callback was sent again by hand, which no step can do');
    if (!path.startsWith(FAULTS) || status >= 300) return undefined;
    if (method === 'POST') return this.#inject(call);
    if (path === FAULTS) return line(atMs, { fault: END_ALL });
    const name = this.#names.get(path.slice(FAULTS.length + 1));
    return name === undefined ? undefined : line(atMs, { fault: { end: name } });
  }

  #inject({ atMs, body, answer }: Call): Line | undefined {
    const order = faultOrder.safeParse(body);
    if (!order.success) return undefined;
    const standing = z.looseObject(standingFault.pick({ id: true }).shape).safeParse(answer);
    const { fault, box, content, times, seconds, chance } = order.data;
    if (standing.success) this.#names.set(standing.data.id, fault);
    const said = {
      ...(content === undefined ? {} : { content }),
      ...(times === undefined ? {} : { times }),
      ...(seconds === undefined ? {} : { for: durationText(seconds * 1_000) }),
      ...(chance === undefined ? {} : { chance }),
    };
    const args = Object.keys(said).length === 0 ? fault : { inject: fault, ...said };
    return line(atMs, { ...this.#stand.boxKey(box), fault: args });
  }
}
