import { z } from 'zod';
import { isExposed, isLoopbackHost } from '../lib/tls.ts';
import { LIMITS } from '../protocol/fields.ts';
import { isSampleSecret } from '../protocol/secret.ts';
import type { Complain } from './boxes-config.ts';

/* A gateway for real money (PROTOCOL.md, clause MOD). */

type Path = (string | number)[];

/** The demo's, which everybody knows. */
export const DEMO = { username: 'demo', password: 'demo-secret', bankAccount: '0123456789' };
const SAMPLE = 'is a sample, which everybody knows: expected one of your own with mode: live';
const DEMO_PARTNER = 'expected no partner of the demo with mode: live: everybody knows its user and password';
/** Nobody counts wrong keys at hooks against a right one (PROTOCOL.md, clause SRC-5), so a short one could be guessed. */
const KEY_CHARS_MIN = 16;
/** Options by which a source proves its origin; the others are made by its provider. */
const PROOFS: readonly string[] = ['key', 'previousKey', 'secret', 'token', 'checksumKey', 'password'];
/** Values of `sslmode` with which the driver checks the certificate. */
const DATABASE_TLS = ['require', 'verify-ca', 'verify-full'];
/** Keys of a configuration whose values are no secrets. */
const NAMES: readonly string[] = ['name', 'username', 'userBankName'];

/** Keys of the configuration that say whether payments are money. */
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

export const LISTENS_PLAINLY = {
  path: ['host'],
  error: 'expected tls beside a host that other machines can reach, or allowPlain: true',
};

/** Whether a listener needs no TLS, or has it. */
export function isGuarded(at: { host: string; tls?: unknown; allowPlain: boolean }): boolean {
  return at.allowPlain || at.tls !== undefined || isLoopbackHost(at.host);
}

interface Listener {
  host: string;
  allowPlain: boolean;
}

/** A partner, an account, a box or a source, as far as a live gateway looks at it. */
export interface LiveRow {
  username?: string;
  password?: string | undefined;
  bankAccount?: string;
  terminalCode?: string;
  name?: string;
  callback?: { url: string; auth?: { kind: string; url?: string } } | undefined;
  /** Of a source. */
  auth?: object;
}

const LIVE_TABLES = ['partners', 'accounts', 'boxes', 'sources'] as const;
type LiveTable = (typeof LIVE_TABLES)[number];

export interface LiveConfig {
  mode: 'sandbox' | 'live';
  sandbox?: boolean | undefined;
  enrolment: 'code' | 'open' | 'closed';
  http: Listener;
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

/** Complains of everything in a live configuration that only a sandbox may have (PROTOCOL.md, clause MOD-1). */
export function checkLive(config: LiveConfig, complain: Complain): void {
  if (config.mode !== 'live') return;
  if (config.sandbox === true) complain(['sandbox'], 'expected false, or no such key, with mode: live');
  if (config.enrolment === 'open') complain(['enrolment'], 'expected code or closed with mode: live');
  checkTransport(config, complain);
  const { adminToken, vietqrBoxes, mqtt, ...tables } = config;
  for (const path of samplesIn({ adminToken, vietqrBoxes, mqtt })) complain(path, SAMPLE);
  for (const table of LIVE_TABLES) {
    for (const [i, row] of tables[table].entries()) {
      for (const { path, message } of liveProblems(table, row)) complain([table, i, ...path], message);
    }
  }
}

/** Complaints of a partner, an account, a box or a source that a live gateway may not have (PROTOCOL.md, clause MOD-1). */
export function liveProblems(table: LiveTable, row: LiveRow): { path: Path; message: string }[] {
  const { username, password, bankAccount, callback }: LiveRow = row;
  const found = samplesIn(row).map((path) => ({ path, message: SAMPLE }));
  if (table === 'partners' && (username?.toLowerCase() === DEMO.username || password === DEMO.password)) {
    found.push({ path: [], message: DEMO_PARTNER });
  }
  if (table === 'accounts' && bankAccount === DEMO.bankAccount) {
    found.push({ path: ['bankAccount'], message: 'expected no account of the demo with mode: live' });
  }
  if (table === 'sources') found.push(...shortKeysIn(row));
  const urls: [path: Path, url: string | undefined][] = [
    [['callback', 'url'], callback?.url],
    [['callback', 'auth', 'url'], callback?.auth?.url],
  ];
  for (const [path, url] of urls) {
    if (url !== undefined && isExposed(url)) {
      found.push({ path, message: 'expected https:// beyond this machine with mode: live' });
    }
  }
  return found;
}

function shortKeysIn({ auth = {}, ...row }: LiveRow): { path: Path; message: string }[] {
  const options = [
    ...Object.entries(row).map(([key, it]) => [[key], it]),
    ...Object.entries(auth).map(([key, it]) => [['auth', key], it]),
  ] as [Path, unknown][];
  const short = options.filter(([path, it]) => {
    return PROOFS.includes(String(path.at(-1))) && typeof it === 'string' && it.length < KEY_CHARS_MIN;
  });
  const message = `expected at least ${KEY_CHARS_MIN} characters with mode: live: others could guess it`;
  return short.map(([path]) => ({ path, message }));
}

/** Plain text beyond this machine. */
function checkTransport({ http, mqtt, publicUrl, databaseUrl }: LiveConfig, complain: Complain): void {
  const listeners: [path: Path, at: Listener | undefined][] = [
    [['http'], http],
    [['mqtt', 'embedded'], mqtt?.embedded],
  ];
  for (const [path, at] of listeners) {
    if (at === undefined || !at.allowPlain || isLoopbackHost(at.host)) continue;
    complain([...path, 'allowPlain'], 'expected tls in its place with mode: live');
  }
  if (mqtt?.allowPlain === true && mqtt.url !== undefined && isExposed(mqtt.url)) {
    complain(['mqtt', 'allowPlain'], 'expected mqtts:// or wss:// with mode: live');
  }
  if (publicUrl !== undefined && isExposed(publicUrl)) {
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

/** Paths of the sample secrets in a part of a configuration. */
function samplesIn(part: unknown, path: Path = []): Path[] {
  if (typeof part === 'string') return isSampleSecret(part) ? [path] : [];
  if (Array.isArray(part)) return part.flatMap((each, i) => samplesIn(each, [...path, i]));
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) => (NAMES.includes(key) ? [] : samplesIn(value, [...path, key])));
}
