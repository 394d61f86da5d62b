import type { Writable } from 'node:stream';
import type { Clock } from './clock.ts';
import { withoutUnseen } from './text.ts';

export type LogLevel = 'info' | 'warn' | 'error';
export type LogFields = Record<string, string | number | boolean | null | undefined>;

/** Structured lines: an event name in kebab-case, a few fields. Field names that hold secrets are masked. */
export interface Logger {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** The same log with fields that every line carries. */
  with(fields: LogFields): Logger;
}

const SECRET_NAME = /secret|password|token|authorization|bearer|salt|privatekey/i;

/** Whether a field of this name may hold a secret and is masked wherever people read it. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** A longer value is cut: a log line must not be a way to fill a disk. */
const VALUE_CHARS_MAX = 500;

/**
 * A log that writes to `out`: JSON lines for machines, or `time level event key=value` for people.
 * What nobody sees is escaped in both, so that a payer's text cannot forge a line.
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
