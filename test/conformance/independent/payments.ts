import { createHmac, randomUUID } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { isAccount, isAmount, isTransType } from './orders.ts';
import { binOf } from './qr.ts';
import { type Fields, type Order, type Partner, Refusal, type World } from './world.ts';

const ATTEMPT_MS = 10_000;
const HOUR_MS = 3_600_000;
const LATE_MS = 8_000;
const MINUTE_MS = 60_000;
const MILLION = 1_000_000;
const WAITS_MS = [1, 2, 3, 4, 5, 60, 60, 60, 60, 60].map((seconds) => seconds * 1_000).concat(Array(72).fill(HOUR_MS));

/** Takes a simulated payment and sends its callback (CBK-1 to CBK-7). */
export function testCallback(world: World, partner: Partner, fields: Fields, ending: AbortSignal): object {
  const { faults, isSandbox, accounts } = world;
  if (!isSandbox && !faults.has('payments are simulated outside the sandbox')) throw new Refusal('E75');
  const { bankAccount, content, amount, transType = 'C', bankCode } = fields;
  const charsMax = faults.has('a test callback takes content of twenty') ? 20 : 19;
  const allowed = faults.has('a test callback takes accents') ? /^[\p{L}\d ]+$/u : /^[A-Za-z0-9 ]+$/;
  const account = accounts.find((it) => it.bankAccount === bankAccount);
  const isBank = typeof bankCode === 'string' && binOf(bankCode) === binOf(account?.bankCode ?? '');
  const isAnybodys =
    faults.has("a partner pays into another's account") ||
    (transType === 'D' && faults.has("a partner debits another's account"));
  const isOwn = partner.accounts.includes(String(bankAccount)) || isAnybodys;
  const rules: [isWrong: boolean, code: string][] = [
    [typeof bankAccount !== 'string' || !isAccount(bankAccount, world), '010'],
    [typeof content !== 'string' || content.length > charsMax || !allowed.test(content), '009'],
    [!isAmount(amount, world), faults.has('a wrong amount has the code of generate') ? 'E02' : '002'],
    [!isTransType(transType, world) || (fields.transType === undefined && faults.has('transType is needed')), '003'],
    [account === undefined || !isOwn, 'E77'],
    [
      bankCode === undefined ? faults.has('bankCode is needed') : !isBank && !faults.has('any bankCode is taken'),
      'E51',
    ],
    [partner.callback === undefined && !faults.has('a partner without an endpoint is paid'), 'E76'],
  ];
  const wrong = rules.find(([isWrong]) => isWrong);
  if (wrong !== undefined) throw new Refusal(wrong[1]);
  const money = { bankAccount: String(bankAccount), amount: Number(amount), content: String(content) };
  const order = paidOrder(world, { ...money, transType: String(transType) });
  const { orders, boxes } = world;
  if (order !== undefined) {
    if (order.isPaid && faults.has('an order is paid once')) throw new Refusal('E05');
    order.isPaid = true;
    for (const box of boxes) if (box.shown === order) box.shown = undefined;
  }
  const isOne = faults.has('every payment has one transaction id');
  const transactionid = faults.has('a transaction id is empty') ? '' : isOne ? 'T1' : randomUUID();
  const codes = { terminalCode: '', urlLink: '', serviceCode: '', subTerminalCode: '', orderId: '', sign: '' };
  for (const name of Object.keys(codes) as (keyof typeof codes)[]) codes[name] = order?.[name] ?? '';
  if (faults.has('a callback names the newest order')) codes.orderId = orders.at(-1)?.orderId ?? '';
  const payment = {
    transactionid,
    transactiontime: world.clock.wallMs(),
    referencenumber: faults.has('every callback has one reference number')
      ? 'R1'
      : `${partner.username}-${randomUUID()}`,
    ...{ amount: money.amount, content: money.content, bankaccount: money.bankAccount, transType: String(transType) },
    ...codes,
  };
  const { callback } = partner;
  if (callback !== undefined) void new Delivery(world, callback, payment, ending).run();
  return { status: 'SUCCESS', message: transactionid };
}

/** The order that a payment belongs to (CBK-6). */
function paidOrder(
  { orders, boxes, faults }: World,
  paid: Pick<Order, 'bankAccount' | 'amount' | 'content' | 'transType'>,
): Order | undefined {
  const isAlike = (it: Order) =>
    it.bankAccount === paid.bankAccount &&
    (it.amount === paid.amount || faults.has('an order is found by its content alone')) &&
    isSame(it.content, paid.content) &&
    it.transType === paid.transType;
  const isAny = faults.has('an order is found by its content in any case');
  const isSame = (one: string, other: string) => one === other || (isAny && one.toLowerCase() === other.toLowerCase());
  const alike = orders.filter(isAlike);
  if (faults.has('the oldest of equal orders is paid')) return alike[0];
  const shown = boxes.map((it) => it.shown).find((it) => it !== undefined && alike.includes(it));
  return shown ?? alike.findLast((it) => !it.isPaid) ?? alike.at(-1);
}

