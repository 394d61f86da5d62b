const MASK = '•••';
/** Shorter secrets would remove harmless text too. The fields below hide them in any case. */
const CHARS_MIN = 4;
const SECRET_FIELDS = new Set(['authorization', 'access_token', 'checksum', 'password']);
/** These fields in JSON that is cut off, or inside a reason; the next reason follows a semicolon. */
const SECRET_TEXT = /("(?:authorization|access_token|checksum|password)"\s{0,8}:\s{0,8}")[^";]*/gi;

/** Removes secrets from reports. */
export class Redactor {
  readonly #secrets = new Set<string>();

  addSecret(secret: string): void {
    if (secret.length >= CHARS_MIN) this.#secrets.add(secret);
  }

  /** Returns the text without secrets. JSON is searched field by field. */
  text(text: string): string {
    const json = jsonOf(text);
    if (typeof json === 'object' && json !== null) return JSON.stringify(this.value(json));
    const known = [...this.#secrets].reduce((masked, secret) => masked.replaceAll(secret, MASK), text);
    return known.replaceAll(SECRET_TEXT, `$1${MASK}`);
  }

  value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) return value.map((it) => this.value(it));
    if (typeof value !== 'object' || value === null) return value;
    const masked = Object.entries(value).map(([key, it]): [string, unknown] => [key, this.#field(key, it)]);
    return Object.fromEntries(masked);
  }

  #field(key: string, value: unknown): unknown {
    const isSecret = SECRET_FIELDS.has(key.toLowerCase()) && typeof value === 'string' && value !== '';
    // Reports show the scheme of an authorization, because it is no secret.
    return isSecret ? value.replace(/^((?:Basic|Bearer) )?.*$/s, `$1${MASK}`) : this.value(value);
  }
}

function jsonOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
