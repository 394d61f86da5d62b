import { readFileSync } from 'node:fs';

/** Returns the version of this program, from package.json. */
export function version(): string {
  return fromManifest('version');
}

/** Returns the name under which the npm registry has this program. Only package.json holds it. */
export function packageName(): string {
  return fromManifest('name');
}

function fromManifest(field: 'name' | 'version'): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const parsed: unknown = JSON.parse(text);
  if (typeof parsed === 'object' && parsed !== null && field in parsed) return String(Reflect.get(parsed, field));
  throw new Error(`package.json has no ${field}`);
}
