import { resolve } from 'node:path';
import { z } from 'zod';
import { type ConfigFile, checkConfig, readConfigFile } from '../../lib/config-file.ts';
import { assertKind } from '../../lib/config-kind.ts';
import { assertFile } from '../../lib/files.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { bankAccount, LIMITS } from '../../protocol/fields.ts';
import { isSampleSecret, SECRET_EXPECTED, strongSecret } from '../../protocol/secret.ts';
import { WALLET_IDS_MAX, walletId } from '../../protocol/wallets.ts';
import { accountsMadeBy, sourceOptions } from '../money/sources/registry.ts';
import type { NamedOptions } from '../money/sources/source.ts';
import { box, type Complain, checkDialects, vietqrBoxes, withSecretsOfFiles } from './boxes-config.ts';
import { addressProblem, isOwnHost, portOf } from './callback-destination.ts';
import { type ClusterKeys, checkCluster, cluster } from './cluster-config.ts';
import { checkProxies, httpListener, mqtt } from './listeners-config.ts';
import { checkMode, type LiveConfig, modeKeys } from './mode.ts';
import { account, contentPrefix, partner } from './partners-config.ts';
import { callbackLateRetries, callbackRetryWaitsMs } from './retry-schedule.ts';

/** A file of this length has some 60,000 boxes. A file with 10,000 boxes takes some seconds to read. */
export const GATEWAY_FILE_CHARS_MAX = 8 * 1_048_576;

/** Other parameters could change the limits and the lock that the gateway sets on its connections. */
const DATABASE_PARAMETERS = ['sslmode', 'sslrootcert'];
const databaseUrl = z
  .url({ protocol: /^postgres(ql)?$/, error: 'postgres://user:password@host:5432/database', abort: true })
  .max(LIMITS.urlMax)
  .refine((url) => /^\/[^/]+$/.test(new URL(url).pathname), 'expected postgres://user:password@host:5432/database')
  .refine(
    (url) => [...new URL(url).searchParams.keys()].every((it) => DATABASE_PARAMETERS.includes(it)),
    `expected no parameters but ${DATABASE_PARAMETERS.join(' and ')}`,
  );

const CORS_MAX = 100;
/** An origin as browsers write it in the header Origin. */
const webOrigin = z
  .string()
  .refine(
    (origin) => /^https?:$/.test(URL.parse(origin)?.protocol ?? '') && URL.parse(origin)?.origin === origin,
    'expected the origin of a page, as https://shop.example',
  );

/** The configuration of the gateway; `paybox config schema` prints it. Unknown keys are errors. */
export const gatewayConfigSchema = z
  .strictObject({
    http: httpListener.prefault({}),
    mqtt: mqtt.nullable().prefault({ embedded: {} }).describe('null: boxes connect over HTTP only'),
    basePath: z
      .string()
      .regex(/^(\/[\w-]+)*$/, "a path as /vqr, without a slash at its end, or ''")
      .default('/vqr'),
    ...modeKeys,
    strict: z
      .boolean()
      .default(false)
      .describe(
        'accepts only calls of partners that follow the specification to the letter (PROTOCOL.md, clause LEN-1)',
      ),
    contentPrefix: contentPrefix
      .default('none')
      .describe(
        'what generate puts before a content: vietqr: VQR and ten characters; code: 9 characters that banks do not change',
      ),
    underpaid: z
      .enum(['open', 'end'])
      .default('open')
      .describe('whether an order stays open when less than its amount was paid'),
    overpaid: z
      .enum(['end', 'open'])
      .default('end')
      .describe('whether an order ends as paid when more than its amount was paid'),
    cors: z.array(webOrigin).max(CORS_MAX).default([]).describe('origins of pages that may call the service'),
    confirm: z.enum(['displayed', 'accepted']).default('displayed').describe('what a push waits for'),
    confirmTimeoutMs: z.int().min(1).max(60_000).default(5000),
    qrLifetimeSeconds: z.int().min(1).max(86_400).default(300),
    callbackRetryWaitsMs,
    callbackLateRetries,
    dataDir: z.string().min(1).describe('a folder; relative to the configuration file'),
    databaseUrl: databaseUrl.optional().describe('a PostgreSQL database, in place of a file in dataDir'),
    standby: z
      .boolean()
      .default(false)
      .describe('with databaseUrl: waits while another gateway uses the database, and takes it over'),
    cluster: cluster.optional().describe('one of several gateways that share databaseUrl and the broker at mqtt.url'),
    adminToken: strongSecret.optional().describe('lets other machines call /_mock; then every caller needs it'),
    enrolment: z
      .enum(['code', 'open', 'closed'])
      .default('code')
      .describe('how boxes without a secret get one: by the code on their screen, without a question, or not at all'),
    registry: z
      .enum(['file', 'store'])
      .default('file')
      .describe(
        'which partners, accounts and boxes count: those of this file, or those of the store, which this file only fills first',
      ),
    partners: z.array(partner).default([]),
    accounts: z.array(account).default([]),
    boxes: z.array(box).default([]),
    vietqrBoxes: vietqrBoxes.optional().describe('required if a box has dialect vietqr'),
    virtualAccounts: z
      .record(bankAccount, bankAccount)
      .default({})
      .transform((it): ReadonlyMap<string, string> => new Map(Object.entries(it)))
      .describe('by the number of a virtual account: the account to which its money comes (PROTOCOL.md, clause CRE-9)'),
    walletIds: z
      .record(bankAccount, z.array(walletId).min(1).max(WALLET_IDS_MAX))
      .default({})
      .transform((it): ReadonlyMap<string, string[]> => new Map(Object.entries(it)))
      .describe('by bankAccount: what wallets call it, as it stands in their QRs (PROTOCOL.md, clause QRP-8)'),
    sources: z
      .array(sourceOptions)
      .default([])
      .describe('who reports real money, at POST /hooks/{name} (PROTOCOL.md, clause SRC)'),
  })
  .superRefine(crossCheck);

