import { stringify } from 'yaml';
import { z } from 'zod';
import { readScenario, scenarioSchema } from '../../bench/scenarios/scenario.ts';
import { type AgentConfig, agentConfigSchema, loadAgentConfig } from '../../device/agent/config.ts';
import { missingHere } from '../../device/agent/platform.ts';
import { boxFileSchema, maskedBoxFile } from '../../device/agent/setup/box-file.ts';
import {
  GATEWAY_FILE_CHARS_MAX,
  type GatewayConfig,
  gatewayConfigSchema,
  loadGatewayConfig,
} from '../../gateway/config/config.ts';
import { readConfigFile } from '../../lib/config-file.ts';
import { kindOf } from '../../lib/config-kind.ts';
import { ConfigError } from '../../lib/errors.ts';
import { readGiven } from '../../lib/given-files.ts';
import { isSecretName } from '../../lib/log.ts';
import { suggestion } from '../../lib/suggestion.ts';
import { say } from '../shared/output.ts';

type Loaded =
  | { kind: 'agent'; config: AgentConfig }
  | { kind: 'box' | 'scenario'; config: object }
  | { kind: 'gateway'; config: GatewayConfig };

/** Runs `paybox config check`. An invalid file causes exit code 2 with file, path and expected value. */
export async function check(file: string): Promise<void> {
  const { kind, config } = await load(file);
  say(kind === 'scenario' ? `${file} is a valid scenario` : `${file} is a valid ${kind} configuration`);
  if (kind === 'scenario') say('`paybox bench check` says too whether its variables and steps fit together');
  const missing = kind === 'agent' ? missingHere(config) : undefined;
  // It may be meant for another machine than this one.
  if (missing !== undefined) say(missing);
}

/** Runs `paybox config print`: prints the effective configuration, with defaults. */
export async function print(file: string): Promise<void> {
  const { kind, config } = await load(file);
  if (kind === 'scenario')
    throw new ConfigError(`${file}: is a scenario, which has no defaults to fill in`, `paybox bench check ${file}`);
  say(stringify(masked(config)).trimEnd());
}

/** Runs `paybox config schema`: prints the JSON schema of a configuration, for editors. */
export async function schema(kind: string): Promise<void> {
  const schemas = new Map<string, z.ZodType>([
    ['agent', agentConfigSchema],
    ['box', boxFileSchema],
    ['gateway', gatewayConfigSchema],
    ['scenario', scenarioSchema],
  ]);
  const found = schemas.get(kind);
  if (found === undefined) {
    const hint = suggestion(kind, schemas.keys());
    throw new ConfigError(`config schema: expected agent, box, gateway or scenario, not ${kind}${hint}`);
  }
  say(JSON.stringify(z.toJSONSchema(found, { io: 'input' }), null, 2));
}

/**
 * Reads a file of any kind. A file without identifying keys counts as a gateway's, because only that kind needs no
 * special key.
 */
async function load(file: string): Promise<Loaded> {
  const { value } = await readConfigFile(file, GATEWAY_FILE_CHARS_MAX);
  const kind = kindOf(value) ?? 'gateway';
  if (kind === 'scenario') return { kind, config: await readScenario(file) };
  if (kind === 'box') return { kind, config: maskedBoxFile(readGiven(file, GATEWAY_FILE_CHARS_MAX)) };
  return kind === 'agent'
    ? { kind, config: await loadAgentConfig(file) }
    : { kind, config: await loadGatewayConfig(file) };
}

/** Returns the same value with every secret shown as `***`. */
function masked(value: unknown): unknown {
  if (typeof value === 'string') return withoutPassword(value);
  if (Array.isArray(value)) return value.map(masked);
  if (typeof value !== 'object' || value === null) return value;
  // Beside a certificate, `key` is the name of a file.
  const isKey = (name: string) => /key$/i.test(name) && !('cert' in value);
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      typeof part === 'string' && (isSecretName(name) || isKey(name)) ? '***' : masked(part),
    ]),
  );
}

/** Removes the password, which a database address contains. */
function withoutPassword(text: string): string {
  const url = URL.parse(text);
  if (url === null || url.password === '') return text;
  url.password = '***';
  return url.href;
}
