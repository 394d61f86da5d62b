import { PayboxError } from '../../../lib/errors.ts';
import { explained } from '../../../protocol/codes.ts';
import type { GenerateResponse } from '../../../protocol/http-api.ts';
import { spanMs } from '../../scenarios/durations.ts';
import type { Step } from '../../scenarios/steps.ts';
import { waitUntilRight } from '../test-time.ts';
import { baseline } from './account.ts';
import { boxOf, type PushedOrder, type ScenarioState, type StepContext, StepFailure } from './context.ts';

const ORDER_ID_BYTES = 6;

/** Runs `generate`: creates an order with its QR. */
export async function generate(args: NonNullable<Step['generate']>, context: StepContext): Promise<object> {
  const answer = await createOrder(args, context);
  if (typeof answer === 'string') return { answer: expectAnswer('generate', answer, args.answer, context) };
  expectAnswer('generate', 'SUCCESS', args.answer, context);
  return { ...answer, answer: 'SUCCESS' };
}

/** Runs `push`: pushes a QR to a box, as a partner does. */
export async function push(args: NonNullable<Step['push']>, context: StepContext): Promise<object> {
  const { target, transcript, state } = context;
  const { partner, account } = target.gateway;
  const box = boxOf(context);
  const generated =
    args.qr === undefined ? await createOrder(args, context) : suppliedOrder(args, String(args.qr), context);
  if (typeof generated === 'string') return { answer: expectAnswer('push', generated, args.answer, context) };
  const request = {
    bankAccount: account.bankAccount,
    bankCode: account.bankCode,
    amount: generated.amount,
    content: generated.content,
    qrCode: generated.qrCode,
    terminalCode: box.terminalCode,
    serialNumber: box.serialNumber,
    orderId: generated.orderId,
    ...args.change,
  };
  const token = await tokenFor(args.token, context);
  const { status, message } = await transcript.timed('push until it is confirmed', () =>
    partner.sendQr(token, request),
  );
  const answer = status === 'SUCCESS' ? status : message;
  transcript.add('call', `send-qr: ${explained(answer)}`, { detail: { request, answer: { status, message } } });
  notePush({ ...generated, terminalCode: box.terminalCode }, state);
  expectAnswer('push', answer, args.answer, context);
  return { ...generated, answer };
}

/** A failure can name this many of the newest pushes. */
const PUSHES_NOTED_MAX = 1_000;

/** Remembers to which order and box this QR belongs. */
function notePush({ qrCode, orderId, terminalCode }: PushedOrder & { qrCode: string }, state: ScenarioState): void {
  state.pushed ??= new Map();
  const { pushed } = state;
  pushed.delete(qrCode);
  pushed.set(qrCode, { orderId, terminalCode });
  const [oldest] = pushed.keys();
  if (oldest !== undefined && pushed.size > PUSHES_NOTED_MAX) pushed.delete(oldest);
}

/** Runs `pay`: simulates a payment in the sandbox. */
export async function pay(args: NonNullable<Step['pay']>, context: StepContext): Promise<object> {
  const { partner, account } = context.target.gateway;
  await baseline(context);
  const payment = {
    bankAccount: account.bankAccount,
    content: String(args.content),
    amount: amountOf(args.amount, context),
    transType: args.debit === true ? ('D' as const) : ('C' as const),
  };
  const token = await tokenFor(args.token, context);
  const { status, message } = await context.transcript.timed('payment', () => partner.testCallback(token, payment));
  const answer = status === 'SUCCESS' ? status : message;
  context.transcript.add('call', `transaction-callback: ${explained(answer)}`, {
    detail: { request: payment, answer: { status, message } },
  });
  if (status === 'SUCCESS') {
    context.state.paid ??= [];
    context.state.paid.push(message);
  }
  expectAnswer('pay', answer, args.answer, context);
  return { answer, transactionId: status === 'SUCCESS' ? message : '', ...payment };
}

/** Runs `cancel`: cancels the order. */
export async function cancel(args: NonNullable<Step['cancel']>, context: StepContext): Promise<object> {
  const answer = await context.target.gateway.cancel(String(args.order));
  context.transcript.add('call', `cancel of ${args.order}: ${explained(answer)}`);
  return { answer: expectAnswer('cancel', answer, args.answer, context) };
}

