import { PayboxError } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { isSame, shown } from './difference.ts';

/** The longest expression between `${` and `}`. It limits the parser's depth too. */
const EXPRESSION_CHARS_MAX = 200;

export type Expression =
  | { kind: 'literal'; value: string | number | boolean }
  | { kind: 'variable'; name: string; keys: readonly string[] }
  | { kind: 'call'; name: Builtin; args: readonly Expression[] }
  | { kind: 'binary'; sign: Sign; left: Expression; right: Expression }
  | { kind: 'not' | 'negative'; operand: Expression };

/**
 * The functions and their arguments, for messages and the manual. The last three divide and name their way of rounding.
 */
const BUILTINS = {
  random: 'random(FROM, TO)',
  pick: 'pick(A, B, …)',
  floor: 'floor(A / B)',
  round: 'round(A / B)',
  ceil: 'ceil(A / B)',
} as const;
type Builtin = keyof typeof BUILTINS;

const COMPARISONS = ['==', '!=', '<=', '>=', '<', '>'] as const;
const SIGNS = [...COMPARISONS, '+', '-', '*', '%', 'and', 'or'] as const;
type Sign = (typeof SIGNS)[number];
/** A hyphen in a name belongs to the name, so a minus needs a space before it. */
const TOKEN = /\s*(?:(\d+)(?![\w.])|'([^']*)'|([A-Za-z][\w-]*(?:\.[\w-]+)*)|(==|!=|<=|>=|[<>+\-*/%(),]))/y;
const PICKS_MAX = 50;

interface Token {
  kind: 'number' | 'text' | 'word' | 'sign' | 'end';
  text: string;
}

/** Parses the text between `${` and `}`. Throws PayboxError with the code VARIABLE. */
export function parseExpression(text: string): Expression {
  if (text.length > EXPRESSION_CHARS_MAX) {
    throw mistake(`has ${text.length} characters, expected at most ${EXPRESSION_CHARS_MAX}`);
  }
  return new Parser(tokensOf(text)).whole();
}

/** Yields the variables of an expression. */
export function* variablesIn(it: Expression): Iterable<Extract<Expression, { kind: 'variable' }>> {
  if (it.kind === 'variable') yield it;
  else if (it.kind === 'call') for (const argument of it.args) yield* variablesIn(argument);
  else if (it.kind === 'binary') yield* [...variablesIn(it.left), ...variablesIn(it.right)];
  else if (it.kind === 'not' || it.kind === 'negative') yield* variablesIn(it.operand);
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  TOKEN.lastIndex = 0;
  const token = new RegExp(TOKEN);
  const end = text.trimEnd().length;
  while (token.lastIndex < end) {
    const from = token.lastIndex;
    const [found, number, quoted, word, sign] = token.exec(text) ?? [];
    if (found === undefined) throw mistake(`${shown(text.slice(from).trim())} is not understood`);
    if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (quoted !== undefined) tokens.push({ kind: 'text', text: quoted });
    else if (word !== undefined) tokens.push({ kind: 'word', text: word });
    else tokens.push({ kind: 'sign', text: sign ?? '' });
  }
  return tokens;
}

const END: Token = { kind: 'end', text: '' };

