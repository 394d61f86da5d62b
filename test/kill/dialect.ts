import { setTimeout as delay } from 'node:timers/promises';
import { seeded } from '../support/seeded.ts';
import { observe } from './inspection.ts';
import type { ProgramName } from './program.ts';
import type { WorldKind } from './script.ts';
import { failureOf, playRuns, until } from './seeded-runs.ts';
import type { Order } from './shop.ts';
import { Timeline } from './timeline.ts';
import type { World } from './world.ts';

/** The amounts of a world begin here, each payment has its own. */
const AMOUNT_FIRST = 10_000;
const STEPS_MAX = 4;
const NOTICE_WAIT_MS = 300;

export const DIALECT_KINDS: Readonly<Record<'embedded' | 'mosquitto', WorldKind>> = {
  embedded: { name: 'embedded broker, public dialect', link: 'embedded', dialect: true, qrLifetimeSeconds: 300 },
  mosquitto: { name: 'mosquitto, public dialect', link: 'mosquitto', dialect: true, qrLifetimeSeconds: 300 },
};

/** What runs in the public dialect came to. */
export type DialectReport = {
  cuts: number;
  'agents killed': number;
  'gateways killed': number;
  'notices repeated': number;
  payments: number;
  /** The box has acknowledged them to the broker. */
  delivered: number;
  /** Lost on the way: the dialect sends nothing twice. */
  'lost in a cut': number;
  /** Of the delivered ones, shown only: the agent died before it could speak. */
  silent: number;
};

type Fault = 'cut' | readonly ProgramName[];
/** From when on its delay counts: from the payment, or from its notice on the way to the box or back. */
type At = 'now' | 'sent' | 'acknowledged';

/** Plays runs one after the other in one world of programs, each until all has settled. Throws at the first failure. */
export function playDialect(
  kind: WorldKind,
  seeds: Iterable<number>,
  onRun?: (report: DialectReport) => boolean,
): Promise<DialectReport> {
  return playRuns(kind, seeds, (world, seed) => new DialectRun(world, seed).play(), emptyReport(), onRun);
}

function emptyReport(): DialectReport {
  const killed = { 'agents killed': 0, 'gateways killed': 0 };
  return { cuts: 0, ...killed, 'notices repeated': 0, payments: 0, delivered: 0, 'lost in a cut': 0, silent: 0 };
}

class DialectRun {
  readonly #world: World;
  readonly #seed: number;
  readonly #timeline = new Timeline();
  readonly #report = emptyReport();
  readonly #amounts: number[] = [];
  /** The amounts of the box's transactions, over all its lives. */
  readonly #transactions = new Map<string, number>();

  constructor(world: World, seed: number) {
    this.#world = world;
    this.#seed = seed;
    world.onAgentLine = ({ event, transactionId, amount }) => {
      if (event === 'payment-reported') this.#transactions.set(String(transactionId), Number(amount));
    };
  }

  async play(): Promise<DialectReport> {
    try {
      await this.#world.shop.login();
      await this.#steps();
      await this.#settle();
      return this.#counted();
    } catch (error) {
      throw failureOf(this.#world, this.#seed, this.#timeline, error);
    }
  }

  async #steps(): Promise<void> {
    const random = seeded(this.#seed);
    const count = 1 + random.below(STEPS_MAX);
    for (let step = 0; step < count; step += 1) {
      const order = this.#newOrder();
      if (random.chance(0.5)) await this.#push(order);
      const fault = random.weighted<Fault | undefined>([
        [25, undefined],
        [35, 'cut'],
        [20, ['agent']],
        [14, ['gateway']],
        [6, ['gateway', 'agent']],
      ]);
      const repeats = random.chance(0.4);
      const at = random.weighted<At>([
        [4, 'now'],
        [3, 'sent'],
        [3, 'acknowledged'],
      ]);
      const widthMs = random.weighted([
        [60, at === 'now' ? 10 : 2],
        [30, 40],
        [10, 200],
      ]);
      const harm = this.#harm(fault, at, random.fraction() * widthMs);
      await this.#pay(order);
      if (repeats) this.#repeat();
      await harm;
      if (random.chance(0.5)) await this.#recovered();
      if (random.chance(0.5)) this.#repeat();
    }
  }

  #newOrder(): Order {
    this.#world.orders += 1;
    const content = `S${this.#seed}N${this.#world.orders}`;
    return { orderId: content, content, amount: AMOUNT_FIRST + this.#world.orders };
  }

  /** Returns the QR if the service has taken it. */
  async #push(order: Order): Promise<string | undefined> {
    const { shop } = this.#world;
    const generated = await shop.generate(order);
    if (generated.kind !== 'answered' || !generated.ok) return undefined;
    const qrCode = String(generated.body.qrCode);
    const answer = await shop.push(order, qrCode);
    const isTaken = answer.kind === 'answered' && answer.ok;
    this.#timeline.add(`push ${order.orderId}: ${isTaken}`);
    return isTaken ? qrCode : undefined;
  }

