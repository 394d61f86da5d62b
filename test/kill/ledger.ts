import type { Evidence } from './evidence.ts';
import type { GatewayPayment } from './inspection.ts';
import type { PartnerEndpoint } from './partner.ts';
import type { Outcome } from './shop.ts';

/** A paid screen may come again when the box died so soon after it had shown it, on a machine with much else to do. */
const PAID_SCREEN_GRACE_MS = 1_000;

interface Asked {
  content: string;
  amount: number;
  startedMs: number;
  outcome: Outcome;
}

/** The payments of one run: what was promised, and what has become of it at gateway, partner and box. */
export class Ledger {
  readonly #asked: Asked[] = [];
  readonly #evidence: Evidence;
  readonly #partner: PartnerEndpoint;

  constructor(evidence: Evidence, partner: PartnerEndpoint) {
    this.#evidence = evidence;
    this.#partner = partner;
  }

  add(asked: Asked): void {
    this.#asked.push(asked);
  }

  /** This run's among the payments of the gateway. */
  ofRun(payments: readonly GatewayPayment[]): GatewayPayment[] {
    const contents = new Set(this.#asked.map(({ content }) => content));
    return payments.filter(({ content }) => contents.has(content));
  }

  /**
   * What is still owed to somebody; `agentKilledMs` are the moments when the agent died in this run, `hasQr` whether a QR is on the
   * screen: the paid screens that have waited come after it (AGT-12).
   */
  owed(payments: readonly GatewayPayment[], agentKilledMs: readonly number[], hasQr: boolean): string[] {
    const mine = this.ofRun(payments);
    const lost = this.#promised().filter((id) => !mine.some(({ transactionId }) => transactionId === id));
    return [
      ...lost.map((id) => `${id} was accepted, and the gateway does not know it`),
      ...mine.flatMap((payment) => this.#owedOf(payment, agentKilledMs, hasQr)),
    ];
  }

  /** What must never be, and no waiting can mend. */
  violations(payments: readonly GatewayPayment[]): string[] {
    const mine = this.ofRun(payments);
    return [...this.#wrongCounts(mine), ...mine.flatMap((payment) => this.#violationsOf(payment, mine))];
  }

  /** Payments that were not said aloud: their agent died before it could, and the screen has told them. */
  silent(payments: readonly GatewayPayment[]): number {
    return this.ofRun(payments).filter(({ transactionId }) => this.#evidence.voiced(transactionId) === 0).length;
  }

  #promised(): string[] {
    return this.#asked.flatMap(({ outcome }) =>
      outcome.kind === 'answered' && outcome.ok ? [String(outcome.body.message)] : [],
    );
  }

  #owedOf(
    { transactionId, content, boxes, callback }: GatewayPayment,
    agentKilledMs: readonly number[],
    hasQr: boolean,
  ): string[] {
    const owed: string[] = [];
    const name = `${transactionId} (${content})`;
    if (boxes.length !== 1) owed.push(`${name} is to be told to ${boxes.length} boxes`);
    if (boxes.some(({ reportedAt }) => reportedAt === null)) owed.push(`${name} is not reported by the box`);
    if (boxes.some(({ recorded }) => recorded === false)) owed.push(`${name} is not in the journal of the box`);
    if (callback?.status !== 'delivered') owed.push(`the callback of ${name} is ${callback?.status ?? 'not there'}`);
    if (!this.#partner.calls.has(transactionId)) owed.push(`the partner has not heard of ${name}`);
    if (!hasQr && this.#evidence.paidScreens(transactionId) === 0) owed.push(`no screen has shown ${name} as paid`);
    const startedMs = Math.min(...this.#asked.filter((it) => it.content === content).map((it) => it.startedMs));
    const mayBeSilent = agentKilledMs.some((killedMs) => killedMs > startedMs);
    if (!mayBeSilent && this.#evidence.voiced(transactionId) === 0) owed.push(`${name} was not said aloud`);
    return owed;
  }

  #violationsOf({ transactionId, content, amount }: GatewayPayment, mine: readonly GatewayPayment[]): string[] {
    const wrong: string[] = [];
    const name = `${transactionId} (${content})`;
    const voiced = this.#evidence.voiced(transactionId);
    if (voiced > 1) wrong.push(`${name} was said aloud ${voiced} times`);
    const spoken = this.#evidence.spoken(amount);
    const paid = mine.filter((it) => it.amount === amount).length;
    if (spoken > paid) wrong.push(`the amount of ${name} was spoken ${spoken} times for ${paid} payments`);
    if (this.#evidence.paidScreenRepeated(transactionId, PAID_SCREEN_GRACE_MS)) {
      wrong.push(`${name} was shown as paid again after a restart`);
    }
    const bodies = this.#partner.calls.get(transactionId)?.bodies.size ?? 0;
    if (bodies > 1) wrong.push(`the callbacks of ${name} had ${bodies} different bodies`);
    return wrong;
  }

  /** Each request is all or nothing, and nothing else is ever a payment. */
  #wrongCounts(mine: readonly GatewayPayment[]): string[] {
    return [...new Set(this.#asked.map(({ content }) => content))].flatMap((content) => {
      const asked = this.#asked.filter((it) => it.content === content);
      const least = asked.filter(({ outcome }) => outcome.kind === 'answered' && outcome.ok).length;
      const most = least + asked.filter(({ outcome }) => outcome.kind === 'unknown').length;
      const there = mine.filter((it) => it.content === content).length;
      return there < least || there > most
        ? [`${there} payments of ${content} for ${least} answered and ${most - least} unanswered requests`]
        : [];
    });
  }
}