export type GatewayConfig = z.output<typeof gatewayConfigSchema> & { sandbox: boolean };
export type PartnerConfig = GatewayConfig['partners'][number];
export type AccountConfig = GatewayConfig['accounts'][number];
export type BoxConfig = GatewayConfig['boxes'][number];

interface Named extends ClusterKeys, Pick<LiveConfig, 'mode' | 'sandbox' | 'publicUrl' | 'enrolment' | 'adminToken'> {
  databaseUrl?: string | undefined;
  standby: boolean;
  http: z.output<typeof httpListener>;
  mqtt: z.output<typeof mqtt> | null;
  partners: z.output<typeof partner>[];
  accounts: z.output<typeof account>[];
  boxes: z.output<typeof box>[];
  vietqrBoxes?: z.output<typeof vietqrBoxes> | undefined;
  sources: NamedOptions[];
}

/** Checks rules that concern several fields. */
function crossCheck(config: Named, context: z.RefinementCtx): void {
  const complain: Complain = (path, message) => context.addIssue({ code: 'custom', path, message, input: config });
  if (config.standby && config.databaseUrl === undefined) {
    complain(['standby'], 'expected databaseUrl beside it: a file in dataDir cannot be shared');
  }
  checkExposure(config, complain);
  checkProxies(config, complain);
  checkCallbackUrls(config, complain);
  checkNames(config, complain);
  checkDialects(config, complain);
  checkMode(config, complain);
  checkCluster(config, complain);
}

/** Complains about enrolment without a code, and about published secrets, if other machines can reach the gateway. */
function checkExposure({ http, mqtt, enrolment, adminToken, boxes, vietqrBoxes }: Named, complain: Complain): void {
  if ([http.host, mqtt?.embedded?.host].every((host) => host === undefined || isLoopbackHost(host))) return;
  if (enrolment === 'open') {
    const what = 'expected code where other machines reach the gateway: with open it accepts every box that asks';
    complain(['enrolment'], what);
  }
  const secrets = boxes.map(({ secret }, i) => ({ path: ['boxes', i, 'secret'], secret }));
  const shared = { path: ['vietqrBoxes', 'login', 'password'], secret: vietqrBoxes?.login.password };
  for (const { path, secret } of [{ path: ['adminToken'], secret: adminToken }, shared, ...secrets]) {
    if (isSampleSecret(secret)) complain(path, `is a sample, which everybody knows; ${SECRET_EXPECTED}`);
  }
}

/** Complains about callbacks to the gateway itself. The gateway trusts requests from its own machine. */
function checkCallbackUrls({ http, mqtt, partners, sources }: Named, complain: Complain): void {
  const ownPorts = [http.port, mqtt?.embedded?.port].filter((it) => it !== undefined && it !== 0);
  for (const [i, { callback }] of partners.entries()) {
    const urls = { url: callback?.url, 'auth.url': callback?.auth.kind === 'token' ? callback.auth.url : undefined };
    for (const [name, url] of Object.entries(urls)) {
      if (url === undefined || !isOwnHost(new URL(url)) || !ownPorts.includes(portOf(new URL(url)))) continue;
      const path = ['partners', i, 'callback', ...name.split('.')];
      complain(path, 'expected the address of a partner, not of the gateway');
    }
  }
  for (const [i, { api }] of sources.entries()) {
    const problem = api?.url === undefined ? undefined : addressProblem(new URL(api.url));
    if (problem !== undefined) complain(['sources', i, 'api', 'url'], `expected the API of a source: ${problem}`);
  }
}

