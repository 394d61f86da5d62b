import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../../src/lib/random.ts';
import { DEMO } from '../benchmarks/fixture.ts';
import { bankText } from '../kill/feeds.ts';
import type { Outcome } from '../kill/shop.ts';
import type { World } from '../kill/world.ts';
import { moved } from '../support/providers.ts';

/** A request that may have made a payment. */
export interface Asked {
  /** Each asks for one payment, which its content names. */
  content: string;
  amount: number;
  startedMs: number;
  endedMs: number;
  outcome: Outcome;
  isCredit: boolean;
}

/** The amounts of a world begin here, each has its own. */
const AMOUNT_FIRST = 20_000;
/** Times between two of them, at random up to twice as long. */
const PAY_EVERY_MS = 250;
const SELL_EVERY_MS = 900;
const CREDIT_EVERY_MS = 700;
/** Requests whose answer is awaited, while a store hangs. */
const UNDER_WAY_MAX = 10;
const TELL_AGAIN_MS = 400;
const ANSWER_MS_MAX = 20_000;
const SOURCE = 'sepay';
const SECOND_MS = 1_000;

/** A shop at work: payments by test callback, sales with a QR on the box, and credits that a source tells of until they are taken. */
export class Load {
  readonly asked: Asked[] = [];
  /** Orders whose QR may still be on the box. */
  readonly open: string[] = [];
  sales = 0;
  readonly #world: World;
  readonly #prefix: string;
  readonly #random: Random;
  readonly #underWay = new Set<Promise<void>>();
  readonly #going: Promise<void>[] = [];
  #isOver = false;
  #isGivenUp = false;

  constructor(world: World, seed: number, random: Random) {
    this.#world = world;
    this.#prefix = `C${seed}N`;
    this.#random = random;
  }

  begin(): void {
    this.#going.push(
      this.#repeat(PAY_EVERY_MS, () => this.pay()),
      this.#repeat(SELL_EVERY_MS, () => this.#sell()),
      this.#repeat(CREDIT_EVERY_MS, () => this.#credit()),
    );
  }

  /** Begins nothing more. Settles once all is answered, and every credit taken. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#going);
    await Promise.all(this.#underWay);
  }

  /** From now on sources give up what was not taken. */
  giveUp(): void {
    this.#isGivenUp = true;
  }

  /** Pays, as a test; returns whether that was acknowledged. */
  async pay(): Promise<boolean> {
    const { amount, content } = this.#next();
    return this.#payFor(amount, content);
  }

  async #sell(): Promise<void> {
    const { amount, content, number } = this.#next();
    const order = { amount, content, orderId: `${this.#prefix}${number}` };
    const made = await this.#world.shop.generate(order);
    if (made.kind !== 'answered' || !made.ok) return;
    this.open.push(order.orderId);
    const pushed = await this.#world.shop.push(order, String(made.body.qrCode));
    if (pushed.kind === 'answered' && pushed.ok) this.sales += 1;
    await this.#payFor(amount, String(made.body.content));
  }

  async #payFor(amount: number, content: string): Promise<boolean> {
    const startedMs = performance.now();
    const outcome = await this.#world.shop.pay({ amount, content });
    this.asked.push({ amount, content, startedMs, endedMs: performance.now(), outcome, isCredit: false });
    return outcome.kind === 'answered' && outcome.ok;
  }

  async #credit(): Promise<void> {
    const { amount, number } = this.#next();
    const provider = this.#world.feeds?.providers[SOURCE];
    if (provider === undefined) throw new Error(`no source ${SOURCE}`);
    const content = bankText(number, `chuyen tien ${this.#prefix}${number}`);
    const atMs = Date.now();
    const { bankAccount } = DEMO.account;
    const named = { id: number, reference: `FT26${number}`, text: content, orderCode: 0 };
    const money = moved({ ...named, bankAccount, amount, atMs: atMs - (atMs % SECOND_MS) });
    const startedMs = performance.now();
    while (!this.#isGivenUp) {
      const { path, headers, body } = provider.call(provider.body(money), { nowMs: Date.now() });
      const url = `${this.#world.gatewayUrl}/hooks/${SOURCE}${path}`;
      const signal = AbortSignal.timeout(ANSWER_MS_MAX);
      const status = await fetch(url, { method: 'POST', headers, body, signal }).then(
        async (answer) => answer.text().then(() => answer.status),
        () => undefined,
      );
      if (status === 200) {
        const outcome: Outcome = { kind: 'answered', ok: true, body: {} };
        this.asked.push({ amount, content, startedMs, endedMs: performance.now(), outcome, isCredit: true });
        return;
      }
      await delay(TELL_AGAIN_MS);
    }
    const outcome: Outcome = { kind: 'unknown', reason: 'given up' };
    this.asked.push({ amount, content, startedMs, endedMs: performance.now(), outcome, isCredit: true });
  }

  #next(): { amount: number; content: string; number: number } {
    this.#world.orders += 1;
    const number = this.#world.orders;
    return { number, amount: AMOUNT_FIRST + number, content: `${this.#prefix}${number}` };
  }

  async #repeat(everyMs: number, work: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      await delay(this.#random.fraction() * 2 * everyMs);
      if (this.#isOver || this.#underWay.size >= UNDER_WAY_MAX) continue;
      const done = work().then(() => void this.#underWay.delete(done));
      this.#underWay.add(done);
    }
  }
}
