import { z } from 'zod';
import { isExposed, isLoopbackHost } from '../lib/tls.ts';
import { LIMITS } from '../protocol/fields.ts';
import { isSampleSecret } from '../protocol/secret.ts';
import type { Complain } from './boxes-config.ts';

/* A gateway for real money (PROTOCOL.md, clause MOD). */

type Path = (string | number)[];

/** The demo's, which everybody knows. */
const DEMO = { username: 'demo', password: 'demo-secret', bankAccount: '0123456789' };
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

export interface LiveConfig {
  mode: 'sandbox' | 'live';
  sandbox?: boolean | undefined;
  enrolment: 'code' | 'open' | 'closed';
  http: Listener;
  mqtt: { embedded?: Listener | undefined; url?: string | undefined; allowPlain: boolean } | null;
  publicUrl?: string | undefined;
  adminToken?: string | undefined;
  partners: readonly { username: string; password: string }[];
  accounts: readonly { bankAccount: string }[];
  boxes: readonly object[];
  sources: readonly object[];
  vietqrBoxes?: object | undefined;
}

/** Complains of everything in a live configuration that only a sandbox may have (PROTOCOL.md, clause MOD-1). */
export function checkLive(config: LiveConfig, complain: Complain): void {
  if (config.mode !== 'live') return;
  if (config.sandbox === true) complain(['sandbox'], 'expected false, or no such key, with mode: live');
  if (config.enrolment === 'open') complain(['enrolment'], 'expected code or closed with mode: live');
  checkTransport(config, complain);
  const { adminToken, partners, accounts, boxes, sources, vietqrBoxes } = config;
  for (const path of samplesIn({ adminToken, partners, boxes, sources, vietqrBoxes })) {
    complain(path, 'is a sample, which everybody knows: expected one of your own with mode: live');
  }
  for (const [i, { username, password }] of partners.entries()) {
    if (username !== DEMO.username && password !== DEMO.password) continue;
    complain(['partners', i], 'expected no partner of the demo with mode: live: everybody knows its user and password');
  }
  for (const [i, { bankAccount }] of accounts.entries()) {
    if (bankAccount !== DEMO.bankAccount) continue;
    complain(['accounts', i, 'bankAccount'], 'expected no account of the demo with mode: live');
  }
}

/** Plain text beyond this machine. */
function checkTransport({ http, mqtt, publicUrl }: LiveConfig, complain: Complain): void {
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
}

/** Paths of the sample secrets in a part of a configuration. */
function samplesIn(part: unknown, path: Path = []): Path[] {
  if (typeof part === 'string') return isSampleSecret(part) ? [path] : [];
  if (Array.isArray(part)) return part.flatMap((each, i) => samplesIn(each, [...path, i]));
  if (typeof part !== 'object' || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) => (NAMES.includes(key) ? [] : samplesIn(value, [...path, key])));
}
