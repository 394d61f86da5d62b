import { setTimeout as delay } from 'node:timers/promises';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { verifyLedger } from '../../src/gateway/store/integrity/ledger.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { type GatewayPayment, getJson, observe } from '../kill/inspection.ts';
import { Ledger } from '../kill/ledger.ts';
import type { LogLine } from '../kill/program.ts';
import { failureOf, until } from '../kill/seeded-runs.ts';
import type { Outcome } from '../kill/shop.ts';
import { Timeline } from '../kill/timeline.ts';
import { type FaultSpan, inflict, KEPT_BY_SERVER } from './faults.ts';
import { HealthWatch, PATHS } from './health.ts';
import { type Asked, Load } from './load.ts';
import { acceptLoss, Loss, namedLost, storedPayments } from './loss.ts';
import { type ChaosPlan, planOf } from './plan.ts';
import type { ChaosWorld } from './world.ts';

/** What a run came to, by the names of the figures. Those that begin with `longest` are no sums. */
export type ChaosReport = Record<string, number>;

export interface ChaosResult {
  report: ChaosReport;
  /** Whether the world is of no more use: its store has lost payments. */
  isSpent: boolean;
}

const INT8 = 20;
/** Hooks and payments of a run; the gateway lists no more. */
const ROWS = 500;
/** A server that replays its log, and a gateway that starts again, have so long on a machine that has much else to do. */
const RECOVERY_MS_MAX = 60_000;
/** How long a fault has its effect after it is over: what waits is given up after 6 s. */
const AFTERMATH_MS = 10_000;
const LOOK_EVERY_MS = 50;
/** All else is settled by then. */
const RESTART_AFTER_MS = 8_000;
/** The voice may leave out what comes all at once, so it is not waited for. */
const MAY_BE_SILENT = [Number.POSITIVE_INFINITY];

/** Plays the plan of a seed in a world whose last run has settled, and judges the money. Throws when it is wrong. */
export async function playChaos(at: ChaosWorld, seed: number): Promise<ChaosResult> {
  return new ChaosRun(at, planOf(seed)).play();
}

class ChaosRun {
  readonly #at: ChaosWorld;
  readonly #plan: ChaosPlan;
  readonly #timeline = new Timeline();
  readonly #load: Load;
  readonly #spans: FaultSpan[] = [];
  readonly #report: ChaosReport = {};
  readonly #lines: string[] = [];
  /** Lives of the gateway that were ready. */
  readonly #ready = new Set<number>();
  #failedOver = false;

  constructor(at: ChaosWorld, plan: ChaosPlan) {
    this.#at = at;
    this.#plan = plan;
    this.#load = new Load(at.world, plan.seed, seededRandom(plan.seed));
  }

