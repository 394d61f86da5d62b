import { parseJson } from '../../../lib/http-client.ts';
import { findBank } from '../../../protocol/banks.ts';
import { PATHS } from '../../../protocol/http-api.ts';
import { decodeVietQr, encodeVietQr, type VietQr } from '../../../protocol/vietqr.ts';
import { type Check, checksOf, PreconditionFailed } from '../check.ts';
import { basicOf } from './callback-listener.ts';
import { checkSumOf } from './check-sum.ts';
import { type Answer, type ServiceRequest, sendRequest, summaryOf } from './client.ts';
import { recordOf } from './json.ts';
import { leaksIn } from './leaks.ts';
import type { Order, SentRequest, ServiceAccess, ServiceNeed, ServiceRun, ServiceSubject } from './subject.ts';

/** A token is renewed long before its 300 s end. */
const TOKEN_USED_MS = 120_000;

/** A JSON body without its undefined fields, or raw text. */
export type Body = Readonly<Record<string, unknown>> | string;
type Change = Readonly<Record<string, unknown>>;

interface PostOptions {
  as?: ServiceAccess | undefined;
  headers?: Record<string, string>;
  /** Means the same as in a ServiceRequest. */
  whileTimePasses?: boolean;
}

/** Sends requests to the judged service as a partner, and makes what they contain. */
export class CheckContext {
  readonly run: ServiceRun;

  constructor(run: ServiceRun) {
    this.run = run;
  }

  get subject() {
    return this.run.subject;
  }

  get options() {
    return this.subject.options;
  }

  get time() {
    return this.subject.time;
  }

  newOrder(): Order {
    return this.subject.newOrder();
  }

  /** Returns a token of the partner. Throws PreconditionFailed without one: TOK-1 judges that. */
  async token(partner: ServiceAccess = this.options.access): Promise<string> {
    const { tokens } = this.subject;
    const name = nameOf(partner);
    const known = tokens.get(name);
    const nowMs = this.time.clock.monotonicMs();
    if (known !== undefined && nowMs - known.sinceMs < TOKEN_USED_MS) return known.token;
    const called = await this.login({}, partner);
    const token = recordOf(called.json).access_token;
    if (called.status !== 200 || typeof token !== 'string') {
      throw new PreconditionFailed(`needs a token, but ${PATHS.token} answered ${summaryOf(called)}`);
    }
    tokens.set(name, { token, sinceMs: nowMs });
    if (partner === this.options.access) this.subject.issued.push({ token, sinceMs: nowMs });
    return token;
  }

