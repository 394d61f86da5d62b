import { activeFaultView } from '../../protocol/faults.ts';
import { generateResponse } from '../../protocol/http-api.ts';
import type { Verb } from './steps.ts';

/** The knowledge of a variable before anything runs. */
export interface KnownVariable {
  /** The names of its parts; undefined where they are not known. */
  fields?: ReadonlySet<string>;
  /** True for the counter of a `repeat` or of the boxes. */
  isCounter?: true;
}

const fields = (...names: string[]): KnownVariable => ({ fields: new Set(names) });
const ORDER = Object.keys(generateResponse.shape);

/** Returns the result of a verb; undefined for verbs without one. */
export function resultOf(verb: Verb): KnownVariable | undefined {
  switch (verb) {
    case 'generate':
    case 'push':
      return fields(...ORDER, 'answer');
    case 'pay':
      return fields('transactionId', 'amount', 'content', 'bankAccount', 'transType', 'answer');
    case 'cancel':
      return fields('answer');
    case 'enrol':
      return fields('answer', 'code');
    case 'fault':
      return fields(...Object.keys(activeFaultView.shape));
    default:
      return undefined;
  }
}

/** Holds the names that are known at one place of a scenario. */
export class Names {
  readonly #known: Map<string, KnownVariable | string>;

  private constructor(known: Map<string, KnownVariable | string>) {
    this.#known = known;
  }

  /** Returns the variables of every scenario. */
  static ofScenario(boxes: number): Names {
    return new Names(
      new Map([
        ['seed', fields()],
        ['unique', fields()],
        ['account', fields('bankAccount', 'bankCode', 'userBankName')],
        ['boxes', fields(...Array.from({ length: boxes }, (_, index) => String(index)))],
        ['box', fields('terminalCode', 'serialNumber')],
      ]),
    );
  }

  copy(): Names {
    return new Names(new Map(this.#known));
  }

  get(name: string): KnownVariable | undefined {
    const known = this.#known.get(name);
    return typeof known === 'string' ? undefined : known;
  }

  /** Returns why a variable that was made cannot be used here. */
  whyLost(name: string): string | undefined {
    const known = this.#known.get(name);
    return typeof known === 'string' ? known : undefined;
  }

  set(name: string, known: KnownVariable): void {
    this.#known.set(name, known);
  }

  lose(name: string, why: string): void {
    this.#known.set(name, why);
  }

  /** Returns whether a counter of this name would hide another variable. */
  isUsed(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Returns the kind of a name's variable, for a message. */
  whatIs(name: string): string {
    return this.get(name)?.isCounter === true ? 'a counter of the steps around it' : 'a variable';
  }

  /** Returns the names that were made since `before` was copied. */
  changedSince(before: Names): string[] {
    return [...this.#known].filter(([name, known]) => before.#known.get(name) !== known).map(([name]) => name);
  }

  /** Takes over what a copy knows of a name. */
  take(name: string, inner: Names): void {
    const known = inner.#known.get(name);
    if (known !== undefined) this.#known.set(name, known);
  }

  drop(name: string): void {
    this.#known.delete(name);
  }

  /** Returns every name that can be used. */
  all(): string[] {
    return [...this.#known].filter(([, known]) => typeof known !== 'string').map(([name]) => name);
  }
}

/** Returns all names in order, for a message. */
export function sortedNames(names: Names): string {
  return names.all().sort().join(', ');
}
