import { anyChar, fc } from '../support/properties.ts';
import type { Seeded } from '../support/seeded.ts';
import { mutated, ODD_NUMBERS, ODD_TEXTS, pick } from './bytes.ts';

/** Deeper than any stack: a reader that goes down by itself overflows. */
const DEPTH_MAX = 20_000;
const HOLE = '@@hole@@';

const anyJson = fc.json({ maxDepth: 5, stringUnit: anyChar });

/** JSON of the corpus with a value, a key or the text itself changed; now and then any JSON, or mere bytes. */
export function mutatedJson(corpus: readonly Uint8Array[], chance: Seeded): Buffer {
  const kind = chance.below(20);
  if (kind === 0) return Buffer.from(sampled(anyJson, chance));
  if (kind <= 5) return mutated(corpus, chance);
  let text = Buffer.from(pick(corpus, chance)).toString();
  for (let left = 1 + chance.below(3); left > 0; left -= 1) text = changed(text, chance);
  return kind === 6 ? mutated([Buffer.from(text)], chance) : Buffer.from(text);
}

/** One value of an arbitrary: always the same for the same chance. */
export function sampled<T>(arbitrary: fc.Arbitrary<T>, chance: Seeded): T {
  const [value] = fc.sample(arbitrary, { seed: chance.below(2 ** 31), numRuns: 1 });
  return value as T;
}

/** Longer text is left as it is: what has been made deep could not be walked through again. */
const WALKED_CHARS_MAX = 4_000;

function changed(text: string, chance: Seeded): string {
  if (text.length > WALKED_CHARS_MAX) return text;
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return text;
  }
  const holders = holdersIn(json);
  if (holders.length === 0) return oddValue(json, chance);
  const holder = pick(holders, chance);
  const keys = Object.keys(holder);
  const key = keys.length === 0 ? 'x' : pick(keys, chance);
  const raw = oddValue(holder[key], chance);
  switch (chance.below(6)) {
    case 0:
      delete holder[key];
      return JSON.stringify(json);
    case 1:
      return withField(json, holder, pick(['__proto__', 'constructor', 'prototype', ...ODD_TEXTS], chance), raw);
    case 2:
      // Of equal keys the last counts: here the odd one comes last, or first.
      return withField(json, holder, key, raw, chance.chance(0.5));
    default:
      holder[key] = HOLE;
      return JSON.stringify(json).replace(JSON.stringify(HOLE), () => raw);
  }
}

/** Every object and array of a value. */
function holdersIn(json: unknown): Record<string, unknown>[] {
  if (typeof json !== 'object' || json === null) return [];
  const holder = json as Record<string, unknown>;
  return [holder, ...Object.values(holder).flatMap(holdersIn)];
}

/** The text of `json` with one more field in `holder`, although that may be there already. */
function withField(json: unknown, holder: Record<string, unknown>, key: string, raw: string, atTheEnd = true): string {
  if (Array.isArray(holder)) {
    holder.push(HOLE);
    return JSON.stringify(json).replace(JSON.stringify(HOLE), () => raw);
  }
  const copy = { ...holder };
  for (const name of Object.keys(holder)) delete holder[name];
  const field = `${JSON.stringify(key)}:${raw}`;
  const rest = JSON.stringify(copy).slice(1, -1);
  const body = (atTheEnd ? [rest, field] : [field, rest]).filter((part) => part !== '').join(',');
  holder[HOLE] = HOLE;
  const mark = `${JSON.stringify(HOLE)}:${JSON.stringify(HOLE)}`;
  return JSON.stringify(json).replace(mark, () => body);
}

/** JSON text that may stand where `value` did: of another type, or at the edge of its own. */
function oddValue(value: unknown, chance: Seeded): string {
  const kind = chance.below(12);
  if (kind < 3) return pick(ODD_NUMBERS, chance);
  if (kind < 6) return JSON.stringify(pick(ODD_TEXTS, chance));
  if (kind === 6) return pick(['null', 'true', 'false', '[]', '{}', '""', '[null]', '{"":{}}'], chance);
  if (kind === 7) return nested(chance);
  if (kind === 8) return JSON.stringify('x'.repeat(chance.below(20_000)));
  if (kind === 9)
    return pick(['"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\u202e"', '{"__proto__":{"ok":true}}'], chance);
  if (kind === 10) {
    const copies = new Array(chance.below(2_000)).fill(JSON.stringify(value) ?? 'null');
    return `[${copies.join(',')}]`.slice(0, 60_000);
  }
  return typeof value === 'string' ? JSON.stringify(pick(ODD_NUMBERS, chance)) : JSON.stringify(String(value));
}

function nested(chance: Seeded): string {
  const depth = 2 ** chance.below(Math.ceil(Math.log2(DEPTH_MAX)) + 1);
  return chance.chance(0.5)
    ? '['.repeat(depth) + ']'.repeat(depth)
    : `${'{"a":'.repeat(depth / 2)}0${'}'.repeat(depth / 2)}`;
}