/** What a careless service says of a payment. */
function carelessFacts(all: Payment, number: number, faults: World['faults']): Payment {
  const orderId = String(all.orderId);
  const atMs = Number(all.transactiontime);
  return {
    ...(faults.has('the orderId of a callback is cut') && { orderId: orderId.slice(0, 32) }),
    ...(faults.has('the orderId of a callback is a number') && { orderId: orderId.replace(/^0+(?=\d+$)/, '') }),
    ...(faults.has('the content of a callback is trimmed') && { content: String(all.content).trim() }),
    ...(faults.has('a callback is told in the time of Vietnam') && { transactiontime: atMs + 7 * HOUR_MS }),
    ...(faults.has('a callback is ten minutes old') && { transactiontime: atMs - 10 * MINUTE_MS }),
    ...(faults.has('the eleventh reference number is the first again') && { referencenumber: `R${number % 10}` }),
  };
}

type Callback = Exclude<Partner['callback'], undefined>;
type Payment = Record<string, string | number>;

/** One callback, until the partner has it (SYN-1 to SYN-8). */
class Delivery {
  readonly #world: World;
  readonly #callback: Callback;
  readonly #payment: Payment;
  readonly #ending: AbortSignal;
  readonly #isCopy: boolean;
  readonly #number: number;
  readonly #id = `msg_${randomUUID()}`;

  constructor(world: World, callback: Callback, payment: Payment, ending: AbortSignal, isCopy = false) {
    this.#isCopy = isCopy;
    this.#world = world;
    world.callbacks += 1;
    this.#number = world.callbacks;
    this.#callback = callback;
    this.#payment = payment;
    this.#ending = ending;
  }

