import { findBank } from '../../../protocol/banks.ts';
import { amountText, type WireNotice } from '../../../protocol/dialect.ts';
import { encodeVietQr, isPayable, type VietQr } from '../../../protocol/vietqr.ts';
import { waitUntilRight } from '../../engine/test-time.ts';
import { ANNOUNCEMENT_MAX_MS, BoxPages } from '../box/box-pages.ts';
import { ACCOUNT } from '../box/gateway/scripted-gateway.ts';
import { RETURN_MS } from '../box/subject.ts';
import { Breach, type CheckRun, ifKnown, Mismatch, PreconditionFailed, precondition } from '../check.ts';
import type { BoxLine, ScriptedService } from './scripted-service.ts';
import type { DialectSubject } from './subject.ts';

/** Time within which a QR is on the screen; several payments may still be there, one after another. */
const SHOWN_MS = 45_000;
/** Time for which a QR that must not come is awaited. */
const AWAY_MS = 4_000;
/** Time in which a box that dies of a message has done so. */
const LASTS_MS = 3_000;
const AMOUNT_MIN = 10_000;
const AMOUNTS = 90_000;
const BANK = findBank(ACCOUNT.bankCode);

/** A QR, and how a person is asked for it. */
export interface Shown {
  qrCode: string;
  name: string;
}

/** An order of the dialect. */
export interface DialectOrder extends Shown {
  amount: number;
}

/** Sends messages of the public service to the judged box, and judges what people see and hear there. */
export class DialectContext {
  readonly subject: DialectSubject;
  readonly run: CheckRun<DialectSubject>;
  readonly box: BoxPages;

  constructor(run: CheckRun<DialectSubject>) {
    this.run = run;
    this.subject = run.subject;
    this.box = new BoxPages(run);
  }

  get service(): ScriptedService {
    return this.subject.service;
  }

  get time() {
    return this.subject.time;
  }

  say(notice: WireNotice): Promise<void> {
    if (notice.notificationType === 'N16') this.service.hasLinked = true;
    return this.service.say(notice);
  }

  /** Returns the message that links the box to the account of this bench. */
  linked(change: Partial<Extract<WireNotice, { notificationType: 'N16' }>> = {}) {
    const { bankAccount, bankCode, userBankName } = ACCOUNT;
    return {
      notificationType: 'N16' as const,
      bankAccount,
      bankShortName: bankCode,
      userBankName,
      terminalCode: this.subject.identity.terminalCode,
      terminalName: 'BENCH',
      qrCode: this.staticQr().qrCode,
      bankCode,
      imgBank: '',
      homePage: '',
      ...change,
    };
  }