  async play(): Promise<ChaosResult> {
    const { world } = this.#at;
    try {
      await this.#prepare();
      const ended = world.programs.get('gateway')?.ends.length ?? 0;
      const watch = new HealthWatch(world.gatewayUrl);
      try {
        this.#load.begin();
        await this.#inflictAll();
        await this.#recovered();
        if (this.#refusal() !== undefined) this.#load.giveUp();
        await this.#load.end();
      } finally {
        this.#load.giveUp();
        await watch.end();
      }
      const isSpent = await this.#judgeLoss(watch);
      if (!isSpent) await this.#judge(watch, ended);
      return { report: this.#figures(), isSpent };
    } catch (error) {
      throw failureOf(world, this.#plan.seed, this.#timeline, error);
    } finally {
      world.onGatewayLine = undefined;
    }
  }

  async #prepare(): Promise<void> {
    const { world, database } = this.#at;
    const gateway = world.programs.get('gateway');
    if (gateway !== undefined) this.#ready.add(gateway.life);
    world.onGatewayLine = (line, life) => this.#take(line, life);
    if (database.former !== undefined || !(await this.#isReplicating())) await database.rebuild();
    await database.replicate(this.#plan.replication);
    await until(world, 'the standby to have all', async () => ((await database.isCaughtUp()) ? undefined : 'not yet'));
    await until(world, 'the box to be online', async () => {
      const seen = await observe(world);
      return seen?.box.online && seen.boxOnlineAtGateway ? undefined : 'not yet';
    });
    await world.shop.login();
    this.#timeline.add(`${this.#plan.replication} replication`);
  }

  async #isReplicating(): Promise<boolean> {
    const deadlineMs = performance.now() + 5_000;
    while (performance.now() < deadlineMs) {
      if (await this.#at.database.isCaughtUp()) return true;
      await delay(LOOK_EVERY_MS);
    }
    return false;
  }

  #take(line: LogLine, life: number): void {
    if (line.event === 'ready') this.#ready.add(life);
    this.#lines.push(JSON.stringify(line));
  }

  async #inflictAll(): Promise<void> {
    const place = {
      ...this.#at,
      timeline: this.#timeline,
      onStopped: (tookMs: number) => this.#most('longest ms of SIGTERM', tookMs),
      onFailover: () => {
        this.#failedOver = true;
      },
    };
    const begunMs = performance.now();
    await Promise.all(
      this.#plan.faults.map(async (fault) => {
        await delay(Math.max(1, begunMs + fault.atMs - performance.now()));
        this.#add(fault.kind);
        await inflict(fault, place, this.#spans);
      }),
    );
  }

  /** Waits until a payment that began after the last fault is taken, or the store is refused for good. */
  async #recovered(): Promise<void> {
    const liftedMs = performance.now();
    while (performance.now() < liftedMs + RECOVERY_MS_MAX) {
      if (this.#refusal() !== undefined) return;
      if (this.#load.asked.some((it) => it.startedMs > liftedMs && isTaken(it))) {
        this.#most('longest ms of recovery', performance.now() - liftedMs);
        this.#timeline.add(`payments are taken again after ${Math.round(performance.now() - liftedMs)} ms`);
        return;
      }
      await delay(LOOK_EVERY_MS);
    }
    throw new Error(`no payment is taken ${RECOVERY_MS_MAX} ms after the last fault`);
  }

  #refusal(): string | undefined {
    return this.#lines.find((it) => namedLost(it) !== undefined);
  }

  /**
   * Judges how the gateway has met a failover that lost acknowledged payments, as one may without a synchronous standby. Then half of
   * the runs lead it back to the server that has them, and half accept the loss. Returns whether it was accepted.
   */
  async #judgeLoss(watch: HealthWatch): Promise<boolean> {
    const { database, world } = this.#at;
    const { former } = database;
    if (!this.#failedOver || former === undefined) {
      if (this.#refusal() !== undefined) throw new Error(`the store is refused without a failover: ${this.#refusal()}`);
      return false;
    }
    former.up();
    const before = await this.#stored(former);
    const loss = new Loss(this.#load.asked, before, await this.#stored(database.primary));
    if (loss.acknowledged.length === 0 && this.#refusal() === undefined) return false;
    if (loss.acknowledged.length > 0 && this.#plan.replication === 'synchronous') {
      throw new Error(`${loss.acknowledged.length} acknowledged payments are gone, with a synchronous standby`);
    }
    const wrong = loss.wrong(this.#lines, world.dataDir, database.url);
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
    this.#add('losses refused by name');
    this.#add('acknowledged payments that a failover lost, named', loss.acknowledged.length);
    await until(world, '/healthz and /readyz to say so', async () => {
      const { length } = await watch.problems();
      return length === PATHS.length ? undefined : `${length} of them do`;
    });
    const isFormerWhole = this.#plan.faults.every(({ kind }) => !KEPT_BY_SERVER.includes(kind));
    if (isFormerWhole && this.#plan.seed % 2 === 0) {
      database.leadBack();
      this.#timeline.add('the gateway is led back');
      await until(world, 'payments at the server that has all', async () =>
        (await this.#load.pay()) ? undefined : 'not taken',
      );
      this.#add('led back to the server that has all');
      return false;
    }
    await acceptLoss(world.dataDir, database.url);
    await this.#restart();
    await until(world, 'payments after the loss is accepted', async () =>
      (await this.#load.pay()) ? undefined : 'not taken',
    );
    return true;
  }

  async #restart(): Promise<void> {
    const gateway = this.#at.world.programs.get('gateway');
    await gateway?.kill();
    gateway?.start();
    await gateway?.ready();
  }

  async #stored(server: Parameters<typeof storedPayments>[1]) {
    let rows: Awaited<ReturnType<typeof storedPayments>> = [];
    await until(this.#at.world, 'the payments of a server', async () => {
      try {
        rows = await storedPayments(this.#at.database, server);
        return undefined;
      } catch (error) {
        return String(error);
      }
    });
    return rows;
  }

  async #judge(watch: HealthWatch, endedBefore: number): Promise<void> {
    const { world } = this.#at;
    await until(world, 'the gateway to say that it is well', async () => (await watch.problems())[0]);
    await this.#sellAtLast();
    await this.#cancelOpen();
    const payments = await this.#settled();
    const wrong = watch.wrong(this.#load.asked).slice(0, 1);
    for (const { life, code, lines } of world.programs.get('gateway')?.ends.slice(endedBefore) ?? []) {
      // One that finds no store at its start ends, and is started again.
      if (this.#ready.has(life)) wrong.push(`the gateway ended by itself with ${code}: ${lines.at(-1)}`);
    }
    wrong.push(...(await this.#chainProblems()), ...this.#refusedWrongly());
    if (wrong.length > 0) throw new Error(wrong.join('\n'));
    const taken = new Set(this.#load.asked.filter(isTaken).map(({ content }) => content));
    this.#add('payments', payments.length);
    this.#add('of them not acknowledged', payments.filter(({ content }) => !taken.has(content)).length);
  }

  async #sellAtLast(): Promise<void> {
    const { world } = this.#at;
    await until(world, 'the box to be online again', async () => {
      const seen = await observe(world);
      return seen?.box.online && seen.boxOnlineAtGateway ? undefined : 'not yet';
    });
    await until(world, 'a payment', async () => ((await this.#load.pay()) ? undefined : 'it is not taken'));
  }

  /** A QR that nobody pays would keep payments of no order off the screen. */
  async #cancelOpen(): Promise<void> {
    const { world } = this.#at;
    for (const orderId of this.#load.open) {
      await until(world, `the cancel of ${orderId}`, async () => {
        const outcome = await world.shop.cancel({ orderId, amount: 0, content: '' });
        // A failover may have lost the order.
        const isOver =
          outcome.kind === 'answered' && (outcome.ok || ['E96', 'E46'].includes(String(outcome.body.message)));
        return isOver ? undefined : JSON.stringify(outcome);
      });
    }
  }

  async #settled(): Promise<GatewayPayment[]> {
    const { world } = this.#at;
    const url = `${world.gatewayUrl}/_mock/payments?limit=${ROWS}`;
    let settled: GatewayPayment[] = [];
    let judged: Ledger | undefined;
    const restartMs = performance.now() + RESTART_AFTER_MS;
    let mayRestart = this.#failedOver && this.#plan.replication === 'asynchronous';
    await until(world, 'all money is where it belongs', async () => {
      const payments = await getJson<GatewayPayment[]>(url).catch(() => undefined);
      if (!Array.isArray(payments)) return 'no answer';
      const ledger = new Ledger(world.evidence, world.partner);
      for (const asked of this.#load.asked) ledger.add({ ...asked, outcome: this.#outcomeOf(asked, payments) });
      const owed = ledger.owed(payments, MAY_BE_SILENT, false);
      if (owed.length > 0 && mayRestart && performance.now() > restartMs) {
        // The standby had the payments, but not yet that the box has reported them: a box says that again at its next hello.
        mayRestart = false;
        this.#add('failovers that lost a report of a box');
        await this.#restart();
      }
      if (owed.length > 0) return owed.slice(0, 5).join('\n');
      judged = ledger;
      settled = ledger.ofRun(payments);
      return undefined;
    });
    const payments = await getJson<GatewayPayment[]>(url);
    const [violation] = judged?.violations(payments) ?? [];
    if (violation !== undefined) throw new Error(violation);
    return settled;
  }

  /** A refusal is in doubt where a connection may have been lost with the answer to a commit. */
  #outcomeOf({ content, startedMs, endedMs, outcome, isCredit }: Asked, payments: readonly GatewayPayment[]): Outcome {
    if (outcome.kind !== 'answered') return outcome;
    if (outcome.ok && isCredit) {
      // A source is not told the id.
      const found = payments.find((it) => it.content === content);
      return { ...outcome, body: { message: found?.transactionId ?? `the credit ${content}` } };
    }
    if (outcome.ok) return outcome;
    const spans = this.#spans.filter((it) => it.fromMs < endedMs && it.toMs > startedMs - AFTERMATH_MS);
    const isClear =
      spans.length > 0 && spans.every((it) => it.isClear && it.thereMs <= startedMs && endedMs <= it.endsMs);
    return isClear ? outcome : { kind: 'unknown', reason: 'refused' };
  }

  /** Refusals by another code than that of a store that fails. */
  #refusedWrongly(): string[] {
    return this.#load.asked.flatMap(({ content, outcome }) =>
      outcome.kind === 'answered' && !outcome.ok && outcome.body.message !== 'E05'
        ? [`${content} is refused with ${JSON.stringify(outcome.body)}`]
        : [],
    );
  }

  async #chainProblems(): Promise<string[]> {
    const { postgres } = this.#at.database.primary;
    const url = `postgres://paybox:${postgres.password}@127.0.0.1:${postgres.port}/shop`;
    const getTypeParser = ((oid: number, format?: 'text') =>
      oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser;
    const pool = new pg.Pool({ connectionString: url, max: 1, types: { getTypeParser } });
    const db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
    try {
      return (await verifyLedger(db)).problems;
    } finally {
      await db.destroy();
    }
  }

  #figures(): ChaosReport {
    const { asked, sales } = this.#load;
    this.#add('runs');
    this.#add(`${this.#plan.replication} runs`);
    if (this.#plan.faults.length > 1) this.#add('runs with several faults');
    this.#add('sales', sales);
    this.#add('acknowledged', asked.filter(isTaken).length);
    this.#add('refused', asked.filter(({ outcome }) => outcome.kind === 'answered' && !outcome.ok).length);
    this.#add('without an answer', asked.filter(({ outcome }) => outcome.kind === 'unknown').length);
    return this.#report;
  }

  #add(figure: string, by = 1): void {
    this.#report[figure] = (this.#report[figure] ?? 0) + by;
  }

  #most(figure: string, value: number): void {
    this.#report[figure] = Math.max(this.#report[figure] ?? 0, Math.round(value));
  }
}

function isTaken({ outcome }: Asked): boolean {
  return outcome.kind === 'answered' && outcome.ok;
}
