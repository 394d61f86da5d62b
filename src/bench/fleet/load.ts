import { type Clock, untilAborted, withDeadline } from '../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import type { GatewayClient } from '../engine/clients/gateway.ts';
import type { Measurements } from './measurements.ts';
import type { FleetOrder, OrderTracker } from './order-tracker.ts';

/** The load on a fleet: pushes and payments. */
export interface LoadPlan {
  /** The rate over all boxes together. */
  pushesPerSecond: number;
  /** The load ends after this number of pushes. */
  pushes: number;
  /** The load ends after this time; undefined when only `pushes` limits it. */
  seconds: number | undefined;
  /** True if SUCCESS means that the QR is on the screen. Otherwise it means that the push is on the box's disk. */
  confirmsDisplayed: boolean;
}

export interface LoadDeps {
  gateway: GatewayClient;
  tracker: OrderTracker;
  measured: Measurements;
  clock: Clock;
  /** Seeded random numbers, so that a run can be repeated. */
  random: Random;
  /** A short random text in each order of this run, so that orders of other runs differ. */
  runId: string;
  /** Ends the load: no push and no payment begins after it. */
  signal: AbortSignal;
}

export interface LoadBox {
  readonly terminalCode: string;
  readonly serialNumber: string;
}

/** The limit exists because all orders stay in memory until the verdict. */
export const PUSHES_MAX = 1_000_000;
/** The load renews a token well before it expires (PROTOCOL.md, clause TOK-2). */
const TOKEN_AGE_MAX_MS = 240_000;
/** The shares of the orders that customers pay. The other orders are replaced or expire. */
const SHARES = { paid: 0.6, paidLate: 0.05 } as const;
/** The time from the answer to the payment. A late payment may come after the QR has left the screen. */
const PAID_AFTER_MS = { paid: { min: 300, max: 3_000 }, paidLate: { min: 9_000, max: 12_000 } } as const;
const AMOUNT_STEP = 1_000;
const AMOUNT_STEPS_MAX = 2_000;
const NO_ANSWER = 'NO_ANSWER';
/** The time for the calls under way when the signal ends the load. A gateway that hangs does not answer them. */
const LAST_ANSWERS_MS = 300;

/** One order to push, and when its customer pays after the answer. */
interface Sale {
  readonly number: number;
  readonly amount: number;
  readonly outcome: keyof typeof SHARES | 'unpaid';
  readonly paidAfterMs: number;
}

/**
 * Pushes at a constant rate and pays a share of the orders. Each push goes to a random box, or to the next free one if
 * that box still waits for an answer. It resolves when the load has ended and every call is answered. After the signal
 * it soon abandons open calls. Throws PayboxError when the gateway rejects the partner's credentials.
 */
export async function runLoad(boxes: readonly LoadBox[], plan: LoadPlan, deps: LoadDeps): Promise<void> {
  const { clock, random, signal, measured } = deps;
  const load = new Load(plan, deps);
  await untilAborted(signal, load.token()).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const beganMs = clock.monotonicMs();
  const endMs = beganMs + (plan.seconds ?? Number.POSITIVE_INFINITY) * 1000;
  for (let number = 1; number <= Math.min(plan.pushes, PUSHES_MAX); number += 1) {
    const dueMs = beganMs + ((number - 1) / plan.pushesPerSecond) * 1000;
    const waitMs = Math.min(dueMs, endMs) - clock.monotonicMs();
    // The load never sleeps 0 ms. In a busy process each such sleep costs a turn of the event loop, and the rate falls
    // behind.
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    const sale = saleOf(number, random);
    const box = await load.freeBox(boxes, random.fraction());
    if (box === undefined || clock.monotonicMs() >= endMs) break;
    load.begin(sale, box);
  }
  measured.loadMs = clock.monotonicMs() - beganMs;
  await load.close();
}

function saleOf(number: number, random: Random): Sale {
  const amount = AMOUNT_STEP * (1 + Math.floor(random.fraction() * AMOUNT_STEPS_MAX));
  const [chance, patience] = [random.fraction(), random.fraction()];
  if (chance >= SHARES.paid + SHARES.paidLate) return { number, amount, outcome: 'unpaid', paidAfterMs: 0 };
  const outcome = chance < SHARES.paid ? 'paid' : 'paidLate';
  const { min, max } = PAID_AFTER_MS[outcome];
  return { number, amount, outcome, paidAfterMs: min + patience * (max - min) };
}

class Load {
  readonly #plan: LoadPlan;
  readonly #deps: LoadDeps;
  /** The boxes (terminalCode) with a push that waits for its answer. */
  readonly #awaiting = new Set<string>();
  readonly #underWay = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #oneAnswered = Promise.withResolvers<void>();
  #token: { taken: Promise<string>; atMs: number } | undefined;

  constructor(plan: LoadPlan, deps: LoadDeps) {
    this.#plan = plan;
    this.#deps = deps;
  }

  /** Returns the shared token, which is renewed before it expires. */
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

  /** Returns a box without a pending push, and waits while there is none. Returns undefined once the load has ended. */
  async freeBox(boxes: readonly LoadBox[], fraction: number): Promise<LoadBox | undefined> {
    const { signal } = this.#deps;
    const first = Math.floor(fraction * boxes.length);
    while (!signal.aborted) {
      for (let i = 0; i < boxes.length; i += 1) {
        const box = boxes[(first + i) % boxes.length];
        if (box !== undefined && !this.#awaiting.has(box.terminalCode)) return box;
      }
      // Every call has its own deadline, so at least one settles.
      await untilAborted(signal, this.#oneAnswered.promise).catch(() => undefined);
    }
    return undefined;
  }

  begin(sale: Sale, box: LoadBox): void {
    this.#awaiting.add(box.terminalCode);
    const done = this.#run(sale, box).finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  /** Makes the late customers pay at once, and waits for all answers. After the signal it waits for a moment only. */
  async close(): Promise<void> {
    const { clock, signal } = this.#deps;
    this.#closing.abort();
    const answered = Promise.all(this.#underWay);
    await untilAborted(signal, answered).catch(() => withDeadline(clock, LAST_ANSWERS_MS, answered));
  }

  async #run(sale: Sale, box: LoadBox): Promise<void> {
    const { clock, measured, signal } = this.#deps;
    const order = await this.#push(sale, box);
    this.#awaiting.delete(box.terminalCode);
    this.#oneAnswered.resolve();
    this.#oneAnswered = Promise.withResolvers();
    if (order?.answer !== 'SUCCESS' || sale.outcome === 'unpaid') return;
    await clock.sleep(sale.paidAfterMs, sale.outcome === 'paidLate' ? this.#closing.signal : signal);
    if (!signal.aborted) await this.#pay(order);
    measured.payments += order.payment?.transactionId === undefined ? 0 : 1;
  }

  /** Returns the order as the gateway answered it; undefined when generate failed. */
  async #push({ number, amount }: Sale, box: LoadBox): Promise<FleetOrder | undefined> {
    const { gateway, tracker, measured, clock, runId } = this.#deps;
    const { terminalCode, serialNumber } = box;
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

  /** Pays an order. The gateway may have stored a payment without an answer, so the verdict asks the gateway. */
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

/** Returns the refusal code, or a name for the failure. */
function codeOf(error: unknown): string {
  if (error instanceof MissingPeerError) return NO_ANSWER;
  return error instanceof PayboxError ? error.code : reasonOf(error);
}
