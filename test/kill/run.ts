import { setTimeout as delay } from 'node:timers/promises';
import { disagreements, type Observation, observe, overdueQr } from './inspection.ts';
import { KillPlan } from './kill-plan.ts';
import { Ledger } from './ledger.ts';
import type { Action, Script, Step } from './script.ts';
import { type Order, type Outcome, post } from './shop.ts';
import { Timeline } from './timeline.ts';
import type { World } from './world.ts';

/** The amounts of a world begin here, each order has its own. */
const AMOUNT_FIRST = 1_000;
/** How long a world may take to make everything good; slow machines and retransmissions are in it. */
const SETTLE_TIMEOUT_MS = 60_000;
const LOOK_EVERY_MS = 100;

/** What one run did and found good. */
export interface RunReport {
  kills: Record<'agent' | 'gateway' | 'broker', number>;
  payments: number;
  /** Of them, those that the screen told but no voice, because the agent died before it could speak. */
  silent: number;
  pushes: number;
  /** Requests whose connection broke. */
  unanswered: number;
}

/** Plays a script on a world whose last run has settled, waits until it has settled again, and checks everything. */
export async function playRun(world: World, script: Script): Promise<RunReport> {
  return new Run(world, script).play();
}

class Run {
  readonly #world: World;
  readonly #script: Script;
  readonly #timeline: Timeline;
  readonly #ledger: Ledger;
  readonly #kills: KillPlan;
  readonly #orders = new Map<number, Order & { qrCode: string | undefined }>();
  #underWay = 0;
  #begun = 0;
  #pushes = 0;
  #unanswered = 0;
  #wrong: string | undefined;

  constructor(world: World, script: Script) {
    this.#world = world;
    this.#script = script;
    this.#timeline = new Timeline();
    this.#ledger = new Ledger(world.evidence, world.partner);
    this.#kills = new KillPlan(world, script.kills, this.#timeline);
  }

  async play(): Promise<RunReport> {
    try {
      await this.#world.shop.login();
      this.#world.partner.reactions = [...this.#script.reactions];
      await this.#playSteps();
      await this.#kills.finish();
      const { payments } = await this.#settle();
      return {
        kills: this.#kills.count,
        payments: this.#ledger.ofRun(payments).length,
        silent: this.#ledger.silent(payments),
        pushes: this.#pushes,
        unanswered: this.#unanswered,
      };
    } catch (error) {
      throw new Error(this.#told(error instanceof Error ? error.message : String(error)));
    } finally {
      this.#kills.disarm();
    }
  }

  async #playSteps(): Promise<void> {
    const playing: Promise<void>[] = [];
    for (const [index, step] of this.#script.steps.entries()) {
      if (step.afterRecovery) await this.#recovered();
      this.#kills.stepBegins(index);
      const played = this.#playStep(step);
      playing.push(played);
      if (!step.overlaps) await played;
    }
    await Promise.all(playing);
  }

  async #playStep({ action }: Step): Promise<void> {
    const order = 'order' in action ? this.#order(action.order) : undefined;
    const what = `${action.do} ${order?.orderId ?? ''}`;
    this.#timeline.add(`${what} …`);
    const alone = this.#underWay === 0;
    this.#begun += 1;
    const begun = this.#begun;
    this.#underWay += 1;
    const outcome = await this.#act(action, order);
    this.#underWay -= 1;
    const certain = alone && begun === this.#begun;
    this.#world.screen.after(action, order?.orderId ?? '', outcome, certain);
    this.#timeline.add(`${what}: ${outcome.kind === 'answered' ? JSON.stringify(outcome.body) : outcome.kind}`);
    if (outcome.kind === 'unknown') this.#unanswered += 1;
    if (action.do === 'push' && outcome.kind === 'answered' && outcome.ok) this.#pushes += 1;
  }

  async #act(action: Action, order: (Order & { qrCode: string | undefined }) | undefined): Promise<Outcome> {
    const { shop, boxUrl } = this.#world;
    if (action.do === 'dismiss') return post(`${boxUrl}/keys/dismiss`, {});
    if (action.do === 'pay-stray' || order === undefined) return this.#pay(this.#newOrder());
    if (action.do === 'pay') return this.#pay(order);
    if (action.do === 'cancel') return shop.cancel(order);
    if (order.qrCode === undefined) {
      const generated = await shop.generate(order);
      // Without its QR there is nothing to push, whatever became of the order.
      if (generated.kind !== 'answered' || !generated.ok) return { kind: 'unsent' };
      order.qrCode = String(generated.body.qrCode);
    }
    return shop.push(order, order.qrCode);
  }

  async #pay({ amount, content }: Order): Promise<Outcome> {
    const startedMs = performance.now();
    const outcome = await this.#world.shop.pay({ amount, content });
    this.#ledger.add({ amount, content, startedMs, outcome });
    return outcome;
  }

  #order(number: number): Order & { qrCode: string | undefined } {
    const known = this.#orders.get(number) ?? { ...this.#newOrder(), qrCode: undefined };
    this.#orders.set(number, known);
    return known;
  }

  #newOrder(): Order {
    this.#world.orders += 1;
    const number = this.#world.orders;
    const orderId = `S${this.#script.seed}N${number}`;
    return { orderId, content: orderId, amount: AMOUNT_FIRST + number };
  }

  async #recovered(): Promise<void> {
    await this.#kills.underWay();
    await this.#until('everything is up again', ({ box, boxOnlineAtGateway }) => {
      return box.online && boxOnlineAtGateway ? [] : ['the box is not registered'];
    });
  }

  /** Waits until nothing is owed and everyone agrees, then looks for what no waiting mends. */
  async #settle(): Promise<Observation> {
    const observation = await this.#until('settled', async (seen) => {
      const owed = this.#ledger.owed(seen.payments, this.#kills.agentKilledMs, seen.box.order !== null);
      if (this.#script.waitsForExpiry && seen.box.order !== null) owed.push('the QR on the screen has not expired');
      return owed.length > 0 ? owed : disagreements(this.#world, seen);
    });
    const [violation] = this.#ledger.violations(observation.payments);
    if (violation !== undefined) throw new Error(violation);
    this.#world.screen.seen(observation.box.order?.orderId ?? '');
    return observation;
  }

  async #until(what: string, missing: (seen: Observation) => string[] | Promise<string[]>): Promise<Observation> {
    const deadlineMs = performance.now() + SETTLE_TIMEOUT_MS;
    let last: string[] = ['no answer'];
    while (performance.now() < deadlineMs) {
      for (const { fault } of this.#world.programs.values()) if (fault !== undefined) throw new Error(fault);
      const seen = await observe(this.#world);
      if (seen !== undefined) {
        this.#wrong ??= overdueQr(seen);
        if (this.#wrong !== undefined) throw new Error(this.#wrong);
        last = await missing(seen);
        if (last.length === 0) return seen;
      }
      await delay(LOOK_EVERY_MS);
    }
    throw new Error(`not within ${SETTLE_TIMEOUT_MS} ms: ${what}\n  ${last.join('\n  ')}`);
  }

  #told(reason: string): string {
    const logs = [...this.#world.programs.values()].map(({ name, lines }) => `${name}:\n  ${lines.join('\n  ')}`);
    return [
      `seed ${this.#script.seed} (${this.#world.kind.name}): ${reason}`,
      `what happened:\n  ${this.#timeline}`,
      ...logs,
      `run it alone: PAYBOX_KILL_SEED=${this.#script.seed} npm test -- test/kill`,
    ].join('\n');
  }
}
