import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { MqttClient } from 'mqtt';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { startBroker } from '../../src/gateway/boxes/broker.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { directoryOf } from '../gateway/directory.ts';
import { storedOf, worldOf } from '../gateway/stage-records.ts';
import { cliScript } from '../support/program-code.ts';
import { type Seeded, seeded } from '../support/seeded.ts';
import { FloodingGateway, HOLDER, TERMINAL_CODE } from './flooding-gateway.ts';
import type { Soak } from './soak.ts';

const BOX = { terminalCode: TERMINAL_CODE, serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
const PAID_HOLD_MS = 1_000;
/** Largest burst to catch up with the rate, as a network would deliver it. */
const BURST_MAX = 200;
/** Rate of `npm run soak`. */
export const PUSHES_PER_SECOND = 1_000;
/** V8 lets about 90 MB of garbage gather before a collection, however long the flood lasts. More growth is a leak. */
const GROWTH_MAX_MB = 150;
const READY_TIMEOUT_MS = 60_000;
/** Enough for a slow machine to handle the backlog and for the collector to free memory. */
const SETTLE_TIMEOUT_MS = 120_000;

export interface FloodOptions {
  seconds: number;
  pushesPerSecond: number;
}

/** Results of a flood. Memory is the box's resident set in MB. */
export interface FloodCounts {
  sent: number;
  accepted: number;
  shown: number;
  /** Refused pushes by code. */
  refused: Record<string, number>;
  ended: number;
  payments: number;
  /** Payments by the number of times that the box announced them. */
  announced: Record<number, number>;
  /** Payments that the box has reported. */
  reported: number;
  sessions: number;
  lastShown: boolean;
  shownAfterWithdrawal: boolean;
  beforeMb: number;
  peakMb: number;
  afterMb: number;
}

/** As `eventually` of the tests, but usable outside of a test run. */
async function until<T>(what: string, probe: () => T | Promise<T>, timeoutMs = SETTLE_TIMEOUT_MS): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (performance.now() > deadlineMs) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await delay(20);
  }
}

type Log = Record<string, unknown> & { event: string };
type BoxStatus = { state: string; order: { orderId: string } | null; display: { ok: boolean } };

/** An agent as deployed, with its log. */
class Box {
  readonly boxUrl: string;
  readonly log: Log[] = [];
  readonly #child: ChildProcess;

