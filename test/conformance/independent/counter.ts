import { payeeOf } from './qr-payload.ts';
import type { BoxClock, Json } from './signed-session.ts';

/* What a box shows, remembers and reports (PROTOCOL.md, clauses AGT and MSG-5 to MSG-10). */

const PAID_MS = 10_000;
const PAID_SHORT_MS = 3_000;
/** Another account is on the screen for this time. */
const ACCOUNT_MS = 5_500;
const RESEND_MS = 10_000;
const IN_FLIGHT_MAX = 100;
const BINS: Readonly<Record<string, string>> = { MB: '970422', VCB: '970436' };

interface Order {
  pushId: string;
  orderId: string;
  content: string;
  amount: number;
  qrCode: string;
  expiresAtMs: number;
  deadlineMs: number;
}

interface Paid {
  transactionId: string;
  content: string;
  amount: number;
}

interface Report {
  body: Json;
  sentAtMs: number | undefined;
}

export class Counter {
  readonly #clock: BoxClock;
  readonly #disk: Json[];
  readonly #say: (body: Json) => void;
  readonly #announced = new Map<string, Json>();
  readonly #closed = new Set<string>();
  #reports: Report[] = [];
  #account: Json | null | undefined;
  #order: Order | undefined;
  #paid: (Paid & { sinceMs: number }) | undefined;
  /** Payments that nobody has seen yet. */
  #waiting: Paid[] = [];
  /** How many of these, the oldest, waited before the QR of the order came: they do not cover it. */
  #behindQr = 0;
  /** The account that people know, and since when the screen says that it is another one now. */
  #known: Json | undefined;
  #newAccountSinceMs: number | undefined;
  /** Whether the disk may have lost payments that were said aloud. */
  readonly #isNew: boolean;
  #firstWelcomeMs = 0;
  /** Whether the gateway is a sandbox whose boxes say so. */
  #isMarked = false;
  /** Number of payments said aloud since the start. */
  announcements = 0;

  constructor(clock: BoxClock, disk: Json[], say: (body: Json) => void) {
    this.#clock = clock;
    this.#disk = disk;
    this.#say = say;
    this.#isNew = disk.length === 0;
    for (const entry of disk) this.#remember(entry);
  }

  get shownPushId(): string | null {
    return this.#order?.pushId ?? null;
  }

