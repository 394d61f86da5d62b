import { basename } from 'node:path';
import { ConfigError } from './errors.ts';

/** Each kind of file has the keys that no other kind has. A scenario also has `boxes`, so it comes first. */
const KINDS = {
  scenario: { is: 'a scenario', keys: ['steps'], commands: ['bench run', 'bench check'] },
  box: { is: "the file of a box's boot partition", keys: ['terminalCode', 'serialNumber', 'wifi'], commands: [] },
  agent: {
    is: 'the configuration of an agent',
    keys: ['box', 'link', 'displays'],
    commands: ['agent --config', 'doctor --config'],
  },
  gateway: {
    is: 'the configuration of a gateway',
    keys: ['partners', 'accounts', 'boxes', 'sources', 'registry', 'databaseUrl'],
    commands: ['gateway --config', 'doctor --gateway'],
  },
} as const;

export type ConfigKind = keyof typeof KINDS;
const NAMES = Object.keys(KINDS) as ConfigKind[];

/** Returns the kind of a parsed file; undefined if no key identifies it. */
export function kindOf(value: unknown): ConfigKind | undefined {
  const given = Object.keys(Object(value));
  return NAMES.find((kind) => KINDS[kind].keys.some((key) => given.includes(key)));
}

/** Throws ConfigError for a file that is clearly of another kind than the command reads. */
export function assertKind(value: unknown, expected: ConfigKind, path: string): void {
  const given = Object.keys(Object(value));
  const kind = kindOf(value);
  if (kind === undefined || KINDS[expected].keys.some((key) => given.includes(key))) return;
  const { is, commands } = KINDS[kind];
  const fix =
    commands.length === 0
      ? `put it on the boot partition as ${basename(path)}; the box takes it over at its next start`
      : commands.map((it) => `paybox ${it} ${path}`).join(', or ');
  throw new ConfigError(`${path}: is ${is}, expected ${KINDS[expected].is}`, fix);
}
