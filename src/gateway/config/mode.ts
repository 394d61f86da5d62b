import { z } from 'zod';
import { HTTP_SCHEMES, isExposed, isLoopbackHost } from '../../lib/tls.ts';
import { LIMITS } from '../../protocol/fields.ts';
import { BROKER_SCHEMES } from '../../protocol/packet-limit.ts';
import { isSampleSecret } from '../../protocol/secret.ts';
import { weaknessesOf } from '../money/sources/registry.ts';
import type { Complain } from './boxes-config.ts';
import { ROLE_NAMES } from './roles.ts';

/* The rules for a gateway that handles real money (PROTOCOL.md, clause MOD). */

type Path = (string | number)[];

/** A complaint about the option at `path`. */
interface Problem {
  path: Path;
  message: string;
}

/** The login and account of the demo, which everybody knows. */
export const DEMO = { username: 'demo', password: 'demo-secret', bankAccount: '0123456789' };
const SAMPLE = 'is a sample, which everybody knows: expected one of your own with mode: live';
const DEMO_PARTNER = 'expected no partner of the demo with mode: live: everybody knows its user and password';
/** With these values of `sslmode` the driver checks the certificate. */
const DATABASE_TLS = ['require', 'verify-ca', 'verify-full'];
/** Keys of a configuration whose values are not secrets. */
const NAMES: readonly string[] = ['name', 'username', 'userBankName', 'partner'];

/** The keys of the configuration that decide whether payments are money. */
export const modeKeys = {
  mode: z
    .enum(['sandbox', 'live'])
    .default('sandbox')
    .describe('live: for real money, without anything that only a sandbox may do (PROTOCOL.md, clause MOD)'),
  sandbox: z.boolean().optional().describe('whether the test callback works; when left out, only with mode: sandbox'),
  sandboxMark: z.boolean().default(true).describe('whether every screen of a box at a sandbox says SANDBOX'),
  publicUrl: z
    .url({
      protocol: /^https?$/,
      error: 'expected the address of this gateway on the internet, as https://pay.example',
    })
    .max(LIMITS.urlMax)
    .optional()
    .describe('where sources reach this gateway; paybox doctor asks there'),
};

/** The setting `http.loopback` of a gateway. */
export const loopback = z
  .enum([...ROLE_NAMES, 'none'])
  .optional()
  .describe('what programs of this machine may do without a token; admin, but none with adminToken or mode: live');

export const LISTENS_PLAINLY = {
  path: ['host'],
  error: 'expected tls beside a host that other machines can reach, or allowPlain: true',
};

/** Returns whether a listener has TLS, or needs none. */
export function isGuarded(at: { host: string; tls?: unknown; allowPlain: boolean }): boolean {
  return at.allowPlain || at.tls !== undefined || isLoopbackHost(at.host);
}

interface Listener {
  host: string;
  allowPlain: boolean;
}

/** A partner, an account, a box or a source, as far as a live gateway checks it. */
export interface LiveRow {
  username?: string;
  password?: string | undefined;
  bankAccount?: string;
  terminalCode?: string;
  name?: string;
  kind?: string;
  callback?: { url: string; auth?: { kind: string; url?: string } } | undefined;
}

const LIVE_TABLES = ['partners', 'accounts', 'boxes', 'sources'] as const;
type LiveTable = (typeof LIVE_TABLES)[number];

export interface LiveConfig {
  mode: 'sandbox' | 'live';
  sandbox?: boolean | undefined;
  enrolment: 'code' | 'open' | 'closed';
  http: Listener & { loopback?: string | undefined };
  mqtt: {
    embedded?: Listener | undefined;
    url?: string | undefined;
    password?: string | undefined;
    allowPlain: boolean;
  } | null;
  databaseUrl?: string | undefined;
  publicUrl?: string | undefined;
  adminToken?: string | undefined;
  partners: readonly LiveRow[];
  accounts: readonly LiveRow[];
  boxes: readonly LiveRow[];
  sources: readonly LiveRow[];
  vietqrBoxes?: object | undefined;
}

type Mode = Pick<LiveConfig, 'mode' | 'sandbox'>;

/** Returns whether sources report real money to this gateway, and not tests (PROTOCOL.md, clause MOD-3). */
export function takesMoney({ mode, sandbox }: Mode): boolean {
  return mode === 'live' || sandbox === false;
}

