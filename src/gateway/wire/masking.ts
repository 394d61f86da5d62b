/** Fields whose values are not told, whatever they are: who reads what was said must not be able to say it. */
const SECRET_FIELD = /password|secret|token|authorization|checksum/i;
const MASK = '***';
/** The same in what is no JSON, up to where its value may end. */
const SECRET_TEXT =
  /((?:password|secret|token|authorization|checksum)\w{0,30}"?\s{0,8}[:=]\s{0,8})("(?:[^"\\]|\\.)*"?|[^\s,}&"]+)/gi;
const DEPTH_MAX = 8;

/** A body as it may be told: JSON as what it says, anything else as its text, null for none; secrets masked. */
export function bodyToTell(text: string): unknown {
  if (text === '') return null;
  try {
    return masked(JSON.parse(text) as unknown, 0);
  } catch {
    // No JSON, or too deep for anybody: its text is told.
    return text.replaceAll(SECRET_TEXT, `$1${MASK}`);
  }
}

function masked(value: unknown, depth: number): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEPTH_MAX) throw new Error('too deep');
  if (Array.isArray(value)) return value.map((it) => masked(it, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, it]) => [key, SECRET_FIELD.test(key) ? MASK : masked(it, depth + 1)]),
  );
}