/** Complains about names that are not unique, and about accounts that are not listed. */
function checkNames({ partners, accounts, boxes, sources }: Named, complain: Complain): void {
  const owned = partners.flatMap((it, i) =>
    it.accounts.map((value, j) => ({ path: ['partners', i, 'accounts', j], value })),
  );
  const linked = boxes.flatMap(({ account: value }, i) =>
    value === undefined ? [] : [{ path: ['boxes', i, 'account'], value }],
  );
  const named = <Key extends string>(list: string, rows: readonly Record<Key, string>[], key: Key) =>
    rows.map((row, i) => ({ path: [list, i, key], value: row[key] }));
  const made = sources.flatMap((it, i) =>
    accountsMadeBy(it).map((value, j) => ({ path: ['sources', i, 'qr', 'accounts', j], value })),
  );
  const unique: [what: string, values: { path: (string | number)[]; value: string }[]][] = [
    ['the user name', named('partners', partners, 'username')],
    ['the account', named('accounts', accounts, 'bankAccount')],
    ['the account', owned],
    ['the terminalCode', named('boxes', boxes, 'terminalCode')],
    ['the serialNumber', named('boxes', boxes, 'serialNumber')],
    ['the name', named('sources', sources, 'name')],
    ['the account', made],
  ];
  for (const [what, values] of unique) {
    const seen = new Set<string>();
    for (const { path, value } of values) {
      if (seen.has(value)) complain(path, `${what} ${value} is already taken`);
      seen.add(value);
    }
  }
  const known = new Set(accounts.map((it) => it.bankAccount));
  for (const { path, value } of [...owned, ...linked]) {
    if (!known.has(value)) complain(path, `expected a bankAccount listed under accounts, not ${value}`);
  }
}

/**
 * Checks a configuration that is not from a file, and reads its secrets from files. Messages call it `name`, and
 * relative paths start at `folder`. Throws ConfigError with name, path and what was expected.
 */
export function parseGatewayConfig(
  value: unknown,
  name: string,
  folder = '.',
  placeOf?: ConfigFile['placeOf'],
): GatewayConfig {
  const fix =
    'see device-config/gateway.yaml, gateway-sources.yaml for sources and gateway-cluster.yaml for a cluster, for a valid example, and `paybox config schema gateway` for every key';
  const check = (it: unknown) => checkConfig(gatewayConfigSchema, it, name, fix, placeOf);
  const given = check(value);
  const vietqrBoxes = given.vietqrBoxes && withSecretsOfFiles(given.vietqrBoxes, { name, folder });
  const config = vietqrBoxes === undefined ? given : check({ ...(value as object), vietqrBoxes });
  return { ...config, sandbox: config.sandbox ?? config.mode === 'sandbox' };
}

/** Reads a YAML file. Resolves the paths in it against its folder. Throws ConfigError. */
export async function loadGatewayConfig(path: string): Promise<GatewayConfig> {
  const { name, folder, value, placeOf } = await readConfigFile(path, GATEWAY_FILE_CHARS_MAX);
  assertKind(value, 'gateway', path);
  const config = parseGatewayConfig(value, name, folder, placeOf);
  const { dataDir, databaseUrl, http, mqtt } = config;
  const authority = databaseUrl && new URL(databaseUrl).searchParams.get('sslrootcert');
  // The driver of PostgreSQL reads this file. If it is a FIFO, the driver would wait without end.
  if (authority) assertFile(authority);
  const absolute = <T extends object>(files: T | undefined): T | undefined =>
    files && (Object.fromEntries(Object.entries(files).map(([name, path]) => [name, resolve(folder, path)])) as T);
  return {
    ...config,
    dataDir: resolve(folder, dataDir),
    http: { ...http, tls: absolute(http.tls) },
    mqtt: mqtt && {
      ...mqtt,
      tls: absolute(mqtt.tls),
      embedded: mqtt.embedded && { ...mqtt.embedded, tls: absolute(mqtt.embedded.tls) },
    },
  };
}
