import { explained } from '../../protocol/codes.ts';
import { PATHS } from '../../protocol/http-api.ts';
import { decodeVietQr, encodeVietQr } from '../../protocol/vietqr.ts';
import {
  answerOf,
  asBegun,
  begunMs,
  type Call,
  generateAnswer,
  generateBody,
  isService,
  messageOf,
  type Overlap,
  ownersDeed,
  payBody,
  sendBody,
} from './calls.ts';
import { OwnersDeeds } from './injected.ts';
import type { Ledger, Order } from './ledger.ts';
import { type Line, line, note, variable } from './line.ts';
import type { Outages } from './outages.ts';
import { overlapsIn } from './overlaps.ts';
import { changesOf } from './send-changes.ts';
import type { Stand } from './stand.ts';
import type { Heard } from './wire-at.ts';

/** An order between its generate and the push that may come right after it. */
interface Made {
  order: Order;
  line: Line;
}

/** What the test callback takes as a content. */
const PAYABLE = /^[A-Za-z0-9 ]{1,19}$/;
/** Calls whose answers hang on how things meet within milliseconds, or on how long a box is silent. */
const UNTIMED: Readonly<Record<string, string>> = {
  REPLACED: 'another push overtook it before it was on the screen',
  WITHDRAWN: 'it was taken back before it was on the screen',
  BOX_TIMEOUT: 'the box did not confirm it in time',
};
/** What a box refuses for a fault of its own, which the gateway does not hear of. */
const OF_BOX: Readonly<Record<string, string>> = { DISPLAY_FAULT: 'display', STORAGE_FAULT: 'disk' };
/** What depends on the token, and on how the gateway is set up. */
const SET_UP = ['E74', 'E75', 'E76', 'E77'];

/** What partners and owners did, as steps; notes for what no step can do. Fills the ledger. */
export class Deeds {
  readonly #stand: Stand;
  readonly #ledger: Ledger;
  readonly #outages: Outages;
  readonly #owners: OwnersDeeds;
  readonly #made: Made[] = [];
  #overlaps: ReadonlyMap<Call, Overlap> = new Map();
  #lines: Line[] = [];

  constructor(stand: Stand, ledger: Ledger, outages: Outages) {
    this.#stand = stand;
    this.#outages = outages;
    this.#ledger = ledger;
    this.#owners = new OwnersDeeds(stand);
  }

  linesOf(heard: readonly Heard[]): Line[] {
    this.#overlaps = overlapsIn(heard, this.#stand);
    for (const call of asBegun(heard.filter((it) => it.kind === 'call'))) {
      if (isService(call)) this.#service(call);
      else this.#owner(call);
    }
    return this.#lines;
  }

