import { PayboxError } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { evaluate, mistake, parseExpression } from './expression.ts';

/** An expression in a text, between `${` and `}`. */
export const IN_TEXT = /\$\{([^{}]*)\}/g;

/** Marks a variable that is no longer usable, with the reason. */
class Lost {
  readonly why: string;

  constructor(why: string) {
    this.why = why;
  }
}

/** The reason why variables that several lists of a `parallel` make cannot be used after it. */
export const MADE_TWICE = 'is made in several lists of `parallel`: give each its own name with `as`';
/** The reason why variables of a `for each box` cannot be used after it. */
export const MADE_PER_BOX = 'is made for each box: use it there';

/** Holds variables. Inner scopes see those of outer ones. */
export class Scope {
  readonly #own: Map<string, unknown>;
  readonly #outer: Scope | undefined;
  readonly #isLoop: boolean;

  constructor(values: Readonly<Record<string, unknown>>, outer?: Scope, isLoop = false) {
    this.#own = new Map(Object.entries(values));
    this.#outer = outer;
    this.#isLoop = isLoop;
  }

  set(name: string, value: unknown): void {
    if (this.#isLoop && this.#outer !== undefined) this.#outer.set(name, value);
    else this.#own.set(name, value);
  }

  /** Returns a scope for the steps of a `repeat`. These values end with it, the variables that its steps make stay. */
  loop(values: Readonly<Record<string, unknown>>): Scope {
    return new Scope(values, this, true);
  }

  /** Returns a scope for steps that run beside others. The others do not see what these steps make. */
  branch(values: Readonly<Record<string, unknown>>): Scope {
    return new Scope(values, this);
  }

  /**
   * Takes over what branches made. `fixed` are the names that the branches got. A name that two of them made becomes
   * unusable.
   */
  adopt(branches: readonly Scope[], fixed: readonly string[]): void {
    const makers = Map.groupBy(
      branches.flatMap((branch) => [...branch.#own].filter(([name]) => !fixed.includes(name))),
      ([name]) => name,
    );
    for (const [name, made] of makers) this.set(name, made.length === 1 ? made[0]?.[1] : new Lost(MADE_TWICE));
  }

  /** Makes unusable what the steps of each box made, so that nobody takes one box's value for another's. */
  forget(branches: readonly Scope[], fixed: readonly string[]): void {
    const names = new Set(branches.flatMap((branch) => [...branch.#own.keys()]));
    for (const name of names) if (!fixed.includes(name)) this.set(name, new Lost(MADE_PER_BOX));
  }

  /** Replaces every `${…}` in the value. A text that is only an expression becomes its value. Throws PayboxError. */
  fill<T>(value: T, random: Random): T {
    return this.#filled(value, random) as T;
  }

  /** Returns the value of a variable; undefined if there is none. */
  valueOf(name: string): unknown {
    const value = this.#find(name);
    return value instanceof Lost ? undefined : value;
  }

  #filled(value: unknown, random: Random): unknown {
    if (typeof value === 'string') return this.#filledText(value, random);
    if (Array.isArray(value)) return value.map((it) => this.#filled(it, random));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, this.#filled(it, random)]));
  }

  #filledText(text: string, random: Random): unknown {
    const [only] = text.matchAll(IN_TEXT);
    if (only?.[0] === text) return this.#evaluated(only[1] ?? '', random);
    return text.replaceAll(IN_TEXT, (_, expression: string) => String(this.#evaluated(expression, random)));
  }

  #evaluated(text: string, random: Random): unknown {
    try {
      return evaluate(parseExpression(text), (name, keys) => this.#lookUp(name, keys), random);
    } catch (error) {
      if (!(error instanceof PayboxError) || error.message.startsWith('${')) throw error;
      throw mistake(`\${${text}}: ${error.message}`);
    }
  }

  #lookUp(name: string, keys: readonly string[]): unknown {
    let value = this.#find(name);
    if (value instanceof Lost) throw mistake(`\${${name}} ${value.why}`);
    for (const key of keys) {
      value =
        typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, key)?.value : undefined;
    }
    if (value !== undefined) return value;
    const known = [...this.#names()].sort().join(', ');
    throw mistake(`\${${[name, ...keys].join('.')}} is not defined here; known variables: ${known}`);
  }

  #find(name: string): unknown {
    return this.#own.has(name) ? this.#own.get(name) : this.#outer === undefined ? undefined : this.#outer.#find(name);
  }

  #names(): Set<string> {
    const outer = this.#outer === undefined ? [] : this.#outer.#names();
    return new Set([...outer, ...this.#own.keys()]);
  }
}
