/** Says why a payload is refused. `tag` is the path of tags to the place, as `38-01-00`. */
export class TlvRefusal extends Error {
  readonly tag: string;

  constructor(tag: string, problem: string) {
    super(`tag ${tag}: ${problem}`);
    this.name = 'TlvRefusal';
    this.tag = tag;
  }
}

/** The fields of one level of a payload. `path` is the tag that holds them; empty for the payload itself. */
export interface Template {
  path: string;
  values: ReadonlyMap<string, string>;
}

/** The form of a value: a pattern, and its description. */
export interface Rule {
  pattern: RegExp;
  words: string;
}

const VALUE_MAX = 99;

export function pathTo(path: string, tag: string): string {
  return path === '' ? tag : `${path}-${tag}`;
}

/**
 * Reads one level of tag, two-digit length and value, in their order (PROTOCOL.md, clauses QRP-1 and QRP-4).
 *
 * @throws TlvRefusal for a truncated, empty, doubled or malformed field and for other than printable ASCII.
 */
export function readTemplate(text: string, path: string): Template {
  const values = new Map<string, string>();
  let position = 0;
  let previous = path === '' ? '00' : path;
  while (position < text.length) {
    const head = text.slice(position, position + 4);
    if (!/^\d{4}$/.test(head)) {
      const where = position === 0 ? 'holds' : 'is followed by';
      throw new TlvRefusal(previous, `it ${where} ${JSON.stringify(head)}, where a two-digit tag and length belong`);
    }
    const tag = head.slice(0, 2);
    const here = pathTo(path, tag);
    const value = text.slice(position + 4, position + 4 + Number(head.slice(2)));
    if (value.length !== Number(head.slice(2))) {
      throw new TlvRefusal(here, `its length says ${Number(head.slice(2))} characters, only ${value.length} follow`);
    }
    if (values.has(tag)) throw new TlvRefusal(here, 'it is there twice');
    checkValue(here, value);
    values.set(tag, value);
    position += 4 + value.length;
    previous = here;
  }
  return { path, values };
}

/**
 * Writes one field as tag, two-digit length and value; nothing for a value that is `undefined`.
 *
 * @throws TlvRefusal for a value that is empty, too long for two digits, or not printable ASCII.
 */
export function writeField(path: string, tag: string, value: string | undefined): string {
  if (value === undefined) return '';
  const here = pathTo(path, tag);
  if (value.length > VALUE_MAX) throw new TlvRefusal(here, `${value.length} characters, at most ${VALUE_MAX} fit`);
  checkValue(here, value);
  return tag + String(value.length).padStart(2, '0') + value;
}

function checkValue(path: string, value: string): void {
  if (value === '') throw new TlvRefusal(path, 'it is empty');
  const odd = /[^\x20-\x7e]/.exec(value);
  if (odd !== null) throw new TlvRefusal(path, `character ${odd.index + 1} is not printable ASCII`);
}

/**
 * Returns the value of a field that may be absent.
 *
 * @throws TlvRefusal when it breaks the rule.
 */
export function optional(template: Template, tag: string, rule: Rule): string | undefined {
  const value = template.values.get(tag);
  if (value !== undefined && !rule.pattern.test(value)) {
    throw new TlvRefusal(pathTo(template.path, tag), `${JSON.stringify(value)} is not ${rule.words}`);
  }
  return value;
}

/**
 * Returns the value of a field that must be present.
 *
 * @throws TlvRefusal when it is missing or breaks the rule.
 */
export function required(template: Template, tag: string, rule: Rule): string {
  const value = optional(template, tag, rule);
  if (value === undefined) throw new TlvRefusal(pathTo(template.path, tag), 'it is missing');
  return value;
}
