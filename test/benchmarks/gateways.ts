import type { ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { eventually } from '../support/net.ts';
import { type PostgresServer, startPostgres } from '../support/postgres.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
import { DEMO, type Fixture } from './fixture.ts';
import { type LightIdentity, post } from './light-fleet.ts';
import { Looker } from './looker.ts';

/** The same for any number of members, so that only their number differs. */
export const SHARDS = 16;
const ACCOUNTS = 160;
const BROKER_PASSWORD = 'password-of-the-gateways-in-a-benchmark';
/** As a server that is used: its tests have data that is never on the disk. */
const DURABLE = ['fsync=on', 'full_page_writes=on', 'max_connections=200'];
const READY_MS = 240_000;
/** A token is valid for 5 minutes. */
const TOKEN_MS = 120_000;

/** A gateway alone, or members of a cluster. */
export interface Gateways {
  origins: readonly string[];
  children: readonly ChildProcess[];
  lookers: readonly Looker[];
  mqttUrl: string;
  adminToken: string;
  /** Where there are members. */
  postgres: PostgresServer | undefined;
  databaseUrl: string;
  mosquitto: ChildProcess | undefined;
  close(): Promise<void>;
}

const accountAt = (number: number) => ({ ...DEMO.account, bankAccount: String(1_000_000_000 + (number % ACCOUNTS)) });

/** A gateway alone with a broker of its own over SQLite (`members` 0), or so many members over PostgreSQL and Mosquitto. */
export async function startGateways(
  fixture: Fixture,
  identities: readonly LightIdentity[],
  members: number,
  { callbackUrl = 'http://127.0.0.1:9/', dataDir = 'data' }: { callbackUrl?: string; dataDir?: string } = {},
): Promise<Gateways> {
  const folder = await fixture.folder();
  const [mqttPort = 0, ...ports] = await freePorts(1 + Math.max(1, members));
  const adminToken = newSecret(systemRandom);
  const accounts = Array.from({ length: ACCOUNTS }, (_, number) => accountAt(number));
  const shared = {
    partners: [{ ...DEMO.partner, accounts: accounts.map((it) => it.bankAccount), callback: { url: callbackUrl } }],
    ...{ accounts, adminToken },
    boxes: identities.map((it, number) => ({ ...it, account: accountAt(number).bankAccount })),
  };
  const ends: (() => Promise<void>)[] = [];
  const close = async () => {
    for (const end of ends.toReversed()) await end();
  };
  try {
    const postgres = members === 0 ? undefined : await startPostgres(DURABLE);
    if (postgres !== undefined) ends.push(() => postgres.remove());
    const databaseUrl = (await postgres?.database()) ?? '';
    const mosquitto = members === 0 ? undefined : await startMosquitto(fixture, folder, mqttPort, identities);
    const mqttUrl = `mqtt://127.0.0.1:${mqttPort}`;
    const [children, lookers]: [ChildProcess[], Looker[]] = [[], []];
    for (const [number, port] of ports.entries()) {
      const own = join(folder, `gateway-${number}`);
      await mkdir(own);
      const cluster = {
        mqtt: { url: mqttUrl, username: GATEWAY_LOGIN, password: BROKER_PASSWORD },
        cluster: { advertise: `http://127.0.0.1:${port}`, shards: SHARDS },
        databaseUrl,
      };
      const alone = { mqtt: { embedded: { port: mqttPort } } };
      const config = { http: { port }, dataDir, ...shared, ...(members === 0 ? alone : cluster) };
      const file = join(own, 'gateway.yaml');
      await writeFile(file, JSON.stringify(config), { mode: 0o600 });
      const looker = new Looker(own);
      const { child } = await fixture.paybox(own, ['gateway', '--config', file], looker.flags);
      children.push(child);
      lookers.push(looker);
    }
    const origins = ports.map((port) => `http://127.0.0.1:${port}`);
    if (members > 0) await Promise.all(origins.map((origin) => atRest(origin, members)));
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

/** Settles once every shard has a holder, and each member its share. */
async function atRest(origin: string, members: number): Promise<void> {
  await eventually(
    'a share of the shards',
    async () => {
      const answer = await fetch(`${origin}/healthz`);
      const { cluster } = (await answer.json()) as { cluster?: { shards: number[]; unheld: number[] } };
      return cluster?.unheld.length === 0 && cluster.shards.length === SHARDS / members;
    },
    READY_MS,
  );
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
