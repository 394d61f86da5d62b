import { PayboxError } from '../../lib/errors.ts';

const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 };
/** For example `300ms`, `5s`, `2min` or `1h`. */
export const DURATION = /^(\d{1,9}(?:\.\d{1,3})?) ?(ms|s|min|h)$/;
const ONE = DURATION.source.slice(1, -1);
/** For example `5s` or `30s to 5min`. */
export const SPAN = new RegExp(`^${ONE}(?: to ${ONE})?$`);
const VARIABLE = /\$\{([^{}]*)\}/g;

/** `300ms`, `5s`, `2min` or `1h` in milliseconds; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  const [, number, unit = ''] = DURATION.exec(text) ?? [];
  const unitMs = UNITS_MS[unit];
  return number === undefined || unitMs === undefined ? undefined : Number(number) * unitMs;
}

/** Shortest and longest time in milliseconds of `5s` or `30s to 5min`; undefined for anything else. */
export function spanMs(text: string): readonly [number, number] | undefined {
  const [fromMs, toMs = fromMs, ...more] = text.split(' to ').map(durationMs);
  if (fromMs === undefined || toMs === undefined || more.length > 0 || fromMs > toMs) return undefined;
  return [fromMs, toMs];
}

/** Variables. An inner scope sees those of the outer one and hides its own from it. */
export class Scope {
  readonly #own: Map<string, unknown>;
  readonly #outer: Scope | undefined;

  constructor(values: Readonly<Record<string, unknown>>, outer?: Scope) {
    this.#own = new Map(Object.entries(values));
    this.#outer = outer;
  }

  set(name: string, value: unknown): void {
    this.#own.set(name, value);
  }

  inner(values: Readonly<Record<string, unknown>>): Scope {
    return new Scope(values, this);
  }

  /** Replaces every `${…}` in the value. A text that is only a variable becomes the variable's value. Throws PayboxError. */
  fill<T>(value: T): T {
    return this.#filled(value) as T;
  }

  #filled(value: unknown): unknown {
    if (typeof value === 'string') return this.#filledText(value);
    if (Array.isArray(value)) return value.map((it) => this.#filled(it));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, this.#filled(it)]));
  }

  #filledText(text: string): unknown {
    const [only] = text.matchAll(VARIABLE);
    if (only?.[0] === text) return this.#lookUp(only[1] ?? '');
    return text.replaceAll(VARIABLE, (_, path: string) => String(this.#lookUp(path)));
  }

  #lookUp(path: string): unknown {
    const [name = '', ...keys] = path.trim().split('.');
    let value = this.#find(name);
    for (const key of keys) {
      value =
        typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;
    }
    if (value !== undefined) return value;
    const known = [...this.#names()].sort().join(', ');
    throw new PayboxError('VARIABLE', `\${${path}} is not defined here; known variables: ${known}`, {
      severity: 'fatal',
    });
  }

  #find(name: string): unknown {
    return this.#own.has(name) ? this.#own.get(name) : this.#outer === undefined ? undefined : this.#outer.#find(name);
  }

  #names(): Set<string> {
    const outer = this.#outer === undefined ? [] : this.#outer.#names();
    return new Set([...outer, ...this.#own.keys()]);
  }
}

/**
 * Why `actual` is not as expected, with its path; undefined when it is. Objects are compared by the expected keys only, lists
 * completely. A number equals a text that reads the same.
 */
export function difference(actual: unknown, expected: unknown, path = ''): string | undefined {
  if (typeof expected === 'object' && expected !== null) {
    if (typeof actual !== 'object' || actual === null) return `${path}: expected an object, is ${shown(actual)}`;
    if (Array.isArray(expected) && !(Array.isArray(actual) && actual.length === expected.length)) {
      return `${path}: expected ${shown(expected)}, is ${shown(actual)}`;
    }
    for (const [key, part] of Object.entries(expected)) {
      const value: unknown = Object.getOwnPropertyDescriptor(actual, key)?.value;
      const problem = difference(value, part, path === '' ? key : `${path}.${key}`);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  const isSame = actual === expected || (isPlain(actual) && isPlain(expected) && String(actual) === String(expected));
  return isSame ? undefined : `${path}: expected ${shown(expected)}, is ${shown(actual)}`;
}

function isPlain(value: unknown): boolean {
  return ['string', 'number', 'boolean'].includes(typeof value);
}

const SHOWN_CHARS_MAX = 300;

/** A value in one line, for messages. */
export function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : JSON.stringify(value);
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}