  #service(call: Call): void {
    const answer = answerOf(call);
    if (call.path === PATHS.token) {
      if (call.status !== 200) this.#note(call, `a token was refused: ${explained(answer)}`);
    } else if (SET_UP.includes(answer)) {
      this.#note(call, `${verbOf(call)} was refused, which no step can bring about: ${explained(answer)}`);
    } else if (call.path === PATHS.generate) this.#generate(call);
    else if (call.path === PATHS.sendQr) this.#send(call);
    else this.#pay(call);
  }

  #generate(call: Call): void {
    const body = generateBody.safeParse(call.body);
    if (!body.success || !this.#stand.isOurs(body.data)) {
      this.#note(call, `a generate that no step can make: ${this.#whyNot(call, body.success)}`);
      return;
    }
    const { amount, content, orderId } = body.data;
    const made = generateAnswer.safeParse(call.answer);
    const args = { amount, content, order: orderId };
    if (!made.success) {
      this.#lines.push(line(call.atMs, { generate: { ...args, answer: answerOf(call) } }));
      return;
    }
    const { transactionId, qrCode } = made.data;
    const order = this.#ledger.addOrder({ id: transactionId, orderId, amount, content, qrCode });
    const it = line(call.atMs, { generate: args, as: order.name });
    this.#lines.push(it);
    this.#made.push({ order, line: it });
  }

  #send(call: Call): void {
    const body = sendBody.safeParse(call.body);
    const why = UNTIMED[answerOf(call)];
    if (!body.success) {
      this.#note(call, 'a send-qr that no step can make: its body is no JSON object');
      return;
    }
    const text = (field: string) => (typeof body.data[field] === 'string' ? body.data[field] : '');
    const box = this.#stand.boxOf(text('terminalCode'), text('serialNumber'));
    const show = this.#ledger.showOf(box ?? '', text('qrCode'), begunMs(call), call.atMs);
    const atMs = show?.atMs ?? call.atMs;
    if (why !== undefined && !this.#stand.isFaulty(atMs)) {
      this.#note(call, `a send-qr was refused: ${explained(answerOf(call))}. No step can time that: ${why}`);
      return;
    }
    const failed = OF_BOX[answerOf(call)];
    if (failed !== undefined) {
      this.#note(
        call,
        `a send-qr was refused: ${explained(answerOf(call))}. Add the fault of its ${failed} if it is to be`,
      );
      return;
    }
    if (answerOf(call) === 'BOX_OFFLINE' && !this.#outages.isOff(box, atMs) && !this.#stand.isFaulty(atMs)) {
      this.#note(call, `a send-qr was refused, because ${text('terminalCode') || 'its box'} was not connected`);
      return;
    }
    const known = this.#madeFor(text('qrCode'), text('orderId'));
    const order = known?.order ?? this.#brought(body.data, text('orderId'), call);
    if (order === undefined) return;
    if (show !== undefined) show.order = order;
    const change = changesOf(body.data, { order, box, answer: answerOf(call) }, this.#stand);
    const answer = answerOf(call) === 'SUCCESS' ? {} : { answer: answerOf(call) };
    const args = {
      amount: order.amount,
      content: order.content,
      order: order.orderId || undefined,
      ...change,
      ...answer,
    };
    const overlap = known === undefined ? undefined : this.#overlaps.get(call);
    // What a branch names is not known beside it.
    const own = known !== undefined && overlap === undefined && this.#isTogether(known, atMs);
    if (own) this.#lines = this.#lines.filter((it) => it !== known.line);
    const qr = own || known === undefined ? {} : { qr: variable(order.name, 'qrCode') };
    const brought = known === undefined && !this.#isOurQr(order) ? { qr: order.qrCode } : {};
    const step = { ...this.#stand.boxKey(box), push: { ...args, ...qr, ...brought } };
    const isNamed = own || known === undefined;
    const pushed = line(atMs, isNamed ? { ...step, as: order.name } : step);
    this.#lines.push(overlap === undefined ? pushed : { ...pushed, beside: { overlap, begunMs: begunMs(call) } });
  }

  #pay(call: Call): void {
    const body = payBody.safeParse(call.body);
    if (!body.success || body.data.bankAccount !== this.#stand.account.bankAccount) {
      this.#note(call, `a payment that no step can make: ${this.#whyNot(call, body.success)}`);
      return;
    }
    const { amount, content, transType } = body.data;
    const debit = transType === 'D' ? { debit: true } : {};
    this.#paid(call, { amount, content, ...debit });
  }

  #paid(call: Call, args: { amount: number; content: string }, ...words: string[]): void {
    const answer = answerOf(call);
    if (answer !== 'SUCCESS') {
      this.#lines.push(line(call.atMs, { pay: { ...args, answer } }, ...words));
      return;
    }
    const atMs = this.#ledger.noticedMs(messageOf(call), call.atMs) ?? call.atMs;
    const payment = this.#ledger.addPayment(messageOf(call), { atMs, ...args });
    this.#lines.push(line(atMs, { pay: args, as: payment.name }, ...words));
  }

  #owner(call: Call): void {
    const deed = ownersDeed(call);
    if (deed === undefined) {
      const known = this.#owners.lineOf(call);
      if (known !== undefined) this.#lines.push(known);
      return;
    }
    const order = this.#ledger.order(deed.order);
    const answer = answerOf(call);
    if (order === undefined && answer === 'SUCCESS') {
      this.#note(call, `an order from before this recording, ${deed.order}: ${deed.what} at the console`);
    } else if (deed.what === 'cancel') {
      const refused = answer === 'SUCCESS' ? {} : { answer };
      const named = order === undefined ? deed.order : this.#ledger.nameOf(order);
      const atMs = this.#ledger.withdrawnMs(begunMs(call), call.atMs) ?? call.atMs;
      this.#lines.push(line(atMs, { cancel: { order: named, ...refused } }));
    } else if (order !== undefined && answer === 'SUCCESS' && PAYABLE.test(order.content)) {
      this.#paid(call, { amount: order.amount, content: order.content }, 'paid at the console');
    } else {
      this.#note(call, `order ${deed.order} paid at the console, which no step can do: ${explained(answer)}`);
    }
  }

  /** The order that a generate of this session made for this QR. */
  #madeFor(qrCode: string, orderId: string): Made | undefined {
    return (
      this.#made.findLast(({ order }) => order.qrCode === qrCode && order.orderId === orderId) ??
      this.#made.findLast(({ order }) => order.qrCode === qrCode)
    );
  }

  /** Whether it was not pushed before, and nothing came between the generate and the push that could tell one step from two. */
  #isTogether({ order, line: made }: Made, atMs: number): boolean {
    if (!this.#lines.includes(made)) return false;
    return !this.#lines.some(({ atMs: when, step }) => {
      if (when <= made.atMs || when > atMs || step === undefined) return false;
      const args = (step.pay ?? step.push ?? step.generate) as Partial<Order & { order: string }> | undefined;
      const isOfOrder = args?.content === order.content || args?.order === order.orderId;
      return args === undefined || isOfOrder;
    });
  }

  /** An order that is made by its push, of what the partner says of it. */
  #brought(body: Record<string, unknown>, orderId: string, call: Call): Order | undefined {
    const qrCode = typeof body.qrCode === 'string' ? body.qrCode : '';
    const said = decodeVietQr(qrCode);
    const amount = said.ok ? (said.value.amount ?? Number(body.amount)) : Number(body.amount);
    const content =
      (said.ok ? said.value.purpose : undefined) ?? (typeof body.content === 'string' ? body.content : '');
    if (!Number.isSafeInteger(amount) || amount < 0 || content === '' || qrCode === '') {
      this.#note(call, `a send-qr that no step can make, answered ${explained(answerOf(call))}`);
      return undefined;
    }
    return this.#ledger.addOrder({ id: undefined, orderId, amount, content, qrCode });
  }

  /** Whether our generate makes the very same QR of the order. */
  #isOurQr({ qrCode, amount, content }: Order): boolean {
    const said = decodeVietQr(qrCode);
    if (!said.ok || said.value.account !== this.#stand.account.bankAccount) return false;
    const { bin, account } = said.value;
    const same = { bin, account, service: 'account', initiation: 'dynamic', amount, purpose: content } as const;
    return encodeVietQr(same) === qrCode;
  }

  #whyNot(call: Call, isShaped: boolean): string {
    return isShaped ? `of another account than ${this.#stand.account.bankAccount}` : answeredWith(call);
  }

  #note(call: Call, words: string): void {
    this.#lines.push(note(call.atMs, words));
  }
}

function answeredWith(call: Call): string {
  const shape = typeof call.body === 'string' ? 'its body is no JSON' : 'its fields are not those of a step';
  return `${shape}; answered ${explained(answerOf(call) || String(call.status))}`;
}

function verbOf({ path }: Call): string {
  return path === PATHS.generate ? 'a generate' : path === PATHS.sendQr ? 'a send-qr' : 'a payment';
}