  /** What is in the window: the QR, or a text. */
  get screen(): { qr: string | undefined; text: string } {
    const mark = this.#isMarked ? 'SANDBOX ' : '';
    const of = ({ content, amount }: Paid | Order) => `${content}\n${amount} đ\n`;
    if (this.#paid !== undefined) return { qr: undefined, text: `${mark}Received ${of(this.#paid)}` };
    if (this.#order !== undefined) return { qr: this.#order.qrCode, text: `${mark}Please pay ${of(this.#order)}` };
    if (!this.#isOtherAccount) return { qr: undefined, text: `${mark}Welcome\n` };
    return {
      qr: undefined,
      text: `${mark}Money goes to ${this.#account?.bankAccount}, not ${this.#known?.bankAccount}\n`,
    };
  }

  get state(): string {
    if (this.#paid !== undefined) return 'paid';
    return this.#order === undefined ? 'idle' : 'showing';
  }

  /** A person presses the key. */
  dismiss(): void {
    if (this.#paid !== undefined) this.#paid = undefined;
    else if (this.#order !== undefined) this.#end('dismissed');
    else if (this.#isOtherAccount) this.#write({ kind: 'account', account: this.#account });
  }

  get #isOtherAccount(): boolean {
    return this.#account?.bankAccount !== undefined && this.#account.bankAccount !== this.#known?.bankAccount;
  }

  /** One line of the disk, at its writing or after a restart. */
  #remember(entry: Json): void {
    const { kind, id, order, body } = entry;
    if (kind === 'show') this.#order = this.#restored(order as Order);
    if (kind === 'closed') this.#close(String(id));
    if (kind === 'account') this.#known = entry.account as Json;
    if (kind === 'paid') {
      this.#announced.set(String(id), body as Json);
      if (entry.isLate !== true) this.#waiting.push(entry.payment as Paid);
    }
    if (kind === 'mark') this.#isMarked = entry.isMarked === true;
    if (kind === 'seen') this.#waiting = this.#waiting.filter(({ transactionId }) => transactionId !== id);
    if (kind === 'report') this.#reports.push({ body: body as Json, sentAtMs: undefined });
    if (kind === 'acked') this.#reports = this.#reports.filter((report) => report.body.id !== id);
  }

  #restored(order: Order): Order {
    const nowMs = this.#clock.monotonicMs();
    return { ...order, deadlineMs: nowMs + order.expiresAtMs - this.#clock.wallMs() };
  }

  #write(entry: Json): void {
    this.#disk.push(structuredClone(entry));
    if (entry.kind !== 'show') this.#remember(entry);
  }

  #close(pushId: string): void {
    this.#closed.add(pushId);
    if (this.#order?.pushId === pushId) this.#order = undefined;
  }

  tick(): void {
    const nowMs = this.#clock.monotonicMs();
    if (this.#order !== undefined && nowMs >= this.#order.deadlineMs) this.#end('expired');
    if (this.#paid !== undefined) {
      const isShort = this.#waiting.length > 0 || this.#order !== undefined;
      if (nowMs >= this.#paid.sinceMs + (isShort ? PAID_SHORT_MS : PAID_MS)) this.#paid = undefined;
    }
    if (this.#order === undefined) this.#behindQr = 0;
    const next = this.#paid === undefined ? this.#waiting[this.#behindQr] : undefined;
    if (next !== undefined) {
      this.#paid = { ...next, sinceMs: nowMs };
      this.#write({ kind: 'seen', id: next.transactionId });
    }
    if (this.#paid !== undefined || this.#order !== undefined || !this.#isOtherAccount)
      this.#newAccountSinceMs = undefined;
    else this.#newAccountSinceMs ??= nowMs;
    const isKnown = this.#newAccountSinceMs !== undefined && nowMs >= this.#newAccountSinceMs + ACCOUNT_MS;
    if (isKnown) this.#write({ kind: 'account', account: this.#account });
    this.#flush();
  }

  welcome({ link, openPushIds, sentAtMs, mode, sandboxMark }: Json): void {
    const isMarked = mode === 'sandbox' && sandboxMark === true;
    if (isMarked !== this.#isMarked) this.#write({ kind: 'mark', isMarked });
    if (this.#account === undefined) this.#firstWelcomeMs = Number(sentAtMs);
    this.#account = link as Json | null;
    if (this.#known === undefined && link !== null) this.#write({ kind: 'account', account: link });
    for (const report of this.#reports) report.sentAtMs = undefined;
    const open = openPushIds as string[];
    if (this.#order !== undefined && (!open.includes(this.#order.pushId) || !this.#isOurs(this.#order.qrCode))) {
      this.#end('withdrawn');
    }
    this.#flush();
  }

  offline(): void {
    for (const report of this.#reports) report.sentAtMs = undefined;
  }

  /** Another agent has this name, or nobody knows it: no QR stays. */
  refused(): void {
    if (this.#order !== undefined) this.#end('withdrawn');
  }

  hear(message: Json, helloAtMs: number): void {
    const { type, pushId } = message;
    if (type === 'show') this.#show(message, helloAtMs);
    if (type === 'payment') this.#pay(message);
    if (type === 'withdraw' && pushId === this.#order?.pushId) this.#end('withdrawn');
    else if (type === 'withdraw') this.#reject(String(pushId), 'WITHDRAWN', 'not on the screen');
    if (type === 'ack') {
      const known = (id: string) => this.#reports.some(({ body }) => body.id === id);
      for (const id of (message.reportIds as string[]).filter(known)) this.#write({ kind: 'acked', id });
    }
    this.tick();
  }

  #show(message: Json, helloAtMs: number): void {
    const { orderId, content, qrCode, expiresAtMs } = message as unknown as Order;
    const pushId = String(message.pushId);
    const nowMs = this.#clock.monotonicMs();
    const deadlineMs = helloAtMs + Number(message.sessionMs) + Number(message.expiresInMs);
    if (pushId === this.#order?.pushId) {
      this.#say({ type: 'shown', pushId });
      return;
    }
    if (this.#closed.has(pushId)) {
      this.#reject(pushId, 'WITHDRAWN', 'it is over');
      return;
    }
    const problem = this.#problemOf(message) ?? (deadlineMs <= nowMs ? 'WITHDRAWN' : undefined);
    if (problem !== undefined) {
      this.#reject(pushId, problem, 'refused by an independent box');
      return;
    }
    if (this.#order !== undefined) this.#end('replaced');
    const order = { pushId, orderId, content, amount: Number(message.amount), qrCode, expiresAtMs };
    this.#order = { ...order, deadlineMs };
    this.#behindQr = this.#waiting.length;
    this.#write({ kind: 'show', order: this.#order });
    this.#say({ type: 'accepted', pushId });
    // This push takes the screen at once: the window shows what is in the fields.
    this.#paid = undefined;
    this.#say({ type: 'shown', pushId });
  }

  #problemOf({ qrCode, amount, bankAccount, bankCode }: Json): string | undefined {
    try {
      const payee = payeeOf(String(qrCode));
      const isRight = payee.amount === amount && payee.account === bankAccount && payee.bin === binOf(bankCode);
      return isRight && this.#isOurs(String(qrCode)) ? undefined : 'QR_MISMATCH';
    } catch {
      return 'QR_INVALID';
    }
  }

  #isOurs(qrCode: string): boolean {
    const { bin, account, isCard } = payeeOf(qrCode);
    return !isCard && account === this.#account?.bankAccount && bin === binOf(this.#account?.bankCode);
  }

  #pay(message: Json): void {
    const { transactionId, orderId, content, amount, pushId } = message as Json & Paid;
    const before = this.#announced.get(transactionId);
    if (before !== undefined) {
      this.#say(before);
      return;
    }
    const body = { type: 'paid', id: transactionId, transactionId, orderId, amount, recorded: true };
    const isLate = message.late === true;
    this.#write({ kind: 'paid', id: transactionId, body, payment: { transactionId, content, amount }, isLate });
    if (typeof pushId === 'string') this.#write({ kind: 'closed', id: pushId });
    const maybeSaid = this.#isNew && message.repeated === true && Number(message.paidAtMs) < this.#firstWelcomeMs;
    if (!maybeSaid && !isLate) this.announcements += 1;
    this.#report(body);
  }

  #end(how: string): void {
    if (this.#order === undefined) return;
    const { pushId, orderId } = this.#order;
    this.#write({ kind: 'closed', id: pushId });
    this.#report({ type: 'ended', id: pushId, pushId, orderId, how });
  }

  #reject(pushId: string, code: string, reason: string): void {
    this.#write({ kind: 'closed', id: pushId });
    this.#say({ type: 'rejected', pushId, code, reason });
  }

  #report(body: Json): void {
    this.#write({ kind: 'report', body });
    this.#flush();
  }

  /** Durable reports, in their order, again after 10 s. */
  #flush(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const report of this.#reports.slice(0, IN_FLIGHT_MAX)) {
      if (this.#account === undefined || nowMs < (report.sentAtMs ?? -RESEND_MS) + RESEND_MS) continue;
      report.sentAtMs = nowMs;
      this.#say(report.body);
    }
  }
}

function binOf(bankCode: unknown): string | undefined {
  return BINS[String(bankCode)];
}
