import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '../../src/bench/engine/free-ports.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
export const NODE = process.execPath;
const CLI = join(ROOT, 'src/cli.js');
/** The program's shebang finds the pinned Node at once, which has no other to hand over to. */
export const ENV = { ...process.env, PATH: `${dirname(NODE)}:${process.env.PATH ?? ''}` };
/** With a channel a program ends when this one does, however that ends. */
const CHANNEL: StdioOptions = ['ignore', 'ignore', 'ignore', 'ipc'];
const READY_TIMEOUT_MS = 240_000;

/** Processes and files of a benchmark; all are removed at its end. */
export class Fixture {
  readonly #children: ChildProcess[] = [];
  readonly #folders: string[] = [];

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'paybox-bench-'));
    this.#folders.push(folder);
    return folder;
  }

  /** Starts `paybox …` on the pinned Node and waits for its ready file. */
  async paybox<T>(
    folder: string,
    args: readonly string[],
    nodeFlags: readonly string[] = [],
  ): Promise<{ child: ChildProcess; ready: T; tookMs: number }> {
    const file = join(folder, `ready-${this.#children.length}.json`);
    const startedMs = performance.now();
    // As the launcher of the bundle starts each.
    const flags = [...nodeFlags, ...(args[0] === 'agent' ? ['--max-semi-space-size=2'] : [])];
    const child = spawn(NODE, [...flags, CLI, ...args, '--ready-file', file], { stdio: CHANNEL, env: ENV });
    this.#children.push(child);
    for (;;) {
      const text = await readFile(file, 'utf8').catch(() => undefined);
      if (text !== undefined) return { child, ready: JSON.parse(text) as T, tookMs: performance.now() - startedMs };
      const tookMs = performance.now() - startedMs;
      if (child.exitCode !== null || tookMs > READY_TIMEOUT_MS) throw new Error(`paybox ${args[0]} was not ready`);
      await delay(2);
    }
  }

  /** Starts a script that writes its address to standard output, in a folder of its own; returns the address. */
  async server(script: string, ...args: readonly string[]): Promise<string> {
    const child = spawn(NODE, [script, await this.folder(), ...args], { stdio: ['ignore', 'pipe', 'ignore', 'ipc'] });
    this.#children.push(child);
    if (child.stdout === null) throw new Error(`${script} has no standard output`);
    const [url] = (await once(child.stdout, 'data')) as [Buffer];
    return String(url).trim();
  }

  /** Starts another program. */
  program(command: string, args: readonly string[]): ChildProcess {
    const child = spawn(command, args, { stdio: 'ignore' });
    this.#children.push(child);
    return child;
  }

  /** Runs `paybox …` on the pinned Node to its end; returns its exit code. */
  async payboxToEnd(args: readonly string[]): Promise<number | null> {
    const child = spawn(NODE, [CLI, ...args], { stdio: CHANNEL, env: ENV, cwd: ROOT });
    this.#children.push(child);
    const [code] = (await once(child, 'exit')) as [number | null];
    return code;
  }

  async close(): Promise<void> {
    for (const child of this.#children) await end(child);
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Runs the work with a fixture that is closed after it. */
export async function withFixture<T>(work: (fixture: Fixture) => Promise<T>): Promise<T> {
  const fixture = new Fixture();
  try {
    return await work(fixture);
  } finally {
    await fixture.close();
  }
}

export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGKILL');
  await ended;
}

export const DEMO = {
  partner: { username: 'demo', password: 'demo-secret' },
  account: { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
} as const;

/** Login of a box that never connects, for measuring the broker itself. */
export const SPARE_BOX = {
  terminalCode: 'VVB000002',
  serialNumber: 'VVB900002',
  secret: 'Sample-box-secret-known-to-all',
};

/** Writes matching configurations of a gateway and an agent into `folder`. */
export async function pairFiles(folder: string, display: object, gateway: object = {}) {
  const [httpPort = 0, mqttPort = 0, boxPort = 0] = await freePorts(3);
  const gatewayFile = join(folder, 'gateway.yaml');
  await writeFile(
    gatewayFile,
    JSON.stringify({
      http: { port: httpPort },
      mqtt: { embedded: { port: mqttPort } },
      dataDir: 'gateway',
      partners: [{ ...DEMO.partner, accounts: [DEMO.account.bankAccount], callback: { url: 'http://127.0.0.1:9/' } }],
      accounts: [DEMO.account],
      boxes: [{ ...DEMO.box, account: DEMO.account.bankAccount }, SPARE_BOX],
      ...gateway,
    }),
  );
  const agentFile = join(folder, 'agent.yaml');
  await writeFile(
    agentFile,
    JSON.stringify({
      box: DEMO.box,
      link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqttPort}` },
      displays: [display],
      http: { port: boxPort },
      dataDir: 'box',
    }),
  );
  const [origin, boxUrl] = [`http://127.0.0.1:${httpPort}`, `http://127.0.0.1:${boxPort}`];
  return { gatewayFile, agentFile, origin, boxUrl, mqttPort };
}

interface PairOptions {
  display?: object;
  /** More of the gateway's file. */
  gateway?: object;
  prepare?: ((dataDir: string) => Promise<void>) | undefined;
}

/** A gateway and an agent as two processes, as deployed. */
export async function startPair(
  fixture: Fixture,
  { display = { driver: 'browser' }, gateway, prepare }: PairOptions = {},
) {
  const folder = await fixture.folder();
  const { gatewayFile, agentFile, origin, boxUrl, mqttPort } = await pairFiles(folder, display, gateway);
  await prepare?.(join(folder, 'gateway'));
  await fixture.paybox(folder, ['gateway', '--config', gatewayFile]);
  const agent = await fixture.paybox(folder, ['agent', '--config', agentFile]);
  for (let tries = 0; (await statusOf(boxUrl)).state !== 'idle'; tries += 1) {
    if (tries > 2_000) throw new Error('the box did not become idle');
    await delay(10);
  }
  return { origin, baseUrl: `${origin}/vqr`, boxUrl, mqttPort, agent: agent.child };
}

export async function statusOf(boxUrl: string): Promise<{ state: string; online: boolean }> {
  return (await (await fetch(`${boxUrl}/status`)).json()) as { state: string; online: boolean };
}

/** A logged-in partner; each push gets a new order. */
export class Shop {
  readonly #baseUrl: string;
  #bearer = '';
  #orders = 0;

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  async login(): Promise<void> {
    const { username, password } = DEMO.partner;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const answer = await this.#post('/api/token_generate', {}, `Basic ${basic}`);
    this.#bearer = `Bearer ${String(answer.access_token)}`;
  }

  /** A send-qr body for a new order. */
  async prepare(): Promise<Record<string, string>> {
    this.#orders += 1;
    const content = `DH${this.#orders}`;
    const order = { ...DEMO.account, amount: 50_000, content, orderId: content, transType: 'C', qrType: 0 };
    const qr = await this.#post('/api/qr/generate-customer', order, this.#bearer);
    const { bankAccount, bankCode } = DEMO.account;
    const covered = `${DEMO.partner.password}${bankAccount}50000${bankCode}`;
    return {
      bankAccount,
      bankCode,
      amount: '50000',
      content,
      qrCode: String(qr.qrCode),
      terminalCode: DEMO.box.terminalCode,
      orderId: content,
      checkSum: createHash('md5').update(covered).digest('hex'),
    };
  }

  async send(body: Record<string, string>): Promise<void> {
    const answer = await this.#post('/api/tid/send-qr', body, this.#bearer);
    if (answer.status !== 'SUCCESS') throw new Error(`send-qr: ${JSON.stringify(answer)}`);
  }

  async pay(content: string): Promise<void> {
    const { bankAccount } = DEMO.account;
    const payment = { bankAccount, content, amount: 50_000, transType: 'C' };
    const answer = await this.#post('/bank/api/test/transaction-callback', payment, this.#bearer);
    if (answer.status !== 'SUCCESS') throw new Error(`test callback: ${JSON.stringify(answer)}`);
  }

  async #post(path: string, body: object, authorization: string): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#baseUrl}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify(body),
    });
    return (await response.json()) as Record<string, unknown>;
  }
}
