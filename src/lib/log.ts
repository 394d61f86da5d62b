import type { Writable } from 'node:stream';
import { type Clock, systemClock } from './clock.ts';
import { withoutUnseen } from './text.ts';

export type LogLevel = 'info' | 'warn' | 'error';
export type LogFields = Record<string, string | number | boolean | null | undefined>;

/**
 * Writes structured log lines: an event name in kebab-case with a few fields. It masks fields with names of secrets.
 */
export interface Logger {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** Returns the same log with fields that are added to every line. */
  with(fields: LogFields): Logger;
}

const SECRET_NAME = /secret|password|token|authorization|bearer|salt|privatekey/i;

/** Returns whether a field of this name may hold a secret. Output for people masks it. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** The log cuts longer values, so that its lines cannot fill a disk. */
const VALUE_CHARS_MAX = 500;

/**
 * Logs to `out`: JSON lines for machines, or `time level event key=value` for people. Both escape invisible characters,
 * so that text from outside cannot forge a line.
 */
export function createLogger(out: Writable, clock: Clock, format: 'json' | 'text', base: LogFields = {}): Logger {
  const write = (level: LogLevel, event: string, fields: LogFields = {}) => {
    const time = new Date(clock.wallMs()).toISOString();
    const entries = Object.entries({ ...base, ...fields })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [name, present(name, value)] as const);
    const line =
      format === 'json'
        ? JSON.stringify({ time, level, event, ...Object.fromEntries(entries) })
        : [time, level.padEnd(5), event, ...entries.map(([name, value]) => `${name}=${quoted(value)}`)].join(' ');
    out.write(`${withoutUnseen(line)}\n`);
  };
  return {
    info: (event, fields) => write('info', event, fields),
    warn: (event, fields) => write('warn', event, fields),
    error: (event, fields) => write('error', event, fields),
    with: (fields) => createLogger(out, clock, format, { ...base, ...fields }),
  };
}

function present(name: string, value: LogFields[string]): LogFields[string] {
  if (isSecretName(name)) return '***';
  if (typeof value === 'string' && value.length > VALUE_CHARS_MAX) return `${value.slice(0, VALUE_CHARS_MAX)}…`;
  return value;
}

function quoted(value: LogFields[string]): string {
  const text = String(value);
  return /^[\w.:/@+-]+$/.test(text) ? text : JSON.stringify(text);
}

/** Outsiders can cause these events as often as they like. */
const REPEATABLE = /-(refused|dropped|ignored)$|^(message|mqtt-connection)-|^enrolment-requested$/;
/** A cause of an unexpected error may repeat. Other errors each report something different. */
const REPEATABLE_ERROR = /-(failed|not-sent)$/;
/** The log writes this many events of one kind per interval and only counts the rest. */
const WRITTEN_MAX = 3;
const INTERVAL_MS = 60_000;
/** The log counts at most this many kinds of events separately. Beyond that, it counts by event only. */
const KINDS_MAX = 64;

interface Kind {
  sinceMs: number;
  count: number;
  /** Writes the newest line that was only counted. */
  tell: ((repeated: number) => void) | undefined;
}

/**
 * Limits repeated lines, so that outsiders cannot flood the log (PROTOCOL.md, clause ERR-5). Per event, code, and box
 * or address, the first three lines in a minute are written at once; for errors also per reason. At the end of the
 * minute, and when `ending` aborts, the newest other line follows with their number (`repeated`).
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
  const count = (own: string, event: string, fields: LogFields, write: (fields: LogFields) => void) => {
    finishOver();
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
      (event: string, fields: LogFields = {}) => {
        const write = (all: LogFields) => to[level](event, all);
        if (REPEATABLE.test(event)) count(keyOf(event, fields), event, fields, write);
        else write(fields);
      };
    const error = (event: string, fields: LogFields = {}) => {
      const write = (all: LogFields) => to.error(event, all);
      // A second failure for another reason must not hide behind the first.
      if (REPEATABLE_ERROR.test(event)) count(keyOf(event, fields, fields.reason), event, fields, write);
      else write(fields);
    };
    return { info: counted('info'), warn: counted('warn'), error, with: (fields) => wrap(to.with(fields)) };
  };
  return wrap(log);
}

function keyOf(event: string, { code, box, address }: LogFields, reason?: LogFields[string]): string {
  // Events about one box count together, whatever address they come from.
  return JSON.stringify([event, code, box ?? address, reason]);
}

/** Logs to standard error: text on a terminal, JSON otherwise. It counts repeated events. */
export function stderrLog(): Logger {
  // The reader of the log may exit, so this error is ignored.
  process.stderr.on('error', () => undefined);
  const ending = new AbortController();
  process.once('exit', () => ending.abort());
  const log = createLogger(process.stderr, systemClock, process.stderr.isTTY ? 'text' : 'json');
  return withoutRepeats(log, systemClock, ending.signal);
}
