import type { Clock } from '../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import type { GatewayClient } from '../clients/gateway.ts';
import type { Measurements } from './measurements.ts';
import type { FleetOrder, OrderTracker } from './order-tracker.ts';

/** How much the shops of a fleet do. */
export interface LoadPlan {
  /** In all, however many boxes there are. */
  pushesPerSecond: number;
  /** The shops close after so many pushes. */
  pushes: number;
  /** The shops close after so many seconds; undefined where only the number of pushes closes them. */
  seconds: number | undefined;
  /** Whether the gateway answers SUCCESS only with the QR on the screen, and not with the push on the box's disk. */
  confirmsDisplayed: boolean;
}

export interface LoadDeps {
  gateway: GatewayClient;
  tracker: OrderTracker;
  measured: Measurements;
  clock: Clock;
  /** Seeded, so that the same is sold again. */
  random: Random;
  /** A few letters and digits by which the orders of this run differ from those of others. */
  runId: string;
  /** Closes the shops: no push and no payment begins after it. */
  signal: AbortSignal;
}

/** A box that is pushed to. */
export interface LoadBox {
  readonly terminalCode: string;
  readonly serialNumber: string;
}

/** Orders are kept until the verdict. */
export const PUSHES_MAX = 1_000_000;
/** Well before its end (PROTOCOL.md, clause TOK-2). */
const TOKEN_AGE_MAX_MS = 240_000;
/** Of the orders; the others are never paid, and are replaced or expire. */
const SHARES = { paid: 0.6, paidLate: 0.05 } as const;
/** How long customers take. Who pays late may pay an order whose QR has left the screen. */
const PAID_AFTER_MS = { paid: { min: 300, max: 3_000 }, paidLate: { min: 9_000, max: 12_000 } } as const;
const AMOUNT_STEP = 1_000;
const AMOUNT_STEPS_MAX = 2_000;
const NO_ANSWER = 'NO_ANSWER';

/** What a shop sells next, and when its customer pays after the answer. */
interface Sale {
  readonly number: number;
  readonly amount: number;
  readonly outcome: keyof typeof SHARES | 'unpaid';
  readonly paidAfterMs: number;
}

/**
 * Pushes at a steady rate, each time to a box by chance, or to the next one where that one's shop still waits for an
 * answer, and pays a share of the orders. Settles when the shops are closed and all that they began is answered. Throws
 * PayboxError when the gateway does not take the partner's credentials.
 */