  async run(): Promise<void> {
    const { clock, faults, attempt } = this.#world;
    const isLate = faults.has('a callback comes a minute late');
    const waits = faults.has('a callback is tried again after ten seconds') ? WAITS_MS.map(() => 10_000) : WAITS_MS;
    if (isLate) await clock.sleep(60_000, this.#ending);
    if (this.#number % 4 === 0 && faults.has('every fourth callback is lost')) return;
    if (this.#world.isSending && faults.has('of callbacks that come together one is sent')) return;
    for (const [number, waitMs] of [...waits, 0].entries()) {
      if (this.#ending.aborted) return;
      this.#world.isSending = true;
      const status = await attempt(() => this.#attempt(number).catch(() => 0));
      this.#world.isSending = false;
      if (status === 200 && faults.has('a callback is sent twice') && number === 0)
        await attempt(() => this.#attempt(0).catch(() => 0));
      if (status === 200) this.#again();
      if (this.#isOver(status) || faults.has('a callback is never tried again')) return;
      if (number === 2 && faults.has('a callback is tried three times')) return;
      await clock.sleep(waitMs, this.#ending);
    }
  }

  #again(): void {
    const { clock, faults } = this.#world;
    const isUnasked = faults.has('a callback comes that nobody asked for');
    const isAgain = faults.has('a callback comes again a minute later');
    const isLater = isUnasked || isAgain || faults.has('a callback comes again later as that of another payment');
    if (this.#isCopy || !isLater) return;
    const other: Payment = { ...this.#payment, transactionid: randomUUID(), referencenumber: randomUUID() };
    if (isUnasked) other.content = 'NOBODY PAID';
    const copy = new Delivery(this.#world, this.#callback, isAgain ? this.#payment : other, this.#ending, true);
    void clock.sleep(isAgain ? MINUTE_MS : LATE_MS, this.#ending).then(() => copy.run());
  }

  #isOver(status: number): boolean {
    const { faults } = this.#world;
    if (status === 400) return !faults.has('a callback is sent again after 400');
    if (status === 404 && faults.has('a callback ends with 404')) return true;
    if (status === 502 && faults.has('a callback ends with 502')) return true;
    if (status === 0 && faults.has('a callback ends with a closed connection')) return true;
    return faults.has('only 200 ends a callback') ? status === 200 : status >= 200 && status < 300;
  }

  #body(number: number): string {
    const { faults } = this.#world;
    const all = this.#payment;
    const changes: Payment = {
      ...(faults.has('the amount of a callback is wrong') && { amount: Number(all.amount) * 10 }),
      ...(faults.has('the content of a callback is wrong') && { content: `${all.content}Z` }),
      ...(faults.has('the transactionid of a callback is wrong') && { transactionid: randomUUID() }),
      ...(faults.has('the orderId of a callback is wrong') && all.orderId !== '' && { orderId: `${all.orderId}Z` }),
      ...(faults.has('the account of a callback is wrong') && { bankaccount: '9999999999' }),
      ...(faults.has('a debit is told as a credit') && { transType: 'C' }),
      ...(faults.has('a callback has its time in seconds') && {
        transactiontime: Math.floor(Number(all.transactiontime) / 1_000),
      }),
      ...carelessFacts(all, this.#number, faults),
      ...(faults.has('a callback names no box') && { terminalCode: '' }),
      ...(faults.has('a retry has another reference number') && number > 0 && { referencenumber: randomUUID() }),
      ...(faults.has('a callback of less than a million says one more') &&
        Number(all.amount) < MILLION && { amount: Number(all.amount) + 1 }),
      ...(faults.has('the amount of a debit is wrong') && all.transType === 'D' && { amount: Number(all.amount) + 1 }),
      ...(faults.has('every third callback has a fraction') &&
        this.#number % 3 === 0 && { amount: Number(all.amount) + 0.4 }),
      ...(faults.has('a retry has another amount') && number > 0 && { amount: 1 }),
    };
    const said = Object.entries({ ...all, ...changes });
    const isTold = ([name]: (typeof said)[number]) => name !== 'urlLink' || !faults.has('a callback lacks a field');
    return JSON.stringify(Object.fromEntries(said.filter(isTold)));
  }

  /** The status of one attempt. Throws when there is none. */
  async #attempt(number: number): Promise<number> {
    const { clock, faults } = this.#world;
    const { url, signingSecret } = this.#callback;
    const body = this.#body(number);
    const atS = String(Math.floor(clock.wallMs() / 1_000));
    const id = faults.has('each attempt has a webhook-id of its own') ? `msg_${randomUUID()}` : this.#id;
    const key = Buffer.from(signingSecret.replace(/^whsec_/, ''), 'base64');
    const signed = faults.has('the signature of a callback does not cover its body') ? '' : body;
    const mac = createHmac('sha256', key).update(`${id}.${atS}.${signed}`, 'utf8').digest('base64');
    const signature = { 'webhook-id': id, 'webhook-timestamp': atS, 'webhook-signature': `v1,${mac}` };
    const headers = {
      'content-type': faults.has('a callback is said to be text') ? 'text/plain' : 'application/json',
      ...(faults.has('a callback has no authorization') ? {} : await this.#authorization()),
      ...(faults.has('a callback is not signed') ? {} : signature),
    };
    const target = faults.has('a callback goes to another address') ? `${url}/` : url;
    const method = faults.has('a callback is a PUT') ? 'PUT' : 'POST';
    const { status, location } = await this.#send(target, method, headers, body);
    if (status === 302 && location !== undefined && faults.has('a redirect is followed')) {
      return (await this.#send(new URL(location, url).href, method, headers, body)).status;
    }
    return status;
  }

  async #authorization(): Promise<Record<string, string>> {
    const { login } = this.#callback;
    if (login.kind === 'none') return {};
    if (login.kind === 'bearer') return { authorization: `Bearer ${login.token}` };
    const basic = Buffer.from(`${login.username}:${login.password}`, 'utf8').toString('base64');
    const headers = { authorization: `Basic ${basic}`, 'content-type': 'application/json' };
    const { status, text } = await this.#send(login.url, 'POST', headers, '{}');
    const { access_token } = JSON.parse(text) as { access_token?: unknown };
    if (status !== 200 || typeof access_token !== 'string') throw new Error('the partner gave no token');
    return { authorization: `Bearer ${access_token}` };
  }

  #send(url: string, method: string, headers: Record<string, string>, body: string) {
    const signal = AbortSignal.any([this.#ending, AbortSignal.timeout(ATTEMPT_MS)]);
    return new Promise<{ status: number; location: string | undefined; text: string }>((resolve, reject) => {
      const sent = httpRequest(url, { method, headers, signal, agent: false }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => {
          if (text.length < 65_536) text += part;
        });
        answer.on('error', reject);
        answer.once('end', () => resolve({ status: answer.statusCode ?? 0, location: answer.headers.location, text }));
      });
      sent.on('error', reject);
      sent.end(body);
    });
  }
}
