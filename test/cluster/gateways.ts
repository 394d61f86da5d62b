import { onTestFinished } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { type Gateway, startGateway } from '../../src/gateway/gateway.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { keptLog, type LogLine } from '../support/kept-log.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { ClusterRows } from './rows.ts';

export const ADMIN_TOKEN = newSecret(systemRandom);
export const PARTNER = { username: 'shop', password: 'cluster-partner-password-of-a-test' };

/** A gateway in this process. */
export interface TestGateway extends Gateway {
  name: string;
  log: LogLine[];
  dataDir: string;
  /** Asks it as an admin. */
  admin(path: string, method?: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

export interface GatewaysOptions {
  databaseUrl: string;
  gateways: number;
  /** Accounts with a box each, over HTTP. */
  accounts?: number;
  /** With the login of `PARTNER`. */
  partner?: object;
  config?: Record<string, unknown>;
  /** The clock of each gateway in turn; the others have that of the machine. */
  clocks?: readonly Clock[];
}

export interface Gateways {
  gateways: TestGateway[];
  rows: ClusterRows;
  accounts: { bankAccount: string; bankCode: string; userBankName: string }[];
  boxes: { terminalCode: string; serialNumber: string; secret: string; account: string }[];
  /** Starts one more gateway, with these keys of its file in place of the usual ones. */
  start(change?: Record<string, unknown>): Promise<TestGateway>;
  /** The file of such a gateway. */
  fileOf(change?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Settles once these gateways, and no others, live and have seen each other. */
  whole(among?: readonly TestGateway[]): Promise<void>;
}

/** Starts gateways of one database in this process, without a broker. They are closed when the test ends. */
export async function startGateways(options: GatewaysOptions): Promise<Gateways> {
  const { databaseUrl, accounts: size = 3, partner = PARTNER, config = {}, clocks = [] } = options;
  const accounts = Array.from({ length: size }, (_, i) => ({
    ...{ bankAccount: String(1_000_000_000 + i), bankCode: 'MB', userBankName: `SHOP ${i}` },
  }));
  const boxes = accounts.map(({ bankAccount }, i) => ({
    terminalCode: `VVB${String(i + 1).padStart(6, '0')}`,
    serialNumber: `VVB${String(i + 900_001).padStart(6, '0')}`,
    secret: newSecret(systemRandom),
    account: bankAccount,
  }));
  const gateways: TestGateway[] = [];
  let files = 0;
  const fileOf = async (change: Record<string, unknown> = {}) => {
    files += 1;
    const [folder, port] = [await temporaryFolder(), await freePort()];
    return {
      ...{ http: { port }, mqtt: null, dataDir: folder, databaseUrl, adminToken: ADMIN_TOKEN },
      cluster: { name: `gw-${files}` },
      ...{ accounts, boxes, partners: [{ ...partner, accounts: accounts.map((it) => it.bankAccount) }] },
      ...config,
      ...change,
    };
  };
  const start = async (change?: Record<string, unknown>) => {
    const clock = clocks[gateways.length] ?? systemClock;
    const parsed = parseGatewayConfig(await fileOf(change), 'test');
    const { log, lines } = keptLog();
    const gateway = await startGateway(parsed, { clock, random: systemRandom, log });
    onTestFinished(() => gateway.close());
    const { dataDir, cluster } = parsed;
    return { ...gateway, name: cluster?.name ?? '', log: lines, dataDir, admin: adminOf(gateway.origin) };
  };
  const rows = new ClusterRows(databaseUrl);
  const whole = (among: readonly TestGateway[] = gateways) => rows.whole(among.map(({ name }) => name));
  for (let i = 0; i < options.gateways; i += 1) gateways.push(await start());
  await whole();
  return { gateways, rows, accounts, boxes, start, fileOf, whole };
}

function adminOf(origin: string): TestGateway['admin'] {
  return async (path, method = 'GET', body) => {
    const answer = await fetch(`${origin}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : (JSON.parse(text) as unknown) };
  };
}

/** Asks for a token; the status of the answer and the token. */
export async function tokenAt(
  gateway: Pick<TestGateway, 'baseUrl'>,
  { username, password }: { username: string; password: string } = PARTNER,
): Promise<{ status: number; token: string }> {
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  const headers = { authorization: `Basic ${basic}` };
  const answer = await fetch(`${gateway.baseUrl}/api/token_generate`, { method: 'POST', headers });
  const { access_token: token = '' } = (await answer.json()) as { access_token?: string };
  return { status: answer.status, token };
}

/** Calls a gateway as the partner. */
export async function callAt(gateway: TestGateway, path: string, body: object): Promise<{ status: number; body: Row }> {
  const { token } = await tokenAt(gateway);
  const answer = await fetch(`${gateway.baseUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Row };
}
export type Row = Record<string, unknown>;

/** Generates an order of this account; the status of the answer. */
export async function generate(gateway: TestGateway, bankAccount: string, content = 'DH1'): Promise<number> {
  const order = { amount: 5_000, content, orderId: content, transType: 'C', qrType: 0 };
  const account = { bankAccount, bankCode: 'MB', userBankName: 'SHOP' };
  return (await callAt(gateway, '/api/qr/generate-customer', { ...account, ...order })).status;
}
