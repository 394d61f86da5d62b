import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { ClusterRows } from '../cluster/rows.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
import { DEMO, type Fixture } from './fixture.ts';
import { type LightIdentity, post } from './light-fleet.ts';
import { Looker } from './looker.ts';

const ACCOUNTS = 160;
const BROKER_PASSWORD = 'password-of-the-gateways-in-a-benchmark';
/** As a server that is used: its tests have data that is never on the disk. */
const DURABLE = ['fsync=on', 'full_page_writes=on', 'max_connections=200'];
/** A token is valid for 5 minutes. */
const TOKEN_MS = 120_000;

/** A gateway alone, or several of one database. */
export interface Gateways {
  origins: readonly string[];
  children: readonly ChildProcess[];
  lookers: readonly Looker[];
  mqttUrl: string;
  adminToken: string;
  /** Where there are several. */
  postgres: PostgresServer | undefined;
  databaseUrl: string;
  mosquitto: ChildProcess | undefined;
  close(): Promise<void>;
}

const accountAt = (number: number) => ({ ...DEMO.account, bankAccount: String(1_000_000_000 + (number % ACCOUNTS)) });

/** A gateway alone with a broker of its own over SQLite (`shared` 0), or so many on one PostgreSQL and Mosquitto. */
export async function startGateways(
  fixture: Fixture,
  identities: readonly LightIdentity[],
  shared: number,
  { callbackUrl = 'http://127.0.0.1:9/', dataDir = 'data' }: { callbackUrl?: string; dataDir?: string } = {},
): Promise<Gateways> {
  const folder = await fixture.folder();
  const [mqttPort = 0, ...ports] = await freePorts(1 + Math.max(1, shared));
  const adminToken = newSecret(systemRandom);
  const accounts = Array.from({ length: ACCOUNTS }, (_, number) => accountAt(number));
  const registry = {
    partners: [{ ...DEMO.partner, accounts: accounts.map((it) => it.bankAccount), callback: { url: callbackUrl } }],
    ...{ accounts, adminToken },
    boxes: identities.map((it, number) => ({ ...it, account: accountAt(number).bankAccount })),
  };
  const ends: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const postgres = shared === 0 ? undefined : await startPostgres(DURABLE);
    if (postgres !== undefined) ends.push(() => postgres.remove());
    const databaseUrl = (await postgres?.database()) ?? '';
    const mosquitto = shared === 0 ? undefined : await startMosquitto(fixture, folder, mqttPort, identities);
    const mqttUrl = `mqtt://127.0.0.1:${mqttPort}`;
    const [children, lookers]: [ChildProcess[], Looker[]] = [[], []];
    for (const [number, port] of ports.entries()) {
      const own = join(folder, `gateway-${number}`);
      await mkdir(own);
      const cluster = {
        mqtt: { url: mqttUrl, username: GATEWAY_LOGIN, password: BROKER_PASSWORD },
        cluster: { name: `gw-${number}` },
        databaseUrl,
      };
      const alone = { mqtt: { embedded: { port: mqttPort } } };
      const config = { http: { port }, dataDir, ...registry, ...(shared === 0 ? alone : cluster) };
      const file = join(own, 'gateway.yaml');
      await writeFile(file, JSON.stringify(config), { mode: 0o600 });
      const looker = new Looker(own);
      const { child } = await fixture.paybox(own, ['gateway', '--config', file], looker.flags);
      children.push(child);
      lookers.push(looker);
    }
    const origins = ports.map((port) => `http://127.0.0.1:${port}`);
    if (shared > 0) await new ClusterRows(databaseUrl).whole(ports.map((_, number) => `gw-${number}`));
    return { origins, children, lookers, mqttUrl, adminToken, postgres, databaseUrl, mosquitto, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startMosquitto(
  fixture: Fixture,
  folder: string,
  port: number,
  identities: readonly LightIdentity[],
): Promise<ChildProcess> {
  const logins = Object.fromEntries(identities.map(({ terminalCode, secret }) => [terminalCode, loginOf(secret)]));
  const file = await writeMosquittoConfig(folder, port, { ...logins, [GATEWAY_LOGIN]: BROKER_PASSWORD });
  return fixture.program(findProgram(PROGRAMS.mosquitto) ?? 'mosquitto', ['-c', file]);
}

/** A partner that sells at the box with this number, by each gateway in turn. */
export interface Shop {
  /** Pushes a new order; settles with its content once it is confirmed. */
  push(box: number): Promise<Sold>;
  /** Has the order paid. */
  pay(sold: Sold): Promise<void>;
}

interface Sold {
  bankAccount: string;
  content: string;
}

export async function shopAt(origins: readonly string[], identities: readonly LightIdentity[]): Promise<Shop> {
  const { username, password } = DEMO.partner;
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const tokens: { bearer: Promise<string>; atMs: number }[] = [];
  const newBearer = async (origin: string) => {
    const { access_token: token } = await post(`${origin}/vqr/api/token_generate`, {}, basic);
    return `Bearer ${String(token)}`;
  };
  const bearerAt = (at: number): Promise<string> => {
    const known = tokens[at];
    if (known !== undefined && performance.now() - known.atMs < TOKEN_MS) return known.bearer;
    const bearer = newBearer(origins[at] ?? '');
    tokens[at] = { bearer, atMs: performance.now() };
    return bearer;
  };
  const codes: string[] = [];
  for (let number = 0; number < ACCOUNTS; number += 1) {
    const order = { ...accountAt(number), amount: 50_000, content: 'DH', orderId: 'DH', transType: 'C', qrType: 0 };
    const { qrCode } = await post(`${origins[0]}/vqr/api/qr/generate-customer`, order, await bearerAt(0));
    codes.push(String(qrCode));
  }
  let [orders, calls] = [0, 0];
  const call = async (path: string, body: object) => {
    calls += 1;
    const at = calls % origins.length;
    const { status, message } = await post(`${origins[at]}/vqr${path}`, body, await bearerAt(at));
    if (status !== 'SUCCESS') throw new Error(`${path}: ${String(message)}`);
  };
  return {
    push: async (box) => {
      orders += 1;
      const { bankAccount, bankCode } = accountAt(box);
      const content = `DH${orders}`;
      const checkSum = createHash('md5').update(`${password}${bankAccount}50000${bankCode}`).digest('hex');
      const sale = { content, orderId: `O${orders}`, terminalCode: identities[box]?.terminalCode };
      const qrCode = codes[box % ACCOUNTS];
      await call('/api/tid/send-qr', { bankAccount, bankCode, amount: '50000', qrCode, checkSum, ...sale });
      return { bankAccount, content };
    },
    pay: (sold) => call('/bank/api/test/transaction-callback', { ...sold, amount: 50_000, transType: 'C' }),
  };
}