/** Complains about everything that a configuration must not have in its mode (PROTOCOL.md, clauses MOD-1 and MOD-4). */
export function checkMode(config: LiveConfig, complain: Complain): void {
  for (const table of LIVE_TABLES) {
    for (const [i, row] of config[table].entries()) {
      for (const { path, message } of rowProblems(config, table, row)) complain([table, i, ...path], message);
    }
  }
  if (config.mode !== 'live') return;
  if (config.sandbox === true) complain(['sandbox'], 'expected false, or no such key, with mode: live');
  if (config.enrolment === 'open') complain(['enrolment'], 'expected code or closed with mode: live');
  if (!['none', undefined].includes(config.http.loopback)) {
    complain(['http', 'loopback'], 'expected none, or no such key, with mode: live: every caller needs a token');
  }
  checkTransport(config, complain);
  const { adminToken, vietqrBoxes, mqtt } = config;
  for (const path of samplesIn({ adminToken, vietqrBoxes, mqtt })) complain(path, SAMPLE);
}

/** Returns the complaints about a row that a gateway in this mode must not have. */
export function rowProblems(mode: Mode, table: LiveTable, row: LiveRow): Problem[] {
  const found = mode.mode === 'live' ? liveProblems(table, row) : [];
  const weak = table === 'sources' && takesMoney(mode) ? weaknessesOf(row) : [];
  return [...found, ...weak.filter(({ path }) => !found.some((it) => it.path.join() === path.join()))];
}

function liveProblems(table: LiveTable, row: LiveRow): Problem[] {
  const { username, password, bankAccount, callback } = row;
  const found: Problem[] = samplesIn(row).map((path) => ({ path, message: SAMPLE }));
  if (table === 'partners' && (username?.toLowerCase() === DEMO.username || password === DEMO.password)) {
    found.push({ path: [], message: DEMO_PARTNER });
  }
  if (table === 'accounts' && bankAccount === DEMO.bankAccount) {
    found.push({ path: ['bankAccount'], message: 'expected no account of the demo with mode: live' });
  }
  const urls: [path: Path, url: string | undefined][] = [
    [['callback', 'url'], callback?.url],
    [['callback', 'auth', 'url'], callback?.auth?.url],
  ];
  for (const [path, url] of urls) {
    if (url !== undefined && isExposed(url, HTTP_SCHEMES)) {
      found.push({ path, message: 'expected https:// beyond this machine with mode: live' });
    }
  }
  return found;
}

/** Complains about connections to other machines without TLS. */
function checkTransport({ http, mqtt, publicUrl, databaseUrl }: LiveConfig, complain: Complain): void {
  const listeners: [path: Path, at: Listener | undefined][] = [
    [['http'], http],
    [['mqtt', 'embedded'], mqtt?.embedded],
  ];
  for (const [path, at] of listeners) {
    if (at === undefined || !at.allowPlain || isLoopbackHost(at.host)) continue;
    complain([...path, 'allowPlain'], 'expected tls in its place with mode: live');
  }
  if (mqtt?.allowPlain === true && mqtt.url !== undefined && isExposed(mqtt.url, BROKER_SCHEMES)) {
    complain(['mqtt', 'allowPlain'], 'expected mqtts:// or wss:// with mode: live');
  }
  if (publicUrl !== undefined && isExposed(publicUrl, HTTP_SCHEMES)) {
    complain(['publicUrl'], 'expected https:// with mode: live: sources send their keys there');
  }
  if (databaseUrl !== undefined) checkDatabase(new URL(databaseUrl), complain);
}

function checkDatabase({ hostname, password, searchParams }: URL, complain: Complain): void {
  if (isSampleSecret(decodeURIComponent(password))) complain(['databaseUrl'], `its password ${SAMPLE}`);
  const isHere = isLoopbackHost(hostname.replaceAll(/[[\]]/g, ''));
  if (!isHere && !DATABASE_TLS.includes(searchParams.get('sslmode') ?? '')) {
    complain(['databaseUrl'], 'expected ?sslmode=verify-full for a database on another machine with mode: live');
  }
}

/** Returns the paths of the sample secrets in a part of a configuration. */
function samplesIn(part: unknown, path: Path = []): Path[] {
  if (typeof part === 'string') return isSampleSecret(part) ? [path] : [];
  if (Array.isArray(part)) return part.flatMap((each, i) => samplesIn(each, [...path, i]));
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) => (NAMES.includes(key) ? [] : samplesIn(value, [...path, key])));
}
