import { isDeepStrictEqual } from 'node:util';
import { stringify } from 'yaml';
import { BOX_FILE } from '../../../lib/config-file.ts';
import { ConfigError } from '../../../lib/errors.ts';
import { parseYaml, type YamlText } from '../../../lib/yaml-text.ts';
import { BOOT_SECRETS } from '../transports/registry.ts';

/** Replaces a secret in `paybox.yaml` once the box has it. */
export const KEPT = 'kept';

type Path = readonly string[];

/**
 * A person who takes the card out of a box must not read these values. Each stays valid only with the value in `of`.
 * Otherwise that person could write another address on the card and receive the login of the old one.
 */
const SECRETS: readonly { path: Path; of: Path }[] = [
  { path: ['secret'], of: ['terminalCode'] },
  { path: ['key'], of: ['terminalCode'] },
  { path: ['wifi', 'psk'], of: ['wifi', 'ssid'] },
  ...[...BOOT_SECRETS].map((name) => ({ path: ['link', name], of: ['gateway'] })),
];

function valueAt(settings: object | undefined, path: Path): unknown {
  return path.reduce<unknown>((it, key) => (it instanceof Object ? Reflect.get(it, key) : undefined), settings);
}

function put(settings: object, path: Path, value: unknown): void {
  const parent = valueAt(settings, path.slice(0, -1));
  if (parent instanceof Object) Reflect.set(parent, path.at(-1) ?? '', value);
}

/** Returns a copy with a word in place of each secret. */
export function withSecretsAs<T extends object>(settings: T, word: string): T {
  const copy = structuredClone(settings);
  for (const { path } of SECRETS) if (valueAt(settings, path) !== undefined) put(copy, path, word);
  return copy;
}

/**
 * Returns a copy with the previous secrets in place of `kept`. Throws ConfigError if a secret has no previous value.
 */
export function withKept<T extends object>(given: T, before: T | undefined, lineOf: YamlText['lineOf']): T {
  const settings = structuredClone(given);
  for (const { path, of } of SECRETS.filter((it) => valueAt(given, it.path) === KEPT)) {
    const old = valueAt(before, of) === valueAt(given, of) ? valueAt(before, path) : undefined;
    const name = path.join('.');
    if (old === undefined) {
      throw new ConfigError(
        `${BOX_FILE}:${lineOf(path)}: ${name}: this box has kept none`,
        `write ${name} there${name === 'secret' ? ', or take the line out and the box enrols' : ''}`,
      );
    }
    put(settings, path, old);
  }
  return settings;
}

/**
 * Returns a file with `kept` in place of every secret. A person's own lines and comments stay, unless they contain a
 * secret.
 */
export function withoutSecrets(source: string, value: object, { rangeOf }: YamlText): string {
  const secrets = SECRETS.map(({ path }) => valueAt(value, path)).filter(
    (it): it is string => typeof it === 'string' && it !== KEPT,
  );
  if (secrets.length === 0) return source;
  const wanted = withSecretsAs(value, KEPT);
  const ranges = SECRETS.map(({ path }) => rangeOf(path)).filter((range) => range !== undefined);
  const edited = ranges
    .toSorted(([a], [b]) => b - a)
    .reduce((left, [from, to]) => {
      const end = left.slice(from, to).endsWith('\n') ? '\n' : '';
      return `${left.slice(0, from)}${KEPT}${end}${left.slice(to)}`;
    }, source);
  const isSafe = !secrets.some((secret) => edited.includes(secret.trim())) && holds(edited, wanted);
  return isSafe ? edited : `# The box has taken this over, and keeps its secrets.\n${stringify(wanted)}`;
}

function holds(source: string, wanted: object): boolean {
  try {
    return isDeepStrictEqual(parseYaml(source, BOX_FILE).value, wanted);
  } catch {
    return false;
  }
}
