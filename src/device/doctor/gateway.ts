import { createPrivateKey, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { CLOCK_SKEW_MS_MAX, systemClock } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { readFileBytes, readFileText } from '../../lib/files.ts';
import { askHttp, authorizationHeader, type HttpAnswer, type HttpRequest, parseJson } from '../../lib/http-client.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { type Finding, failed, skipped, well } from './findings.ts';
import { datesFinding, reachFindings } from './link.ts';
import { clockFinding, skewOf, storageFinding } from './machine.ts';
import { thisMachine, timeFinding } from './system.ts';

const LIMITS = { timeoutMs: 8_000, bytesMax: 1_000_000 };
const DAY_MS = 86_400_000;
/** A shop loses everything after its newest backup, so an older one is a warning. */
const BACKUP_AGE_MAX_MS = 2 * DAY_MS;
const BACKUP_FIX = 'let a timer run every day: paybox backup FILE --gateway ORIGIN, and keep FILE on another disk';
const RENEW_FIX =
  'check the clock, have a new one made by who made it (paybox provision --rotate for one of its own), then restart the gateway';
/** People repair a public address where TLS ends, mostly at a proxy. */
const PUBLIC_FIXES: Record<string, string> = {
  'public address':
    'start the gateway and the proxy in front of it, open its port in the firewall, or correct publicUrl',
  'public address certificate':
    'see to the certificate where TLS ends, at the proxy in front of the gateway or in http.tls: a well-known authority, the name in publicUrl, the whole chain, and renewed in time',
};
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The parts of a gateway's configuration that are checked. */
export interface CheckedGateway {
  mode: 'sandbox' | 'live';
  dataDir: string;
  databaseUrl?: string | undefined;
  /** Set if the gateway shares its database with others. */
  cluster?: object | undefined;
  publicUrl?: string | undefined;
  adminToken?: string | undefined;
  http: { host: string; port: number; tls?: { cert: string; key: string } | undefined };
  /** The sources, each with the path below the gateway at which its provider calls first. */
  sources: readonly { name: string; hook: string }[];
}

const about = z.object({ mode: z.enum(['sandbox', 'live']), lastBackupAt: z.iso.datetime().nullable() });
const health = z.object({
  reason: z.string().optional(),
  cluster: z.object({
    gateways: z.array(z.object({ name: z.string(), aheadMs: z.number().nullable(), differs: z.array(z.string()) })),
  }),
});
const heardSources = z.array(
  z.object({
    name: z.string(),
    list: z.boolean(),
    lastWebhook: z.string().nullable(),
    lastCatchUp: z.string().nullable(),
    problem: z.string().nullable(),
  }),
);

/**
 * Checks a gateway and its machine, one check after another. It asks the running gateway for what only that one knows.
 */
export async function gatewayFindings(config: CheckedGateway): Promise<Finding[]> {
  const { mode, http, dataDir, sources } = config;
  const time = await timeFinding(thisMachine());
  return [
    well('configuration', `mode: ${mode}, ${sources.length} ${sources.length === 1 ? 'source' : 'sources'} of money`),
    clockFinding(systemClock.wallMs()),
    ...(time === undefined ? [] : [time]),
    await storageFinding(dataDir, 'gateway'),
    ...(await databaseFindingsOf(config)),
    ...(http.tls === undefined ? [] : [await chainFinding(http.tls)]),
    ...(await runningFindings(config)),
    ...(await publicFindings(config)),
  ];
}

/** Checks the PostgreSQL database, if the gateway has one. Loads its driver only then. */
async function databaseFindingsOf({ databaseUrl }: CheckedGateway): Promise<Finding[]> {
  if (databaseUrl === undefined) return [];
  const { databaseFindings } = await import('./database.ts');
  return databaseFindings(databaseUrl, systemClock);
}

/**
 * Checks the gateway's certificates: their dates, that each is signed by the next one, and that the key belongs to the
 * first.
 */
async function chainFinding({ cert, key }: { cert: string; key: string }): Promise<Finding> {
  const check = 'http.tls';
  const fix =
    'put the certificate first and the one that signed it after it into the file of cert, and its key into that of key';
  try {
    const chain = ((await readFileText(cert)).match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
    const [own] = chain;
    if (own === undefined) return failed(check, new Error(`${cert} has no certificate`), fix);
    if (!own.checkPrivateKey(createPrivateKey(await readFileBytes(key)))) {
      return failed(check, new Error(`${key} is not the key of the first certificate in ${cert}`), fix);
    }
    for (const [i, each] of chain.entries()) {
      const issuer = chain[i + 1];
      if (issuer === undefined || (each.checkIssued(issuer) && each.verify(issuer.publicKey))) continue;
      return failed(check, new Error(`certificate ${i + 2} in ${cert} did not sign certificate ${i + 1}`), fix);
    }
    const dates = chain.map((each, i) => datesFinding(check, each, `certificate ${i + 1} in ${cert}`));
    const worst = dates.find(({ result }) => result === 'failed') ?? dates.find(({ result }) => result !== 'ok');
    return worst === undefined ? (dates[0] ?? well(check, cert)) : { ...worst, fix: RENEW_FIX };
  } catch (error) {
    return failed(check, error, fix);
  }
}

/**
 * Returns what the running gateway reports: its mode, the age of its newest backup, and the last message of each
 * source.
 */
async function runningFindings(config: CheckedGateway): Promise<Finding[]> {
  const { databaseUrl, sources } = config;
  const [asked, ...cluster] = await Promise.all([
    askRunning(config, '/_mock/about', about),
    ...(config.cluster === undefined ? [] : [clusterFinding(config)]),
  ]);
  const unasked = (checks: readonly string[]) => checks.map((check) => skipped(check, `the gateway was not asked`));
  const names = sources.map(({ name }) => `source ${name}`);
  if ('finding' in asked) return [asked.finding, ...cluster, ...unasked(['backup', ...names])];
  const { mode, lastBackupAt } = asked.answer;
  const isOther = mode !== config.mode;
  const running: Finding = {
    check: 'gateway',
    result: isOther ? 'warning' : 'ok',
    found: `it runs with mode: ${mode}`,
    fix: isOther ? `restart it: this file says ${config.mode}` : '',
  };
  const backup =
    databaseUrl === undefined
      ? backupFinding(lastBackupAt, systemClock.wallMs())
      : skipped('backup', 'the store is in PostgreSQL: the gateway does not know when pg_dump last ran');
  return [running, ...cluster, backup, ...(sources.length === 0 ? [] : await sourceFindings(config, names))];
}

/** Checks the gateways of the database that this one sees. */
async function clusterFinding(config: CheckedGateway): Promise<Finding> {
  const check = 'cluster';
  const asked = await askRunning(config, '/healthz', health);
  if ('finding' in asked) return skipped(check, asked.finding.found);
  const { reason, cluster } = asked.answer;
  const { gateways } = cluster;
  const found = `${gateways.length} ${gateways.length === 1 ? 'gateway shares' : 'gateways share'} the database`;
  if (reason !== undefined) {
    return failed(check, new Error(`${found}; ${reason}`), 'see the log of the gateway, and /healthz of each');
  }
  const warning = (what: string, fix: string): Finding => ({
    check,
    result: 'warning',
    found: `${found}; ${what}`,
    fix,
  });
  const wrong = gateways.filter(({ aheadMs }) => Math.abs(aheadMs ?? 0) > CLOCK_SKEW_MS_MAX);
  if (wrong.length > 0) {
    const clocks = wrong.map(({ name, aheadMs }) => skewOf(name, aheadMs ?? 0));
    return warning(clocks.join('; '), 'let NTP set the clocks of all machines');
  }
  const others = gateways.flatMap(({ name, differs }) =>
    differs.length === 0 ? [] : `${name} (${differs.join(', ')})`,
  );
  if (others.length === 0) return well(check, found);
  const fix = 'give all gateways the same file but for cluster.name, dataDir and ports, then restart them';
  return warning(`other files at ${others.join(', ')}`, fix);
}

/**
 * Judges the age of the newest backup. The gateway knows when it last handed out its whole store, but not whether that
 * file still exists.
 */
export function backupFinding(lastBackupAt: string | null, nowMs: number): Finding {
  const check = 'backup';
  if (lastBackupAt === null) return { check, result: 'warning', found: 'none was ever taken', fix: BACKUP_FIX };
  const ageMs = nowMs - Date.parse(lastBackupAt);
  const found = `the gateway handed out the newest one at ${lastBackupAt}`;
  return ageMs > BACKUP_AGE_MAX_MS ? { check, result: 'warning', found, fix: BACKUP_FIX } : well(check, found);
}

async function sourceFindings(config: CheckedGateway, names: readonly string[]): Promise<Finding[]> {
  const asked = await askRunning(config, '/_mock/sources', heardSources);
  if ('finding' in asked) return names.map((check) => skipped(check, asked.finding.found));
  return names.map((check) => {
    const source = asked.answer.find(({ name }) => `source ${name}` === check);
    if (source === undefined)
      return { check, result: 'warning', found: 'the gateway does not know it', fix: 'restart it' };
    const { lastWebhook, lastCatchUp, list, problem } = source;
    if (problem !== null) {
      return {
        check,
        result: 'warning',
        found: `its list cannot be read: ${problem}`,
        fix: 'check its api in this file',
      };
    }
    const heard = [lastWebhook && `webhook at ${lastWebhook}`, lastCatchUp && `list at ${lastCatchUp}`].filter(Boolean);
    if (heard.length > 0 && (lastWebhook !== null || list)) return well(check, heard.join(', '));
    const fix = 'register publicUrl and /hooks/NAME at the provider, and let it send a test';
    return { check, result: 'warning', found: 'it has never told of anything', fix };
  });
}

/** Asks the gateway at the address of its file. It accepts an answer of this shape with any status. */
async function askRunning<T>(
  { http, adminToken }: CheckedGateway,
  path: string,
  schema: z.ZodType<T>,
): Promise<{ answer: T } | { finding: Finding }> {
  const check = 'gateway';
  const host = ['0.0.0.0', '::', ''].includes(http.host) ? '127.0.0.1' : http.host;
  const origin = `${http.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${http.port}`;
  const fix = 'start it: paybox gateway --config FILE; if it runs, it hangs: see its log, and end it';
  try {
    const headers = authorizationHeader(adminToken);
    const tls = http.tls === undefined ? {} : await ownTls(http.tls.cert, host);
    const { status, body } = await askHttp(`${origin}${path}`, { ...tls, headers, agent: false }, LIMITS);
    const answer = schema.safeParse(parseJson(body));
    if (answer.success) return { answer: answer.data };
    const found = `${origin}${path} answers ${status}${status === 200 ? ' in an unknown form' : ''}`;
    return { finding: failed(check, new Error(found), fixOfStatus(status)) };
  } catch (error) {
    const found = `it does not answer at ${origin}: ${systemCodeOf(error) ?? reasonOf(error)}`;
    return { finding: failed(check, new Error(found), fix) };
  }
}

/** Returns what to do about a gateway that answers a call of the doctor with this status, and not as it should. */
function fixOfStatus(status: number): string {
  if (status === 401 || status === 403) return 'put the adminToken with which it runs into this file, then ask again';
  if (status < 500) return 'end the other program that has its port, or correct http.port';
  const store = 'mostly its store fails: give the disk or the database room, rights and connections';
  return `see why in its log (request-failed) and at /healthz; ${store}; it goes on by itself then`;
}

/**
 * Returns TLS options that trust the gateway's own certificate: a person who can read its file could read its store as
 * well.
 */
async function ownTls(cert: string, host: string): Promise<Pick<HttpRequest, 'ca' | 'servername'>> {
  const ca = await readFileBytes(cert);
  if (!isLoopbackHost(host)) return { ca };
  const [, name] = /DNS:([^,\s]+)/.exec(new X509Certificate(ca).subjectAltName ?? '') ?? [];
  return name === undefined ? { ca } : { ca, servername: name };
}

/** Checks the public address, and each hook as its provider would call it, but without a proof. */
async function publicFindings({ publicUrl, sources }: CheckedGateway): Promise<Finding[]> {
  const hooks = sources.map(({ name, hook }) => ({ check: `hook ${name}`, path: hook }));
  if (publicUrl === undefined) {
    return hooks.map(({ check }) => skipped(check, 'publicUrl is not in the file, so nobody knows where it is called'));
  }
  const reached = (await reachFindings('public address', { url: publicUrl }, 'publicUrl')).map((it) =>
    it.fix === '' ? it : { ...it, fix: PUBLIC_FIXES[it.check] ?? it.fix },
  );
  if (reached.some(({ result }) => result === 'failed')) {
    return [...reached, ...hooks.map(({ check }) => skipped(check, 'the public address is not reached'))];
  }
  const base = publicUrl.endsWith('/') ? publicUrl : `${publicUrl}/`;
  return [...reached, ...(await Promise.all(hooks.map(({ check, path }) => hookFinding(check, new URL(path, base)))))];
}

async function hookFinding(check: string, url: URL): Promise<Finding> {
  const fix = 'let the proxy in front of the gateway pass POST /hooks on to it, unchanged';
  let answer: HttpAnswer;
  try {
    answer = await askHttp(url, { method: 'POST', body: '{}', agent: false }, LIMITS);
  } catch (error) {
    return failed(check, error, fix);
  }
  if (answer.status === 401) return well(check, `${url.href} refuses a call without proof, as it should`);
  return failed(check, new Error(`${url.href} answers ${answer.status} to a call without proof, not 401`), fix);
}