  constructor(configFile: string, boxPort: number) {
    this.boxUrl = `http://127.0.0.1:${boxPort}`;
    const args = ['--max-semi-space-size=2', cliScript(), 'agent', '--config', configFile];
    this.#child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    if (this.#child.stderr === null) throw new Error('no output');
    createInterface(this.#child.stderr).on('line', (line) => {
      if (line.startsWith('{')) this.log.push(JSON.parse(line) as Log);
    });
  }

  get alive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  async status(): Promise<BoxStatus> {
    if (!this.alive) throw new Error(`the box has ended: ${JSON.stringify(this.log.slice(-5))}`);
    return (await (await fetch(`${this.boxUrl}/status`)).json()) as BoxStatus;
  }

  async residentMb(): Promise<number> {
    const status = await readFile(`/proc/${this.#child.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
  }

  async close(): Promise<void> {
    if (!this.alive) return;
    const ended = new Promise((done) => this.#child.once('exit', done));
    this.#child.kill('SIGKILL');
    await ended;
  }
}

interface Fixture {
  box: Box;
  gateway: FloodingGateway;
  close(): Promise<void>;
}

async function openFixture(): Promise<Fixture> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-flood-'));
  const boxes = [{ ...BOX, account: HOLDER.bankAccount }];
  const config = parseGatewayConfig({ dataDir: folder, accounts: [HOLDER], boxes }, 'flood');
  const broker = await startBroker(
    { host: '127.0.0.1', port: 0 },
    worldOf({ config, log: createLogger(process.stderr, systemClock, 'text') }),
    storedOf({ directory: directoryOf(config) }),
    { sessionInUse: () => undefined, onBoxGone: () => undefined },
  );
  const client = new MqttClient(() => broker.connect(), { ...broker.login, protocolVersion: 4, reconnectPeriod: 0 });
  const gateway = new FloodingGateway(client, BOX.secret);
  await gateway.begin();
  const [boxPort = 0] = await freePorts(1);
  const file = join(folder, 'agent.yaml');
  const agentConfig = {
    box: BOX,
    link: { transport: 'mqtt', url: broker.url },
    displays: [{ driver: 'browser' }],
    http: { port: boxPort },
    dataDir: 'box',
    paidHoldSeconds: PAID_HOLD_MS / 1000,
  };
  await writeFile(file, JSON.stringify(agentConfig));
  const box = new Box(file, boxPort);
  const close = async () => {
    await box.close();
    await client.endAsync(true);
    await broker.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  return { box, gateway, close };
}

/** Sends pushes at the rate, and one payment each second. Every second payment is for the newest push. */
async function pourPushes(
  { gateway }: Fixture,
  chance: Seeded,
  { seconds, pushesPerSecond }: FloodOptions,
): Promise<{ sent: number; transactions: string[] }> {
  const transactions: string[] = [];
  const startedMs = performance.now();
  const total = seconds * pushesPerSecond;
  let pushId: string = systemRandom.uuid();
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - startedMs) / 1000) * pushesPerSecond));
    for (const until = Math.min(due, sent + BURST_MAX); sent < until; sent += 1) {
      pushId = systemRandom.uuid();
      const amount = 1_000 + chance.below(9_000_000);
      gateway.show({ pushId, orderId: `DH${sent}`, amount, content: `DH${sent}` });
      if (sent % pushesPerSecond !== pushesPerSecond - 1) continue;
      const transactionId = systemRandom.uuid();
      const { bankAccount, bankCode } = HOLDER;
      const paysNewest = transactions.length % 2 === 0;
      transactions.push(transactionId);
      gateway.pay({
        type: 'payment',
        transactionId,
        ...{ pushId: paysNewest ? pushId : null, orderId: paysNewest ? `DH${sent}` : '', amount },
        ...{ content: `DH${sent}`, bankAccount, bankCode, paidAtMs: Date.now(), repeated: false },
        ...{ late: false, due: null },
      });
    }
    await delay(5);
  }
  return { sent: total, transactions };
}

/** Samples the box's memory until the returned function is called, which returns the maximum. */
function watchMemory(box: Box): () => Promise<number> {
  const stop = new AbortController();
  const watching = (async () => {
    let peakMb = 0;
    while (!stop.signal.aborted) {
      peakMb = Math.max(peakMb, await box.residentMb());
      await delay(100);
    }
    return peakMb;
  })();
  return () => {
    stop.abort();
    return watching;
  };
}

/**
 * Floods an agent in its own process with legal pushes over a real broker and counts the results. Needs Linux for `/proc`. Throws
 * when the box dies or still has a backlog after two minutes.
 */
export async function run(seed: number, options: FloodOptions): Promise<FloodCounts> {
  const fixture = await openFixture();
  const { box, gateway } = fixture;
  try {
    const isShowing = async (orderId: string) => (await box.status()).order?.orderId === orderId;
    const isIdle = async () => {
      const { state, display } = await box.status();
      return state === 'idle' && display.ok;
    };
    await until('the box', () => fetch(`${box.boxUrl}/status`).then(isIdle, () => false), READY_TIMEOUT_MS);
    const [warmUp, last] = [systemRandom.uuid(), systemRandom.uuid()];
    gateway.show({ pushId: warmUp, orderId: 'warm-up', amount: 50_000, content: 'warm up' });
    await until('the first push', () => isShowing('warm-up'), READY_TIMEOUT_MS);
    const beforeMb = await box.residentMb();
    const peak = watchMemory(box);
    const { sent, transactions } = await pourPushes(fixture, seeded(seed), options);
    gateway.show({ pushId: last, orderId: 'last', amount: 50_000, content: 'last' });

    const isReported = () => transactions.every((id) => gateway.reported.has(id));
    await until('every report', () => box.alive && isReported(), SETTLE_TIMEOUT_MS);
    const lastShown = await until('the last push', () => isShowing('last'), SETTLE_TIMEOUT_MS);
    gateway.send({ type: 'withdraw', pushId: last, why: 'timeout' });
    await until('an idle box', isIdle, SETTLE_TIMEOUT_MS);
    const shownBefore = gateway.shown;
    await delay(2 * PAID_HOLD_MS);
    const shownAfterWithdrawal = !(await isIdle()) || gateway.shown > shownBefore;
    const times = transactions.map(
      (id) => box.log.filter(({ event, transactionId }) => event === 'payment-shown' && transactionId === id).length,
    );
    const announced: Record<number, number> = {};
    for (const count of times) announced[count] = (announced[count] ?? 0) + 1;
    const { accepted, shown, refused, ended, sessions } = gateway;
    return {
      ...{ sent: sent + 2, accepted, shown, refused, ended, sessions },
      ...{
        payments: transactions.length,
        announced,
        reported: transactions.filter((id) => gateway.reported.has(id)).length,
      },
      ...{ lastShown, shownAfterWithdrawal },
      ...{ beforeMb, peakMb: await peak(), afterMb: await box.residentMb() },
    };
  } finally {
    await fixture.close();
  }
}

/** Problems of a flood; empty when there were none. */
export function problemsOf(counts: FloodCounts): string[] {
  const { payments, announced, reported, lastShown, shownAfterWithdrawal, beforeMb, afterMb } = counts;
  const problems: string[] = [];
  if (announced[1] !== payments)
    problems.push(`payments by how often they were announced: ${JSON.stringify(announced)}`);
  if (reported !== payments) problems.push(`${payments - reported} payments were not reported`);
  if (!lastShown) problems.push('the last push was not shown');
  if (shownAfterWithdrawal) problems.push('something was shown after the last push was withdrawn');
  const growthMb = Math.round(afterMb - beforeMb);
  if (growthMb > GROWTH_MAX_MB) problems.push(`the box keeps ${growthMb} MB more than before`);
  return problems;
}

/** One line for people. */
export function summaryOf(counts: FloodCounts): string {
  const { sent, shown, refused, payments, beforeMb, peakMb, afterMb } = counts;
  const refusals = Object.entries(refused).map(([code, count]) => `${count} ${code}`);
  const unanswered = sent - shown - Object.values(refused).reduce((sum, count) => sum + count, 0);
  const memory = [beforeMb, peakMb, afterMb].map(Math.round);
  return (
    `${sent} pushes: ${shown} shown, ${refusals.join(', ')}, ${unanswered} dropped; ${payments} payments; ` +
    `memory before ${memory[0]} MB, peak ${memory[1]} MB, after ${memory[2]} MB`
  );
}

export const flood: Soak = {
  name: 'flood',
  unit: 'seconds',
  amount: 30,
  run: async ({ amount, firstSeed, progress }) => {
    progress(0, `${PUSHES_PER_SECOND} pushes a second`);
    const counts = await run(firstSeed, { seconds: amount, pushesPerSecond: PUSHES_PER_SECOND });
    progress(amount, summaryOf(counts));
    const again = `npm run soak -- --only flood --runs ${amount} --seed ${firstSeed}`;
    return {
      figures: { 'pushes a second': PUSHES_PER_SECOND, result: summaryOf(counts) },
      failures: problemsOf(counts).map((problem) => `flood: ${problem}; ${again}`),
    };
  },
};
