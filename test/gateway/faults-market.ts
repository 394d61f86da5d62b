import { systemClock } from '../../src/lib/clock.ts';
import { checkSum } from '../../src/protocol/checksum.ts';
import type { ActiveFaultView, FaultOrder } from '../../src/protocol/faults.ts';
import { eventually } from '../support/net.ts';
import { askFaults, type PaymentView, type RealBox, startRealBox, type Transport } from './faults.ts';
import {
  ACCOUNT,
  BOX1,
  BOX2,
  BOX4,
  GENERATE,
  OTHER_ACCOUNT,
  type PartnerCall,
  partnerServer,
  SEND_QR,
  TEST_CALLBACK,
} from './harness.ts';

const AMOUNT = 50_000;
const ROWS = 500;
/** Many more than come of one order of each box. */
const NEWEST = 20;
/** Between two looks at all that there is, which are work. */
const LOOK_MS = 100;
/** Whatever was let go has settled by then, however busy the machine is. */
const SETTLED_MAX_MS = 60_000;

/** A gateway, in this process or another. */
export interface Reach {
  origin: string;
  baseUrl: string;
  mqttUrl: string | undefined;
}

/** A box of the market with the account that it is linked to. */
export interface Stall {
  code: string;
  serialNumber: string;
  account: typeof ACCOUNT;
  box: RealBox;
}

interface CallbackView {
  transactionId: string;
  status: string;
  warning: string | null;
  attempts: { byHand: boolean; response: { status: number } | null }[];
}

interface OrderView {
  orderId: string;
  pushes: { id: string; terminalCode: string }[];
}

/** A fault that is ordered for each of three boxes may meet the calls of one. */
const TRIES_MAX = 4;

/** What came of one order. */
export interface Trade {
  sold: string;
  qrCode: string;
  transactionId: string | undefined;
}

type Answer = { status: number; body: Record<string, unknown> };

/** Real boxes on both transports at one gateway, and a partner whose program asks anew as one in a shop does. */
export class Market {
  readonly reach: Reach;
  readonly stalls: readonly Stall[];
  readonly partner: { calls: PartnerCall[] };
  /** Transactions that were answered to whoever paid. */
  readonly promised: string[] = [];
  #token: Promise<string> | undefined;
  #orders = 0;

  private constructor(reach: Reach, stalls: readonly Stall[], partner: { calls: PartnerCall[] }) {
    this.reach = reach;
    this.stalls = stalls;
    this.partner = partner;
  }

  /** `open` starts the gateway, for which callbacks go to `url`. */
  static async open(open: (url: string) => Promise<Reach>, replies: Parameters<typeof partnerServer> = []) {
    const partner = await partnerServer(...replies);
    const reach = await open(partner.url);
    const stall = async (identity: typeof BOX1, transport: Transport, account: typeof ACCOUNT): Promise<Stall> => ({
      code: identity.terminalCode,
      serialNumber: identity.serialNumber,
      account,
      box: await startRealBox(reach, transport, { identity, faults: true }),
    });
    const stalls = await Promise.all([
      stall(BOX1, 'mqtt', ACCOUNT),
      stall(BOX2, 'http', ACCOUNT),
      stall(BOX4, 'mqtt', OTHER_ACCOUNT),
    ]);
    const market = new Market(reach, stalls, partner);
    for (const it of stalls) await market.isWell(it);
    return market;
  }

  async order(fault: FaultOrder): Promise<ActiveFaultView> {
    const answer = await askFaults(this.reach, '', 'POST', fault);
    if (answer.status !== 201) throw new Error(`refused: ${JSON.stringify(answer.body)}`);
    return answer.body as ActiveFaultView;
  }