  /** Returns the QR of an account, without an amount. */
  staticQr(account = ACCOUNT.bankAccount): Shown {
    const qrCode = encodeVietQr({ ...this.#payee(account), initiation: 'static', amount: undefined });
    return { qrCode, name: 'its account, for any amount' };
  }

  /** Returns an order of another amount than all others. */
  order(change: Partial<VietQr> = {}): DialectOrder {
    const { random } = this.service;
    const amount = change.amount ?? AMOUNT_MIN + Math.floor(random.fraction() * AMOUNTS);
    const purpose = `BENCH ${random.uuid().slice(0, 8).toUpperCase()}`;
    const qrCode = encodeVietQr({ ...this.#payee(), initiation: 'dynamic', amount, purpose, ...change });
    return { amount, qrCode, name: `an order of ${amountText(amount)} đồng` };
  }

  #payee(account = ACCOUNT.bankAccount) {
    return { bin: BANK?.bin ?? '', account, service: 'account' } as const;
  }

  push({ amount, qrCode }: DialectOrder, text: string | number = amountText(amount)): Promise<void> {
    return this.say({ notificationType: 'N17', amount: text, qrCode });
  }

  /** Ends the order on the screen. */
  end(): Promise<void> {
    return this.say({ notificationType: 'N12', transactionReceiveId: this.service.random.uuid() });
  }

  pay({ amount }: { amount: number }, message = `Da nhan ${amount} dong, ${this.service.random.uuid()}`) {
    return this.say({ notificationType: 'N05', amount: amountText(amount), message });
  }

  /** Pushes an order and sees its QR. Throws PreconditionFailed otherwise: another check judges that. */
  async pushShown(order = this.order()): Promise<DialectOrder> {
    await this.push(order);
    await precondition('the QR of an order on the screen', () => this.expectShown(order));
    return order;
  }

  /** Breaks the connection. Throws Mismatch unless the box comes back, enrols and listens again. */
  async reconnect(): Promise<void> {
    const { line } = this.service;
    this.service.cut();
    await this.expectBack(line);
  }

  /** Restarts the box. Throws PreconditionFailed unless it enrols. */
  async restart(): Promise<void> {
    const { line } = this.service;
    await this.subject.controls.restart?.();
    if (await this.run.isSoon(2 * RETURN_MS, () => this.service.line !== line)) return;
    raise('needs a box that enrols after a restart');
  }

  /** Throws Mismatch unless the box enrols and listens on another connection than this one. */
  async expectBack(after: BoxLine | undefined, withinMs = RETURN_MS): Promise<void> {
    const { service } = this;
    const hasEnrolled = () => service.line !== undefined && service.line !== after;
    if (!(await this.run.isSoon(withinMs, hasEnrolled))) throw new Mismatch('the box has not enrolled again');
    if (!(await this.isBack())) throw new Mismatch('the box has enrolled, but does not listen on its topic');
  }

  isBack(): Promise<boolean> {
    return this.run.isSoon(RETURN_MS, () => this.service.isHeard);
  }

  async expectShown(shown: Shown): Promise<void> {
    if (!this.#hasEyes) return this.#expectAnswer(`Is the QR of ${shown.name} on the screen?`, true);
    // No report tells when a picture is painted, so the clock has to stand for it at the deadline.
    const look = () => this.box.expectQr(shown).then(() => undefined, problemOf);
    const problem = await waitUntilRight(this.time, SHOWN_MS, look, this.run.signal);
    if (problem !== undefined) throw new Mismatch(problem);
  }

  async expectNotShown(shown: Shown): Promise<void> {
    if (this.#hasEyes) await this.#expectAway(shown);
    else await this.#expectAnswer(`Is the QR of ${shown.name} on the screen?`, false);
  }

  /**
   * Throws Mismatch when the QR comes to the screen. A QR that the service never sent is a Breach: whoever pays it pays
   * nobody, or another amount.
   */
  async #expectAway({ qrCode, name }: Shown): Promise<void> {
    const { service } = this;
    const isForeign = (qr = '') => service.hasLinked && isPayable(qr) && !service.sentQrs.has(qr);
    const seen = await this.box.waitForQr(AWAY_MS, (qr) => qr === qrCode || isForeign(qr));
    if (seen === qrCode) throw new Mismatch(`the QR of ${name} is on the screen`);
    if (isForeign(seen)) throw new Breach(`the screen shows the QR ${seen}, which nobody has sent`);
  }

  /** Throws Mismatch when the QR is still on the screen after the time that a box needs to take it away. */
  async expectTakenAway(shown: Shown, withinMs?: number): Promise<void> {
    if (this.#hasEyes) await this.box.expectQrGone(shown, withinMs);
    else await this.#expectAnswer(`Is the QR of ${shown.name} still on the screen?`, false);
  }

  /** Throws Mismatch unless the screen names the amount. */
  async expectNamed({ amount }: { amount: number }): Promise<void> {
    if (this.subject.controls.pages !== undefined) await this.box.expectAmount(amount, SHOWN_MS);
    else await this.#expectAnswer(`Does the screen say ${amountText(amount)} đồng?`, true);
  }

  /** Throws Mismatch unless the box says so many payments aloud for what `provoke` does. */
  async expectSaid(count: number, provoke: () => Promise<void>): Promise<void> {
    const before = this.subject.controls.pages && (await ifKnown(() => this.box.announcements()));
    await provoke();
    if (before !== undefined) await this.box.expectAnnouncements(before + count);
    else await this.#expectAnswer(`Did the box say ${count === 1 ? 'one payment' : `${count} payments`} aloud?`, true);
  }

  /**
   * Throws Mismatch when the connection of the box ends by this, or when the box forgets what is on its screen: the order,
   * or else the static QR. It must show another order then, where that can be seen.
   */
  async expectSurvives(provoke: () => Promise<void>, keeps: 'order' | 'account' = 'account'): Promise<void> {
    const { line } = this.service;
    const canBeSeen = this.#hasEyes || this.subject.controls.ask !== undefined;
    const kept = canBeSeen ? await this.#shownBefore(keeps) : undefined;
    await provoke();
    // A box that died may be back before anything else is looked at.
    if (await this.run.isSoon(LASTS_MS, () => line?.client.connected !== true)) {
      throw new Mismatch('its connection has ended: it has died, or given up');
    }
    if (!(await this.isBack())) throw new Mismatch('since then the box does not listen any more');
    if (!canBeSeen) return;
    if (keeps === 'account') await this.end();
    const order = this.order();
    try {
      if (kept !== undefined) await this.expectShown(kept);
      await this.push(order);
      await this.expectShown(order);
    } catch (error) {
      // The screen was seen before.
      const isBlind = this.#hasEyes && error instanceof PreconditionFailed;
      throw isBlind ? new Mismatch(`since then ${error.message}`, error) : error;
    }
  }

  /** Shows an order, and ends it unless it is to be kept. Returns what is on the screen, if that is known. */
  async #shownBefore(keeps: 'order' | 'account'): Promise<Shown | undefined> {
    const order = await this.pushShown();
    if (keeps === 'order') return order;
    await this.end();
    const idle = this.staticQr();
    const seen = this.#hasEyes && (await this.box.waitForQr(ANNOUNCEMENT_MAX_MS, (qr) => qr === idle.qrCode));
    return seen === idle.qrCode ? idle : undefined;
  }

  get #hasEyes(): boolean {
    return this.subject.controls.see !== undefined;
  }

  async #expectAnswer(question: string, expected: boolean): Promise<void> {
    const ask = this.subject.controls.ask ?? raise('nobody can be asked');
    this.run.step(question);
    const answer = await ask(question, this.run.signal);
    this.run.evidence.add('status', question, { detail: answer });
    if (answer === undefined) throw new PreconditionFailed(`nobody can tell: ${question}`);
    if (answer !== expected) throw new Mismatch(`somebody at the box says ${answer ? 'yes' : 'no'} to: ${question}`);
  }
}

function problemOf(error: unknown): string {
  if (error instanceof Mismatch) return error.message;
  throw error;
}

function raise(why: string): never {
  throw new PreconditionFailed(why);
}