export async function runLoad(counters: readonly LoadBox[], plan: LoadPlan, deps: LoadDeps): Promise<void> {
  const { clock, random, signal, measured } = deps;
  const shops = new Load(plan, deps);
  await shops.token();
  const beganMs = clock.monotonicMs();
  const endMs = beganMs + (plan.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  for (let number = 1; number <= Math.min(plan.pushes, PUSHES_MAX); number += 1) {
    const dueMs = beganMs + ((number - 1) / plan.pushesPerSecond) * 1000;
    const waitMs = Math.min(dueMs, endMs) - clock.monotonicMs();
    // Not for nothing: a busy process would be behind by one more turn with each push.
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    const sale = saleOf(number, random);
    const counter = await shops.freeCounter(counters, random.fraction());
    if (counter === undefined || clock.monotonicMs() >= endMs) break;
    shops.begin(sale, counter);
  }
  measured.loadMs = clock.monotonicMs() - beganMs;
  await shops.close();
}

function saleOf(number: number, random: Random): Sale {
  const amount = AMOUNT_STEP * (1 + Math.floor(random.fraction() * AMOUNT_STEPS_MAX));
  const [chance, patience] = [random.fraction(), random.fraction()];
  if (chance >= SHARES.paid + SHARES.paidLate) return { number, amount, outcome: 'unpaid', paidAfterMs: 0 };
  const fate = chance < SHARES.paid ? 'paid' : 'paidLate';
  const { min, max } = PAID_AFTER_MS[fate];
  return { number, amount, outcome: fate, paidAfterMs: min + patience * (max - min) };
}

class Load {
  readonly #plan: LoadPlan;
  readonly #deps: LoadDeps;
  /** By terminalCode: shops that wait for the answer to a push. */
  readonly #awaiting = new Set<string>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #oneAnswered = Promise.withResolvers<void>();
  #token: { taken: Promise<string>; atMs: number } | undefined;

  constructor(plan: LoadPlan, deps: LoadDeps) {
    this.#plan = plan;
    this.#deps = deps;
  }

  /** One token for all, renewed before its end. */
  token(): Promise<string> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#token === undefined || nowMs - this.#token.atMs > TOKEN_AGE_MAX_MS) {
      this.#token = { taken: this.#deps.gateway.partner.token(), atMs: nowMs };
      this.#token.taken.catch(() => {
        this.#token = undefined;
      });
    }
    return this.#token.taken;
  }

  /** Waits while every shop waits for an answer; undefined once the shops are closed. */
  async freeCounter(counters: readonly LoadBox[], fraction: number): Promise<LoadBox | undefined> {
    const { signal } = this.#deps;
    const first = Math.floor(fraction * counters.length);
    while (!signal.aborted) {
      for (let i = 0; i < counters.length; i += 1) {
        const counter = counters[(first + i) % counters.length];
        if (counter !== undefined && !this.#awaiting.has(counter.terminalCode)) return counter;
      }
      // Every call has a deadline of its own: one of them is answered, or has failed.
      await this.#oneAnswered.promise;
    }
    return undefined;
  }

  begin(sale: Sale, counter: LoadBox): void {
    this.#awaiting.add(counter.terminalCode);
    const done = this.#sell(sale, counter).finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  /** Nobody waits any more for customers who take long: they pay. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#underWay);
  }

  async #sell(sale: Sale, counter: LoadBox): Promise<void> {
    const { clock, measured, signal } = this.#deps;
    const order = await this.#push(sale, counter);
    this.#awaiting.delete(counter.terminalCode);
    this.#oneAnswered.resolve();
    this.#oneAnswered = Promise.withResolvers();
    if (order?.answer !== 'SUCCESS' || sale.outcome === 'unpaid') return;
    await clock.sleep(sale.paidAfterMs, sale.outcome === 'paidLate' ? this.#closing.signal : signal);
    if (!signal.aborted) await this.#pay(order);
    measured.payments += order.payment?.transactionId === undefined ? 0 : 1;
  }

  /** The order, as the gateway answered it; undefined where there was nothing to push. */
  async #push({ number, amount }: Sale, counter: LoadBox): Promise<FleetOrder | undefined> {
    const { gateway, tracker, measured, clock, runId } = this.#deps;
    const { terminalCode, serialNumber } = counter;
    const { bankAccount, bankCode } = gateway.account;
    const content = `${runId} ${number}`;
    const orderId = `${runId}-${number}`;
    let order: FleetOrder | undefined;
    try {
      const token = await this.token();
      const asked = { ...gateway.account, amount, content, orderId };
      const { qrCode } = await gateway.partner.generate(token, asked);
      order = { terminalCode, orderId, content, amount, qrCode, wasShown: false };
      tracker.add(order);
      const push = {
        bankAccount,
        bankCode,
        amount: String(amount),
        content,
        qrCode,
        terminalCode,
        serialNumber,
        orderId,
      };
      const sentMs = clock.monotonicMs();
      const { status, message } = await gateway.partner.sendQr(token, push);
      order.answer = status === 'SUCCESS' ? 'SUCCESS' : message;
      if (status === 'SUCCESS') measured.confirmedMs.push(clock.monotonicMs() - sentMs);
      if (status === 'SUCCESS' && this.#plan.confirmsDisplayed && !order.wasShown) {
        tracker.problem(`order ${orderId} was answered SUCCESS before its QR was on the screen of ${terminalCode}`);
      }
      measured.answered(order.answer);
    } catch (error) {
      measured.answered(codeOf(error));
    }
    return order;
  }

  /** A payment that is not answered may be kept all the same: the verdict asks the gateway. */
  async #pay(order: FleetOrder): Promise<void> {
    const { gateway, clock } = this.#deps;
    const { bankAccount } = gateway.account;
    const { content, amount } = order;
    order.payment = { askedAtMs: clock.monotonicMs() };
    try {
      const { status, message } = await gateway.partner.testCallback(await this.token(), {
        bankAccount,
        content,
        amount,
        transType: 'C',
      });
      if (status === 'SUCCESS') order.payment.transactionId = message;
      else order.payment.refusal = message;
    } catch (error) {
      order.payment.refusal = codeOf(error);
    }
  }
}

/** By what name a call failed. */
function codeOf(error: unknown): string {
  if (error instanceof MissingPeerError) return NO_ANSWER;
  return error instanceof PayboxError ? error.code : reasonOf(error);
}
