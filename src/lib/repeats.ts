import type { Clock } from './clock.ts';
import type { LogFields, Logger } from './log.ts';

/** What others can cause as often as they like. */
const REPEATABLE = /-(refused|dropped|ignored)$|^(message|mqtt-connection)-|^(unknown-fields|enrolment-asked)$/;
/** Of one kind so many are written as they come, the others of the interval are counted. */
const WRITTEN_MAX = 3;
const INTERVAL_MS = 60_000;
/** Kinds that are told apart at a time; beyond that by their event alone. */
const KINDS_MAX = 64;

interface Kind {
  sinceMs: number;
  count: number;
  /** Writes the newest of those that were only counted. */
  tell: ((repeated: number) => void) | undefined;
}

/**
 * A log in which what others can repeat cannot push everything else out (PROTOCOL.md, clause ERR-5): of the same event, code, and box
 * or address the first three in a minute are written at once. At the end of the minute, and when `ending` aborts, one
 * line more says the newest of the others, and how many they were (`repeated`).
 */
export function withoutRepeats(log: Logger, clock: Clock, ending: AbortSignal): Logger {
  const kinds = new Map<string, Kind>();
  const finish = (key: string, kind: Kind) => {
    if (kinds.get(key) === kind) kinds.delete(key);
    kind.tell?.(kind.count - WRITTEN_MAX);
    kind.tell = undefined;
  };
  const finishOver = () => {
    for (const [key, kind] of kinds) if (clock.monotonicMs() - kind.sinceMs >= INTERVAL_MS) finish(key, kind);
  };
  ending.addEventListener('abort', () => {
    for (const [key, kind] of kinds) finish(key, kind);
  });
  const count = (event: string, fields: LogFields, write: (fields: LogFields) => void) => {
    finishOver();
    const own = keyOf(event, fields);
    const key = kinds.has(own) || kinds.size < KINDS_MAX ? own : event;
    const kind = kinds.get(key) ?? { sinceMs: clock.monotonicMs(), count: 0, tell: undefined };
    kinds.set(key, kind);
    kind.count += 1;
    if (kind.count <= WRITTEN_MAX) write(fields);
    else kind.tell = (repeated) => write({ ...fields, repeated });
    if (kind.count === WRITTEN_MAX + 1) void clock.sleep(INTERVAL_MS).then(() => finish(key, kind));
  };
  const wrap = (to: Logger): Logger => {
    const counted =
      (level: 'info' | 'warn') =>
      (event: string, fields: LogFields = {}) =>
        REPEATABLE.test(event) ? count(event, fields, (all) => to[level](event, all)) : to[level](event, fields);
    return { info: counted('info'), warn: counted('warn'), error: to.error, with: (fields) => wrap(to.with(fields)) };
  };
  return wrap(log);
}

function keyOf(event: string, { code, box, address }: LogFields): string {
  // What is said of one box comes from whatever addresses others have.
  return JSON.stringify([event, code, box ?? address]);
}