/** Parses an expression. It has one method for each rank of signs, the weakest first. */
class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const all = this.#or();
    if (this.#next.kind !== 'end') {
      throw mistake(this.#next.text === '/' ? DIVISION : `${shown(this.#next.text)} is not expected there`);
    }
    return all;
  }

  get #next(): Token {
    return this.#tokens[this.#at] ?? END;
  }

  #or(): Expression {
    return this.#chain(['or'], () => this.#and());
  }

  #and(): Expression {
    return this.#chain(['and'], () => this.#not());
  }

  #not(): Expression {
    return this.#takes('not') ? { kind: 'not', operand: this.#not() } : this.#comparison();
  }

  #comparison(): Expression {
    const left = this.#sum();
    const sign = COMPARISONS.find((it) => this.#takes(it));
    return sign === undefined ? left : { kind: 'binary', sign, left, right: this.#sum() };
  }

  #sum(): Expression {
    return this.#chain(['+', '-'], () => this.#product());
  }

  #product(): Expression {
    return this.#chain(['*', '%'], () => this.#factor());
  }

  #chain(signs: readonly Sign[], operand: () => Expression): Expression {
    let left = operand();
    for (;;) {
      const sign = signs.find((it) => this.#takes(it));
      if (sign === undefined) return left;
      left = { kind: 'binary', sign, left, right: operand() };
    }
  }

  #factor(): Expression {
    if (this.#takes('-')) return { kind: 'negative', operand: this.#factor() };
    if (this.#takes('(')) {
      const inner = this.#or();
      this.#expect(')');
      return inner;
    }
    const { kind, text } = this.#next;
    this.#at += 1;
    if (kind === 'number') return { kind: 'literal', value: wholeNumber(text) };
    if (kind === 'text') return { kind: 'literal', value: text };
    if (kind !== 'word' || ['and', 'or', 'not'].includes(text)) {
      throw mistake(kind === 'end' ? 'something is missing at the end' : `${shown(text)} is not expected there`);
    }
    if (text === 'true' || text === 'false') return { kind: 'literal', value: text === 'true' };
    if (this.#takes('(')) return this.#call(text);
    const [name = '', ...keys] = text.split('.');
    return { kind: 'variable', name, keys };
  }

  #call(name: string): Expression {
    if (!isBuiltin(name)) {
      throw mistake(`there is no function ${name}; expected one of ${Object.values(BUILTINS).join(', ')}`);
    }
    const isDivision = name !== 'random' && name !== 'pick';
    const args = [isDivision ? this.#product() : this.#or()];
    while (args.length <= PICKS_MAX && this.#takes(isDivision ? '/' : ',')) {
      args.push(isDivision ? this.#factor() : this.#or());
    }
    const isRight = name === 'pick' ? args.length <= PICKS_MAX : args.length === 2;
    if (!isRight || !this.#takes(')')) throw mistake(`expected ${BUILTINS[name]}`);
    return { kind: 'call', name, args };
  }

  #takes(text: string): boolean {
    const { kind, text: next } = this.#next;
    if ((kind !== 'sign' && kind !== 'word') || next !== text) return false;
    this.#at += 1;
    return true;
  }

  #expect(text: string): void {
    if (this.#takes(text)) return;
    throw mistake(this.#next.text === '/' ? DIVISION : `expected ${text}`);
  }
}

const DIVISION = 'a division says how it rounds: floor(a / b), round(a / b) (halves up) or ceil(a / b)';

function isBuiltin(name: string): name is Builtin {
  return Object.hasOwn(BUILTINS, name);
}

/** Returns the value of a variable, or of a part of it. */
export type LookUp = (name: string, keys: readonly string[]) => unknown;

/** Returns the value of an expression. Numbers are whole and exact. Throws PayboxError with the code VARIABLE. */
export function evaluate(it: Expression, lookUp: LookUp, random: Random): unknown {
  const inner = (part: Expression) => evaluate(part, lookUp, random);
  switch (it.kind) {
    case 'literal':
      return it.value;
    case 'variable':
      return lookUp(it.name, it.keys);
    case 'not':
      return !truth(inner(it.operand));
    case 'negative':
      return exact(-wholeNumber(inner(it.operand)));
    case 'call':
      return called(it.name, it.args.map(inner), random);
    case 'binary':
      if (it.sign === 'and') return truth(inner(it.left)) && truth(inner(it.right));
      if (it.sign === 'or') return truth(inner(it.left)) || truth(inner(it.right));
      return combined(it.sign, inner(it.left), inner(it.right));
  }
}

function combined(sign: Sign, left: unknown, right: unknown): number | boolean {
  if (sign === '==') return isSame(left, right);
  if (sign === '!=') return !isSame(left, right);
  const [a, b] = [wholeNumber(left), wholeNumber(right)];
  if (sign === '<') return a < b;
  if (sign === '<=') return a <= b;
  if (sign === '>') return a > b;
  if (sign === '>=') return a >= b;
  if (sign === '+') return exact(a + b);
  if (sign === '-') return exact(a - b);
  return sign === '*' ? exact(a * b) : remainder(a, b);
}

function called(name: Builtin, args: readonly unknown[], random: Random): unknown {
  if (name === 'pick') return args[Math.floor(random.fraction() * args.length)];
  const [a, b] = [wholeNumber(args[0]), wholeNumber(args[1])];
  if (name === 'random') {
    if (a > b) throw mistake(`random(${a}, ${b}): expected the smaller number first`);
    return a + Math.floor(random.fraction() * exact(b - a + 1));
  }
  const rest = remainder(a, b);
  const down = (a - rest) / b;
  if (name === 'floor' || rest === 0) return exact(down);
  if (name === 'ceil') return exact(down + 1);
  return exact(Math.abs(rest) >= Math.abs(b) - Math.abs(rest) ? down + 1 : down);
}

/** Returns the remainder of a division that rounds down. It has the sign of the divisor. */
function remainder(a: number, b: number): number {
  if (b === 0) throw mistake(`${a} is divided by zero`);
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest + 0;
}

/** Returns a whole number. Texts of digits count as numbers, because services send amounts as texts. */
function wholeNumber(value: unknown): number {
  const isText = typeof value === 'string' && /^-?\d{1,16}$/.test(value);
  const number = isText ? Number(value) : value;
  if (typeof number === 'number' && Number.isSafeInteger(number)) return number;
  throw mistake(`expected a whole number, is ${shown(value)}`);
}

function exact(value: number): number {
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  throw mistake('the number is too large to be exact');
}

/** Returns true or false. Throws PayboxError for anything else. */
export function truth(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw mistake(`expected true or false, is ${shown(value)}`);
}

/** Returns the error for a mistake in an expression or its values, without the expression. */
export function mistake(words: string): PayboxError {
  return new PayboxError('VARIABLE', words, { severity: 'fatal' });
}