/** Returns the service's answer for an order, or its refusal code. */
async function createOrder(args: NonNullable<Step['push']>, context: StepContext): Promise<GenerateResponse | string> {
  const { partner, account } = context.target.gateway;
  const order = {
    ...account,
    amount: amountOf(args.amount, context),
    content: String(args.content),
    orderId: orderIdOf(args, context),
  };
  const token = await tokenFor(args.token, context);
  try {
    const answer = await context.transcript.timed('generate', () => partner.generate(token, order));
    context.transcript.add('call', `generate: order ${order.orderId}`, { detail: { request: order, answer } });
    return answer;
  } catch (error) {
    if (!(error instanceof PayboxError) || error.severity !== 'fatal') throw error;
    context.transcript.add('call', `generate: ${explained(error.code)}`, { detail: { request: order } });
    return error.code;
  }
}

/** Returns an order with a QR that the step supplies. */
function suppliedOrder(
  args: NonNullable<Step['push']>,
  qrCode: string,
  context: StepContext,
): Pick<GenerateResponse, 'amount' | 'content' | 'orderId' | 'qrCode'> {
  const amount = String(amountOf(args.amount, context));
  return { amount, content: String(args.content), orderId: orderIdOf(args, context), qrCode };
}

function orderIdOf({ order }: NonNullable<Step['push']>, { random }: StepContext): string {
  return String(order ?? `B-${random.secret(ORDER_ID_BYTES)}`);
}

/** Returns a new token, or the first one of this scenario, whatever its age. */
async function tokenFor(which: 'first' | undefined, { target, state }: StepContext): Promise<string> {
  if (which === 'first' && state.firstToken !== undefined) return state.firstToken;
  const token = await target.gateway.partner.token();
  state.firstToken ??= token;
  return token;
}

function amountOf(amount: number | string, context: StepContext): number {
  const value = Number(amount);
  if (Number.isSafeInteger(value) && value >= 0) return value;
  throw new StepFailure(`amount: expected whole đồng, is ${amount}`, context);
}

function expectAnswer(
  what: string,
  answer: string,
  expected: string | number | (string | number)[] = 'SUCCESS',
  context: StepContext,
): string {
  const allowed = [expected].flat().map(String);
  if (allowed.includes(answer)) return answer;
  throw new StepFailure(
    {
      reason: `${what}: expected ${allowed.join(' or ')}, the answer is ${explained(answer)}`,
      expected: allowed.join(' or '),
      actual: explained(answer),
    },
    context,
  );
}

const ENROL_WITHIN_MS = 20_000;
/** An enrolment code as a box shows it, on a line of its own. */
const CODE = /^[0-9A-HJKMNP-TV-Z]{4}(-[0-9A-HJKMNP-TV-Z]{4}){2}$/m;

/** Runs `wait`: lets time pass. */
export async function wait(text: string, { target, random, signal }: StepContext): Promise<undefined> {
  const [fromMs, toMs] = spanMs(text) ?? [0, 0];
  await target.time.wait(fromMs + Math.round(random.fraction() * (toMs - fromMs)), signal);
  signal.throwIfAborted();
}

/** Runs `press`: presses a key of the box. */
export async function press(key: string, context: StepContext): Promise<undefined> {
  await boxOf(context).press(key);
}

/** Runs `enrol`: enters the code of the box's screen at the gateway, as an admin does. */
export async function enrol(args: NonNullable<Step['enrol']>, context: StepContext): Promise<object> {
  const { target, signal } = context;
  const box = boxOf(context);
  let code = args.code === undefined ? '' : String(args.code);
  const ask = async () => {
    if (!(await target.gateway.asks(box.terminalCode))) return `${box.terminalCode} does not ask to enrol`;
    if (code === '') code = CODE.exec(await box.text())?.[0] ?? '';
    return code === '' ? `${box.terminalCode} shows no code` : undefined;
  };
  const problem = await waitUntilRight(target.time, ENROL_WITHIN_MS, ask, signal);
  if (problem !== undefined) throw new StepFailure(problem, context);
  const answer = await target.gateway.enrol(box.terminalCode, code);
  context.transcript.add('call', `enrolment of ${box.terminalCode}: ${explained(answer)}`);
  return { answer: expectAnswer('enrol', answer, args.answer, context), code };
}