  async #pay({ amount, content }: Order): Promise<void> {
    this.#amounts.push(amount);
    this.#timeline.add(`pay ${amount} …`);
    const outcome = await this.#world.shop.pay({ amount, content });
    this.#timeline.add(`pay ${amount}: ${outcome.kind}`);
  }

  #repeat(): void {
    this.#timeline.add('the last notice again');
    this.#report['notices repeated'] += 1;
    this.#world.tap?.repeat();
  }

  async #harm(fault: Fault | undefined, at: At, delayMs: number): Promise<void> {
    if (fault === undefined) return;
    const { tap } = this.#world;
    // A notice may not come: nobody listens.
    if (at !== 'now') await Promise.race([tap?.next(at), delay(NOTICE_WAIT_MS)]);
    // A timer takes a millisecond at least.
    if (delayMs >= 1) await delay(delayMs);
    this.#timeline.add(fault === 'cut' ? 'cut' : `kill ${fault.join(', ')}`);
    if (fault === 'cut') {
      this.#report.cuts += 1;
      this.#world.tap?.cut();
      return;
    }
    const programs = fault.flatMap((name) => this.#world.programs.get(name) ?? []);
    if (fault.includes('agent')) this.#world.evidence.agentKilled();
    if (fault.includes('agent')) this.#report['agents killed'] += 1;
    if (fault.includes('gateway')) this.#report['gateways killed'] += 1;
    await Promise.all(programs.map((program) => program.kill()));
    for (const program of programs) program.start();
    for (const program of programs) await program.ready();
  }

  async #recovered(): Promise<void> {
    await until(this.#world, 'box and gateway know each other', async () => {
      const seen = await observe(this.#world);
      if (seen === undefined) return 'no answer';
      return seen.box.online && seen.boxOnlineAtGateway ? undefined : 'the box is not online';
    });
  }

  /** All that was delivered is told, nothing twice, and the box takes the next order. */
  async #settle(): Promise<void> {
    await this.#recovered();
    await until(this.#world, 'every notice is sent', async () => {
      const { payments = [] } = (await observe(this.#world)) ?? {};
      const held = payments.find((it) => this.#amounts.includes(it.amount) && it.boxes[0]?.unconfirmed === null);
      return held === undefined ? undefined : `that of ${held.amount} is not`;
    });
    this.#repeat();
    const next = this.#newOrder();
    let qrCode: string | undefined;
    await until(this.#world, 'the next QR is on the screen', async () => {
      qrCode ??= await this.#push(next);
      const { order } = (await observe(this.#world))?.box ?? {};
      return qrCode !== undefined && order?.qrCode === qrCode ? undefined : 'it is not';
    });
    // The QR came after all notices on its connection. Payments that a kill has kept from being said wait for its end.
    await this.#world.shop.cancel(next);
    await until(this.#world, 'everything delivered is told', () => {
      const owed = this.#delivered().find((amount) => !this.#isTold(amount));
      if (owed !== undefined) return `${owed} was delivered and neither shown nor said aloud`;
      const unsaid = this.#delivered().find((amount) => this.#world.evidence.spoken(amount) === 0);
      if (unsaid === undefined || this.#report['agents killed'] > 0) return undefined;
      return `${unsaid} was delivered and not spoken, although no agent was killed`;
    });
    for (const amount of this.#amounts) this.#expectOnce(amount);
  }

  #delivered(): number[] {
    return this.#amounts.filter((amount) => this.#world.tap?.delivered.has(amount));
  }

  #idsOf(amount: number): string[] {
    return [...this.#transactions].flatMap(([id, its]) => (its === amount ? [id] : []));
  }

  #isTold(amount: number): boolean {
    const { evidence } = this.#world;
    return this.#idsOf(amount).some((id) => evidence.paidScreens(id) > 0 || evidence.voiced(id) > 0);
  }

  #expectOnce(amount: number): void {
    const { evidence } = this.#world;
    const ids = this.#idsOf(amount);
    const voiced = ids.reduce((sum, id) => sum + evidence.voiced(id), 0);
    const spoken = evidence.spoken(amount);
    if (ids.length > 1) throw new Error(`${amount} became ${ids.length} payments: ${ids}`);
    if (voiced > 1 || spoken > 1) throw new Error(`${amount} was said aloud ${voiced} times, spoken ${spoken} times`);
  }

  #counted(): DialectReport {
    const delivered = this.#delivered();
    const lost = this.#amounts.filter(
      (it) => this.#world.tap?.sent.has(it) && !delivered.includes(it) && !this.#isTold(it),
    );
    const silent = delivered.filter((it) => this.#world.evidence.spoken(it) === 0);
    const counts = { payments: this.#amounts.length, delivered: delivered.length, silent: silent.length };
    return { ...this.#report, ...counts, 'lost in a cut': lost.length };
  }
}