  async standing(): Promise<ActiveFaultView[]> {
    return (await this.#mock<{ standing: ActiveFaultView[] }>('/faults')).standing;
  }

  /** Ends the fault, or all. */
  async end(id?: string): Promise<void> {
    const { status } = await askFaults(this.reach, id === undefined ? '' : `/${id}`, 'DELETE');
    if (status !== 204 && (id === undefined || status !== 404)) throw new Error(`not ended: HTTP ${status}`);
  }

  /** A content and order id that no other order has. */
  content(): string {
    this.#orders += 1;
    return `T${this.#orders}`;
  }

  /** An order at a box, from its QR to its payment; refusals that another try may mend are tried again. */
  async trade(at: Stall, content = this.content()): Promise<Trade> {
    const { sold, qrCode } = await this.sell(at, content);
    return { sold, qrCode, transactionId: await this.pay(at, content) };
  }

  async sell({ code, serialNumber, account }: Stall, content: string): Promise<{ sold: string; qrCode: string }> {
    const made = await this.#ask(GENERATE, {
      ...account,
      amount: AMOUNT,
      content,
      orderId: content,
      transType: 'C',
      qrType: 0,
    });
    if (made.status !== 200) return { sold: String(made.body.message), qrCode: '' };
    const qrCode = String(made.body.qrCode);
    const { bankAccount, bankCode } = account;
    const asked = { bankAccount, bankCode, amount: String(AMOUNT), content, orderId: content, qrCode };
    const sum = checkSum('demo-secret', asked);
    const sent = await this.#ask(SEND_QR, { ...asked, checkSum: sum, terminalCode: code, serialNumber });
    return { sold: String(sent.body.message), qrCode };
  }

  async pay({ account }: Stall, content: string): Promise<string | undefined> {
    const { bankAccount } = account;
    const paid = await this.#ask(TEST_CALLBACK, { bankAccount, content, amount: AMOUNT, transType: 'C' });
    if (paid.status !== 200) return undefined;
    const transactionId = String(paid.body.message);
    this.promised.push(transactionId);
    return transactionId;
  }

  /** Settles once the box is there, and nothing of it has failed. */
  async isWell({ code, box }: Stall): Promise<void> {
    await eventually(
      `${code} well`,
      async () => {
        const status = await box.status();
        const atGateway = await this.#mock<{ online: boolean }>(`/boxes/${code}`);
        return status.online && status.fault === null && status.display.ok && atGateway.online;
      },
      SETTLED_MAX_MS,
    );
  }

  /** Trades once, and throws at anything that is not as it always is. */
  async tradeFlawlessly(at: Stall): Promise<void> {
    const content = this.content();
    await this.isWell(at);
    const { sold, qrCode } = await this.sell(at, content);
    if (sold !== '') throw new Error(`${content} is answered ${sold}`);
    const { order, state } = await at.box.status();
    // A payment of another order hides the QR for a while (clause AGT-6).
    if (order?.qrCode !== qrCode && state !== 'paid')
      throw new Error(`${at.code} shows ${order?.orderId} for ${content}`);
    const id = await this.pay(at, content);
    const wrong = await eventually(
      `${content} told`,
      async () => {
        const { payments, callbacks } = await this.books(NEWEST);
        const payment = payments.find((it) => it.transactionId === id);
        const [callback] = callbacks.filter((it) => it.transactionId === id && it.status !== 'pending');
        if (payment === undefined || callback === undefined) return undefined;
        if (payment.boxes.some((it) => it.reportedAt === null)) return undefined;
        const { lastPayment } = await at.box.status();
        const told = { boxes: payment.boxes.map((it) => it.terminalCode), last: lastPayment?.transactionId };
        const attempts = callback.attempts.map((it) => it.response?.status);
        return JSON.stringify({ ...told, amount: payment.amount, attempts, warning: callback.warning });
      },
      SETTLED_MAX_MS,
    );
    const right = { boxes: [at.code], last: id, amount: AMOUNT, attempts: [200], warning: null };
    if (wrong !== JSON.stringify(right)) throw new Error(`${content}: ${wrong}`);
  }

  async books(rows = ROWS): Promise<{ payments: PaymentView[]; callbacks: CallbackView[]; orders: OrderView[] }> {
    const [payments, callbacks, orders] = await Promise.all([
      this.#mock<PaymentView[]>(`/payments?limit=${rows}`),
      this.#mock<CallbackView[]>(`/callbacks?limit=${rows}`),
      this.#mock<OrderView[]>(`/orders?limit=${rows}`),
    ]);
    return { payments, callbacks, orders };
  }

  /** Settles once all money is where it belongs; throws with what is not. `again` more POSTs may have come than are kept. */
  async expectRight({ twice = 0, again = 0 }: { twice?: number; again?: number } = {}): Promise<void> {
    let wrong: string[] = ['callbacks are still to be delivered'];
    const isRight = async () => {
      // Cheap, and wrong for as long as anything is under way.
      if ((await this.#mock<{ waiting: number }>('/callbacks/backlog')).waiting > 0) return false;
      wrong = await this.#wrong(twice, again);
      if (wrong.length > 0) await systemClock.sleep(LOOK_MS);
      return wrong.length === 0;
    };
    await eventually('all money right', isRight, SETTLED_MAX_MS).catch((error: unknown) => {
      throw new Error(wrong.join('\n'), { cause: error });
    });
  }

  async #wrong(twice: number, again: number): Promise<string[]> {
    const { payments, callbacks, orders } = await this.books();
    const wrong: string[] = [];
    const ids = new Set(payments.map((it) => it.transactionId));
    for (const id of this.promised) if (!ids.has(id)) wrong.push(`payment ${id} is lost`);
    const told = this.partner.calls.map((it) => JSON.parse(it.body) as Record<string, unknown>);
    for (const { transactionid } of told) {
      if (!ids.has(String(transactionid))) wrong.push(`the partner heard of ${transactionid}, which there is not`);
    }
    for (const payment of payments) {
      const own = callbacks.filter((it) => it.transactionId === payment.transactionId);
      const heard = told.filter((it) => it.transactionid === payment.transactionId);
      wrong.push(...wrongOf(payment, own, heard).map((it) => `${payment.transactionId} (${payment.content}): ${it}`));
    }
    const attempts = callbacks.flatMap((it) => it.attempts);
    const more = told.length - attempts.length;
    if (more < 0 || more > again) wrong.push(`${told.length} POSTs for ${attempts.length} attempts`);
    const byHand = attempts.filter((it) => it.byHand).length;
    if (byHand > twice) wrong.push(`${byHand} duplicates, ${twice} ordered`);
    for (const stall of this.stalls) wrong.push(...(await wrongAt(stall, payments, orders)));
    return wrong;
  }

  async #ask(path: string, body: object, triesLeft = TRIES_MAX): Promise<Answer> {
    const answer = await this.#post(path, body);
    const { message } = answer.body;
    if (answer.status === 200 || triesLeft === 1 || (message !== 'E74' && message !== 'E05')) return answer;
    if (message === 'E74') this.#token = undefined;
    return this.#ask(path, body, triesLeft - 1);
  }

  async #post(path: string, body: object): Promise<Answer> {
    this.#token ??= this.#login();
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${await this.#token}` };
    const answer = await fetch(`${this.reach.baseUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }

  async #login(): Promise<string> {
    const authorization = `Basic ${Buffer.from('demo:demo-secret').toString('base64')}`;
    const url = `${this.reach.baseUrl}/api/token_generate`;
    const answer = await fetch(url, { method: 'POST', headers: { authorization } });
    return String(((await answer.json()) as { access_token: unknown }).access_token);
  }

  async #mock<T>(path: string): Promise<T> {
    return (await (await fetch(`${this.reach.origin}/_mock${path}`)).json()) as T;
  }
}

function wrongOf(payment: PaymentView, callbacks: CallbackView[], heard: Record<string, unknown>[]): string[] {
  const wrong: string[] = [];
  const [callback] = callbacks;
  if (callback === undefined || callbacks.length > 1) return [`${callbacks.length} callbacks`];
  if (callback.status !== 'delivered') wrong.push(`its callback is ${callback.status}`);
  const isTaken = (status = 0) => status >= 200 && status <= 299;
  const taken = callback.attempts.filter((it) => !it.byHand && isTaken(it.response?.status)).length;
  if (taken !== 1) wrong.push(`its callback was taken ${taken} times`);
  const { amount, content, orderId, bankAccount } = payment;
  const truth = JSON.stringify([amount, content, orderId, bankAccount]);
  if (heard.length === 0) wrong.push('the partner did not hear of it');
  for (const it of heard) {
    const said = JSON.stringify([it.amount, it.content, it.orderId, it.bankaccount]);
    if (said !== truth) wrong.push(`the partner heard ${said}, it is ${truth}`);
  }
  if (payment.boxes.length === 0) wrong.push('no box is told');
  for (const it of payment.boxes) if (it.reportedAt === null) wrong.push(`not reported by ${it.terminalCode}`);
  return wrong;
}

/** Announced as often as there is money, and no push that is another box's was ever on the screen. */
async function wrongAt({ code, box }: Stall, payments: PaymentView[], orders: OrderView[]): Promise<string[]> {
  const due = payments.filter((it) => it.boxes.some(({ terminalCode }) => terminalCode === code)).length;
  const announced = await box.announcements();
  const wrong = announced === due ? [] : [`${code} announced ${announced} payments of ${due}`];
  const pushes = orders.flatMap((it) => it.pushes);
  for (const { event, pushId } of box.log) {
    if (event !== 'push-shown') continue;
    const at = pushes.find((it) => it.id === pushId)?.terminalCode;
    if (at !== code) wrong.push(`${code} showed a push of ${at}`);
  }
  return wrong;
}
