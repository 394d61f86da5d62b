import { findBank } from '../../protocol/banks.ts';
import { PATHS } from '../../protocol/http-api.ts';
import { decodeVietQr, encodeVietQr } from '../../protocol/vietqr.ts';
import { Mismatch, PreconditionFailed } from '../check.ts';
import { basicOf } from './callback-listener.ts';
import { type Answer, codeOf, type ServiceRequest, sendRequest, summaryOf } from './client.ts';
import { recordOf } from './json.ts';
import { type Order, type ServiceAccess, type ServiceRun, type ServiceSubject, signed } from './subject.ts';

/** A token is renewed long before its 300 s end. */
const TOKEN_USED_MS = 120_000;

/** A JSON body without its undefined fields, or raw text. */
export type Body = Readonly<Record<string, unknown>> | string;

/** A token of the partner. Throws PreconditionFailed without one: TOK-1 judges that. */
export async function bearerToken(
  run: ServiceRun,
  partner: ServiceAccess = run.subject.options.access,
): Promise<string> {
  const { tokens, time } = run.subject;
  const name = `${partner.baseUrl} ${partner.username}`;
  const known = tokens.get(name);
  const nowMs = time.clock.monotonicMs();
  if (known !== undefined && nowMs - known.sinceMs < TOKEN_USED_MS) return known.token;
  const called = await login(run, partner);
  const token = recordOf(called.json).access_token;
  if (called.status !== 200 || typeof token !== 'string') {
    throw new PreconditionFailed(`needs a token, but ${PATHS.token} answered ${summaryOf(called)}`);
  }
  tokens.set(name, { token, sinceMs: nowMs });
  return token;
}

/** Requests a token, as a partner does, or with other headers. */
export function login(
  run: ServiceRun,
  partner: ServiceAccess,
  { authorization = basicOf(partner), body }: { authorization?: string; body?: string } = {},
): Promise<Answer> {
  const headers = {
    ...(authorization === '' ? {} : { authorization }),
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  };
  return sendRequest(run, {
    path: `${partner.baseUrl}${PATHS.token}`,
    headers,
    ...(body === undefined ? {} : { body }),
  });
}

interface PostOptions extends Pick<ServiceRequest, 'whileTimePasses'> {
  as?: ServiceAccess | undefined;
  headers?: Record<string, string>;
}

/** Sends a request with the partner's token. `headers` adds and replaces headers; an empty one is removed. */
export async function post(
  run: ServiceRun,
  path: string,
  body: Body,
  { as = run.subject.options.access, headers = {}, ...more }: PostOptions = {},
): Promise<Answer> {
  const authorization = headers.authorization ?? `Bearer ${await bearerToken(run, as)}`;
  const sent = { 'content-type': 'application/json', ...headers, authorization };
  return sendRequest(run, {
    path: `${as.baseUrl}${path}`,
    headers: Object.fromEntries(Object.entries(sent).filter(([, value]) => value !== '')),
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...more,
  });
}

/** A generate request of qrType 0, as in the usage example of the specification. */
export function generateBody({ subject }: ServiceRun, order: Order = subject.newOrder()) {
  const { bankAccount, bankCode, userBankName } = subject.options.account;
  const { amount, content } = order;
  return { amount, content, bankAccount, bankCode, userBankName, transType: 'C', orderId: content, qrType: 0 };
}

/** The QR of an order: made by the service if that works, which other checks judge; else by the bench. */
export async function generatedQr(run: ServiceRun, order: Order): Promise<string> {
  const { account } = run.subject.options;
  const bin = accountBin(run.subject);
  const { qrCode } = recordOf((await post(run, PATHS.generate, generateBody(run, order))).json);
  const decoded = typeof qrCode === 'string' ? decodeVietQr(qrCode) : undefined;
  const isRight =
    decoded?.ok === true &&
    decoded.value.account === account.bankAccount &&
    decoded.value.bin === bin &&
    decoded.value.amount === order.amount;
  return isRight && typeof qrCode === 'string' ? qrCode : makeQr(run.subject, order);
}

/** A QR made by the bench; `change` replaces parts of it. */
export function makeQr(
  subject: ServiceSubject,
  order: Order,
  change: { account?: string; bin?: string; amount?: number | undefined; service?: 'account' | 'card' } = {},
): string {
  const { bankAccount } = subject.options.account;
  return encodeVietQr({
    bin: accountBin(subject),
    account: bankAccount,
    service: 'account',
    initiation: 'dynamic',
    amount: order.amount,
    purpose: order.content,
    ...change,
  });
}

/** The BIN of the account's bank. Throws PreconditionFailed for an unknown bank. */
export function accountBin({ options: { account } }: ServiceSubject): string {
  const bank = findBank(account.bankCode);
  if (bank === undefined)
    throw new PreconditionFailed(`the bench knows no BIN of bank ${account.bankCode}: name it by its BIN`);
  return bank.bin;
}

