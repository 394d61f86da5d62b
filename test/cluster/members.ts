import { onTestFinished } from 'vitest';
import { assignShards } from '../../src/gateway/cluster/assignment.ts';
import { type ClusterConfig, startMember } from '../../src/gateway/cluster/cluster.ts';
import { shardOf } from '../../src/gateway/common/shard.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { keptLog, type LogLine } from '../support/kept-log.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';

export const ADMIN_TOKEN = newSecret(systemRandom);
export const PARTNER = { username: 'shop', password: 'cluster-partner-password-of-a-test' };

/** A member in this process. */
export interface TestMember extends Gateway {
  log: LogLine[];
  dataDir: string;
  /** Asks it as an admin. */
  admin(path: string, method?: string, body?: unknown): Promise<{ status: number; body: unknown }>;
}

export interface MembersOptions {
  databaseUrl: string;
  members: number;
  shards: number;
  /** Accounts with a box each, over HTTP. */
  accounts?: number;
  /** With the login of `PARTNER`. */
  partner?: object;
  config?: Record<string, unknown>;
  /** The clock of each member in turn; the others have that of the machine. */
  clocks?: readonly Clock[];
}

export interface Members {
  members: TestMember[];
  shards: number;
  accounts: { bankAccount: string; bankCode: string; userBankName: string }[];
  boxes: { terminalCode: string; serialNumber: string; secret: string; account: string }[];
  /** Starts one more member, with these keys of its file in place of the usual ones. */
  start(change?: Record<string, unknown>): Promise<TestMember>;
  /** The file of such a member. */
  fileOf(change?: Record<string, unknown>): Promise<Record<string, unknown>>;
  /** Settles once every shard runs at one of these members. */
  whole(among?: readonly TestMember[]): Promise<unknown>;
}

/** Members of a cluster in this process, without a broker; every shard runs. They are closed when the test ends. */
export async function startMembers(options: MembersOptions): Promise<Members> {
  const { databaseUrl, shards, accounts: size = 3, partner = PARTNER, config = {}, clocks = [] } = options;
  const accounts = Array.from({ length: size }, (_, i) => ({
    ...{ bankAccount: String(1_000_000_000 + i), bankCode: 'MB', userBankName: `SHOP ${i}` },
  }));
  const boxes = accounts.map(({ bankAccount }, i) => ({
    terminalCode: `VVB${String(i + 1).padStart(6, '0')}`,
    serialNumber: `VVB${String(i + 900_001).padStart(6, '0')}`,
    secret: newSecret(systemRandom),
    account: bankAccount,
  }));
  const members: TestMember[] = [];
  const fileOf = async (change: Record<string, unknown> = {}) => {
    const [folder, port] = [await temporaryFolder(), await freePort()];
    return {
      ...{ http: { port }, mqtt: null, dataDir: folder, databaseUrl, adminToken: ADMIN_TOKEN },
      cluster: { advertise: `http://127.0.0.1:${port}`, shards },
      ...{ accounts, boxes, partners: [{ ...partner, accounts: accounts.map((it) => it.bankAccount) }] },
      ...config,
      ...change,
    };
  };
  const start = async (change?: Record<string, unknown>) => {
    const clock = clocks[members.length] ?? systemClock;
    const value = await fileOf(change);
    const parsed = { ...parseGatewayConfig(value, 'test') } as ClusterConfig;
    const { log, lines } = keptLog();
    const member = await startMember(parsed, { clock, random: systemRandom, log });
    onTestFinished(() => member.close());
    return { ...member, log: lines, dataDir: parsed.dataDir, admin: adminOf(member.origin) };
  };
  const whole = (among: readonly TestMember[] = members) =>
    eventually('every shard to run', async () => {
      const told = await Promise.all(among.map(({ admin }) => admin('/healthz')));
      const seen = told.map(({ body }) => (body as Health).cluster);
      // Nothing is about to move.
      return told.every(
        ({ status }, i) =>
          status === 200 &&
          seen[i]?.members.length === among.length &&
          Object.values(seen[i]?.holders ?? {}).join() ===
            assignShards(shards, seen[i]?.members.map(({ id }) => id) ?? []).join(),
      );
    });
  for (let i = 0; i < options.members; i += 1) members.push(await start());
  await whole();
  return { members, shards, accounts, boxes, start, fileOf, whole };
}

export interface Health {
  cluster: {
    member: string;
    members: { id: string }[];
    shards: number[];
    unheld: number[];
    holders: Record<string, string>;
  };
}

/** The shards that a member runs. */
export async function shardsOf(member: TestMember): Promise<number[]> {
  const { body } = await member.admin('/healthz');
  return (body as Health).cluster.shards;
}

/** The first account whose shard is among these; with `not`, whose shard is not. */
export function accountIn({ accounts, shards }: Members, among: readonly number[]): string {
  const found = accounts.find(({ bankAccount }) => among.includes(shardOf(bankAccount, shards)));
  if (found === undefined) throw new Error(`no account is in the shards ${among.join()}`);
  return found.bankAccount;
}

function adminOf(origin: string): TestMember['admin'] {
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
  member: Pick<TestMember, 'baseUrl'>,
  { username, password }: { username: string; password: string } = PARTNER,
): Promise<{ status: number; token: string }> {
  const basic = Buffer.from(`${username}:${password}`).toString('base64');
  const headers = { authorization: `Basic ${basic}` };
  const answer = await fetch(`${member.baseUrl}/api/token_generate`, { method: 'POST', headers });
  const { access_token: token = '' } = (await answer.json()) as { access_token?: string };
  return { status: answer.status, token };
}

/** Calls a member as the partner. */
export async function callAt(member: TestMember, path: string, body: object): Promise<{ status: number; body: Row }> {
  const { token } = await tokenAt(member);
  const answer = await fetch(`${member.baseUrl}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Row };
}
export type Row = Record<string, unknown>;

/** Generates an order of this account; the status of the answer. */
export async function generate(member: TestMember, bankAccount: string, content = 'DH1'): Promise<number> {
  const order = { amount: 5_000, content, orderId: content, transType: 'C', qrType: 0 };
  const account = { bankAccount, bankCode: 'MB', userBankName: 'SHOP' };
  return (await callAt(member, '/api/qr/generate-customer', { ...account, ...order })).status;
}