  /** Requests a token, as a partner does, or with other headers. */
  login(
    { authorization, body }: { authorization?: string; body?: string | undefined } = {},
    partner = this.options.access,
  ): Promise<Answer> {
    const headers = {
      authorization: authorization ?? basicOf(partner),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    return this.send({ path: `${partner.baseUrl}${PATHS.token}`, headers, body });
  }

  /** Sends a request. An empty header is left out. */
  async send({ headers = {}, ...request }: ServiceRequest): Promise<Answer> {
    const { path, body = '' } = request;
    const sent: SentRequest = { path: path.replace(/\?.*/s, ''), fields: recordOf(parseJson(body)), answer: undefined };
    this.subject.sent.push(sent);
    const called = await sendRequest(this.run, {
      ...request,
      headers: Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== '')),
    });
    sent.answer = { status: called.status, json: called.json };
    for (const leak of leaksIn(this.options, sent, called)) this.subject.leaks.add(leak);
    return called;
  }

  /** Sends a request with the partner's token. `headers` adds and replaces headers; an empty one is removed. */
  async post(path: string, body: Body, { as = this.options.access, headers = {}, ...more }: PostOptions = {}) {
    const sendWith = (authorization: string) =>
      this.send({
        path: `${as.baseUrl}${path}`,
        headers: { 'content-type': 'application/json', ...headers, authorization },
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...more,
      });
    if (headers.authorization !== undefined) return sendWith(headers.authorization);
    const token = await this.token(as);
    const called = await sendWith(`Bearer ${token}`);
    return called.status === 401 || called.status === 403 ? this.#sentAgain(as, called, sendWith) : called;
  }

  /** Sends a refused request with a new token: if the old one had ended, TOK-2 says so, not every check after that. */
  async #sentAgain(as: ServiceAccess, refused: Answer, sendWith: (authorization: string) => Promise<Answer>) {
    const name = nameOf(as);
    const { tokens, endedTokensMs } = this.subject;
    const old = tokens.get(name);
    const nowMs = this.time.clock.monotonicMs();
    if (old === undefined || old.sinceMs === nowMs) return refused;
    tokens.delete(name);
    const called = await sendWith(`Bearer ${await this.token(as)}`);
    if (called.status !== refused.status) endedTokensMs.push(nowMs - old.sinceMs);
    return called;
  }

  generate(body: Body): Promise<Answer> {
    return this.post(PATHS.generate, body);
  }

  /** Generates the QR of a new order; `change` replaces fields of the request. */
  generateWith(change: Change): Promise<Answer> {
    return this.generate({ ...this.generateBody(), ...change });
  }

  sendPush(push: Body, as?: ServiceAccess): Promise<Answer> {
    return this.post(PATHS.sendQr, push, { as });
  }

  /** Pushes an order to the box, with a QR made by the bench. */
  pushOrder(order?: Order, change?: Change): Promise<Answer> {
    return this.sendPush(this.orderPush(order, change));
  }

  /** Sends a test callback. */
  simulate(body: Body, as?: ServiceAccess): Promise<Answer> {
    return this.post(PATHS.testCallback, body, { as });
  }

  /** Simulates a payment and returns its transaction id. Throws PreconditionFailed for a refusal: CBK-4 judges that. */
  async simulatePayment(order: Order, change: object = {}): Promise<string> {
    const called = await this.simulate({ ...this.paymentBody(order), ...change });
    const { status, message } = recordOf(called.json);
    if (called.status === 200 && status === 'SUCCESS' && typeof message === 'string') return message;
    throw new PreconditionFailed(`needs a simulated payment, but ${PATHS.testCallback} answered ${summaryOf(called)}`);
  }

  /** Makes a generate request of qrType 0, as in the usage example of the specification. */
  generateBody({ amount, content }: Order = this.newOrder()) {
    const { bankAccount, bankCode, userBankName } = this.options.account;
    return { amount, content, bankAccount, bankCode, userBankName, transType: 'C', orderId: content, qrType: 0 };
  }

  /**
   * Makes a test callback for an order. It has a bankCode, as in the usage example of the specification; CBK-3 judges
   * one without.
   */
  paymentBody({ amount, content }: Order = this.newOrder()) {
    const { bankAccount, bankCode } = this.options.account;
    return { bankAccount, content, amount, bankCode, transType: 'C' };
  }

  /** Makes a push of an order to the box, with a QR made by the bench. */
  orderPush(order: Order = this.newOrder(), change?: Change): Change {
    return this.pushBody(order, this.makeQr(order), change);
  }

  /** Makes a push of an order to the box. The partner's checkSum covers `change`, unless that has its own checkSum. */
  pushBody(order: Order, qrCode: string, change: Change = {}, partner: ServiceAccess = this.options.access): Change {
    const { account, box = {} } = this.options;
    const { terminalCode = '', serialNumber = '' } = box;
    const { content, amount } = order;
    const { bankAccount, bankCode } = account;
    const names = { terminalCode, serialNumber, orderId: content };
    const sent = { bankAccount, bankCode, amount: String(amount), content, qrCode, ...names, ...change };
    return { checkSum: checkSumOf(partner, sent), ...sent };
  }

  /** Returns the QR of an order. The service makes it if that works, which other checks judge; else the bench does. */
  async generatedQr(order: Order): Promise<string> {
    const { qrCode } = recordOf((await this.generate(this.generateBody(order))).json);
    const decoded = typeof qrCode === 'string' ? decodeVietQr(qrCode) : undefined;
    const isRight =
      decoded?.ok === true &&
      decoded.value.account === this.options.account.bankAccount &&
      decoded.value.bin === this.bin &&
      decoded.value.amount === order.amount;
    return isRight && typeof qrCode === 'string' ? qrCode : this.makeQr(order);
  }

  /** Makes a QR; `change` replaces parts of it. */
  makeQr({ amount, content }: Order, change: Partial<VietQr> = {}): string {
    const account = { bin: this.bin, account: this.options.account.bankAccount, service: 'account' } as const;
    return encodeVietQr({ ...account, initiation: 'dynamic', amount, purpose: content, ...change });
  }

  /** Returns the BIN of the account's bank. Throws PreconditionFailed for an unknown bank. */
  get bin(): string {
    return binOf(this.options.account.bankCode);
  }
}

function nameOf({ baseUrl, username }: ServiceAccess): string {
  return `${baseUrl} ${username}`;
}

/** Returns the BIN of a bank. Throws PreconditionFailed for an unknown one. */
export function binOf(bankCode: string): string {
  const bank = findBank(bankCode);
  if (bank !== undefined) return bank.bin;
  throw new PreconditionFailed(`the bench knows no BIN of bank ${bankCode}: name it by its BIN`);
}

export type ServiceCheck = Check<ServiceSubject, ServiceNeed, CheckContext>;

/**
 * Make checks of a clause: `spec` of one that the service specification states, `gap` of a default of PROTOCOL.md where
 * the specification says nothing.
 */
export const { spec, gap } = checksOf<ServiceSubject, ServiceNeed, CheckContext>(async (run) => ({
  context: new CheckContext(run),
}));