/** A push of an order to the box. The partner's checkSum covers `change`, unless that has its own checkSum. */
export function pushBody(
  { subject }: ServiceRun,
  order: Order,
  qrCode: string,
  change: Readonly<Record<string, unknown>> = {},
  partner: ServiceAccess = subject.options.access,
): Record<string, unknown> {
  const { account, box = {} } = subject.options;
  const { terminalCode = '', serialNumber = '' } = box;
  const { content, amount } = order;
  const { bankAccount, bankCode } = account;
  const names = { terminalCode, serialNumber, orderId: content };
  const sent = { bankAccount, bankCode, amount: String(amount), content, qrCode, ...names, ...change };
  const text = (value: unknown) => (typeof value === 'string' ? value : '');
  const { checkSum } = signed(partner, {
    bankAccount: text(sent.bankAccount),
    amount: text(sent.amount),
    bankCode: text(sent.bankCode),
  });
  return { checkSum, ...sent };
}

/** A test callback for an order. */
export function paymentBody({ subject }: ServiceRun, { amount, content }: Order) {
  return { bankAccount: subject.options.account.bankAccount, content, amount, transType: 'C' };
}

/** Simulates a payment and returns its transaction id. Throws PreconditionFailed for a refusal: CBK-4 judges that. */
export async function simulatePayment(run: ServiceRun, order: Order, change: object = {}): Promise<string> {
  const called = await post(run, PATHS.testCallback, { ...paymentBody(run, order), ...change });
  const { status, message } = recordOf(called.json);
  if (called.status === 200 && status === 'SUCCESS' && typeof message === 'string') return message;
  throw new PreconditionFailed(`needs a simulated payment, but ${PATHS.testCallback} answered ${summaryOf(called)}`);
}

/** Throws Mismatch unless the answer has this status. */
export function expectStatus(called: Answer, status: number, what: string): void {
  if (called.status !== status) throw new Mismatch(`${what}: expected ${status}, the answer is ${summaryOf(called)}`);
}

/** Throws Mismatch unless the answer is a refusal with this code, with any status. */
export function expectCode(called: Answer, code: string, what: string): void {
  if (codeOf(called) !== code) throw new Mismatch(`${what}: expected ${code}, the answer is ${summaryOf(called)}`);
}

/** Throws Mismatch unless the answer is a refusal of any kind. */
export function expectRefused(called: Answer, what: string): void {
  const { status } = recordOf(called.json);
  if (called.status < 400 && status !== 'FAILED') {
    throw new Mismatch(`${what}: expected a refusal, the answer is ${summaryOf(called)}`);
  }
}

/** Throws Mismatch unless the HTTP status is 200 and the answer's `status`, if any, is SUCCESS. */
export function expectOk(called: Answer, what: string): void {
  if (called.status !== 200 || codeOf(called) !== undefined) {
    throw new Mismatch(`${what}: expected 200, the answer is ${summaryOf(called)}`);
  }
}

/** Throws Mismatch unless the answer is 200 and SUCCESS. */
export function expectSuccess(called: Answer, what: string): void {
  if (called.status !== 200 || recordOf(called.json).status !== 'SUCCESS') {
    throw new Mismatch(`${what}: expected 200 SUCCESS, the answer is ${summaryOf(called)}`);
  }
}

/** Throws Mismatch unless the answer has a QR. */
export function expectQr(called: Answer, what: string): void {
  expectOk(called, what);
  const { qrCode } = recordOf(called.json);
  if (typeof qrCode !== 'string' || qrCode === '') throw new Mismatch(`${what}: the answer has no qrCode`);
}

export function expectSame(what: string, expected: unknown, actual: unknown): void {
  if (expected === actual) return;
  throw new Mismatch(`${what}: expected ${JSON.stringify(expected)}, is ${JSON.stringify(actual)}`);
}

/** Throws one Mismatch for all fields that differ from the expected ones. */
export function expectFields(expected: object, actual: unknown, whose = ''): Promise<void> {
  return forEachCase(Object.entries(expected), async ([field, value]) => {
    const is = recordOf(actual)[field];
    if (is !== value) throw new Mismatch(`${whose}${field}: expected ${value}, is ${String(is)}`);
  });
}

/** Judges all cases. Throws one Mismatch that names every wrong one. */
export async function forEachCase<T>(cases: readonly T[], judge: (it: T) => Promise<void>): Promise<void> {
  const wrong: Mismatch[] = [];
  for (const it of cases) {
    try {
      await judge(it);
    } catch (error) {
      if (!(error instanceof Mismatch) || error.name !== 'Mismatch') throw error;
      wrong.push(error);
    }
  }
  const [first] = wrong;
  if (first === undefined) return;
  throw wrong.length === 1 ? first : new Mismatch(wrong.map(({ message }) => message).join('; '));
}
