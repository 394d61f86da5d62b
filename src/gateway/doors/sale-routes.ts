import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { unaccented } from '../../lib/text.ts';
import { vietnamDay, vietnamTime } from '../../lib/vietnam-time.ts';
import { BOX_REFUSALS } from '../../protocol/codes.ts';
import { amountVnd, boxCode, LIMITS } from '../../protocol/fields.ts';
import type { Caller } from '../access/authorizer.ts';
import { listQuery } from '../access/requests.ts';
import { CASHIER_SALES_MAX, SalePace } from '../access/sale-pace.ts';
import { accept, type Refusal, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import type { Period, Sale } from '../store/repositories/sales.ts';
import type { OrderStatus } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import { cancellationOf, tellChanged } from './admin.ts';
import type { OwnApi } from './own-api.ts';

const DAY_MS = 86_400_000;
/** A file is written in parts of this many rows. */
const FILE_ROWS = 500;
/** A note has room for the order's code and a space before it. */
const NOTE_CHARS_MAX = LIMITS.contentMax - 10;
const NOTE = new RegExp(`^[A-Za-z0-9 ]{0,${NOTE_CHARS_MAX}}$`);
const NOTE_RULE = `at most ${NOTE_CHARS_MAX} letters, digits and spaces`;

const saleRequest = z.strictObject({
  amount: amountVnd,
  terminalCode: boxCode.or(z.literal('')).default(''),
  note: z
    .string()
    .overwrite(unaccented)
    .refine((it) => NOTE.test(it), NOTE_RULE)
    .describe(`${NOTE_RULE}; accents are dropped`)
    .default(''),
});
const day = z.string().refine((text) => periodOf(text) !== undefined, 'expected a day as 2026-01-31');
const dayQuery = listQuery.extend({ day: day.optional() });

const saleAnswer = z.strictObject({
  id: z.string(),
  code: z.string(),
  amount: z.int(),
  content: z.string(),
  status: z.string().describe('of its order, underpaid while it waits for the rest, or overpaid'),
  isOpen: z.boolean().describe('whether it waits for money'),
  paid: z.int().describe('the sum that has come'),
  failure: z.string().nullable(),
  terminalCode: z.string(),
  soldBy: z.string().nullable().describe('the name of the token that sold'),
  bankAccount: z.string(),
  qrCode: z.string(),
  madeAt: z.string(),
  paidAt: z.string().nullable(),
});
const dayAnswer = z.strictObject({
  day: z.string(),
  sales: z.int(),
  paid: z.int(),
  amount: z.int(),
  rows: z.array(saleAnswer),
});
/** Refusals of a sale that no box has shown. */
const SALE_REFUSALS = [
  'TOO_MANY_SALES',
  'E35',
  'E36',
  'BOX_TIMEOUT',
  'BOX_CONFIRMS_NOTHING',
  'BOX_OFFLINE',
  ...BOX_REFUSALS.slice(1),
] as const;

/** Registers the calls of a cashier, below `/admin/v1` (PROTOCOL.md, clause SEL). */
export function saleRoutes(scope: FastifyInstance, api: OwnApi, { world, stored, money }: OpenGateway): void {
  const { clock } = world;
  const { store } = stored;
  const { sales, service } = money;
  const pace = new SalePace(clock);
  const known = async (id: string, { boxes }: Caller): Promise<Result<Sale>> => {
    const sale = await store.sales.find(id, boxes);
    return sale === undefined ? refuse('E96', 'no such sale') : accept(sale);
  };
  const viewOf = (result: Result<Sale>) => (result.ok ? accept(saleView(result.value)) : result);

  api.route(scope, {
    method: 'POST',
    path: '/sales',
    access: 'sell',
    summary: 'Sell: an amount, and its QR on a box',
    body: saleRequest,
    answer: saleAnswer,
    status: 201,
    refusals: SALE_REFUSALS,
    run: async ({ body, caller, reply }) =>
      paceProblem(pace.waitMs(caller), caller, reply) ?? viewOf(await sales.sell(body, caller)),
  });
  dayRoutes(scope, api, clock, store);
  api.route(scope, {
    method: 'GET',
    path: '/sales/:name',
    access: 'list-sales',
    summary: 'Read a sale, by its id or its code',
    answer: saleAnswer,
    refusals: ['E96'],
    run: async ({ name, caller }) => viewOf(await known(name, caller)),
  });
  api.route(scope, {
    method: 'POST',
    path: '/sales/:name/cancel',
    access: 'sell',
    audit: 'cancelled',
    summary: 'Cancel a sale, and take its QR away; one that has ended stays as it is',
    answer: saleAnswer,
    refusals: ['E96'],
    run: async ({ name, caller, reply }) => {
      const found = await known(name, caller);
      if (!found.ok) return found;
      const cancelled = await service.cancelOrder(found.value.order.id);
      if (!cancelled.ok) return cancelled;
      tellChanged(reply.request, cancellationOf(cancelled.value, 'sales'));
      return viewOf(await known(found.value.order.id, caller));
    },
  });
}

/** Registers the sales of a day, as a list and as a file. */
function dayRoutes(scope: FastifyInstance, api: OwnApi, clock: Clock, store: Store): void {
  const periodIn = ({ day = vietnamDay(clock.wallMs()) }: z.output<typeof dayQuery>) => {
    const period = periodOf(day);
    return period === undefined ? refuse('E46', `day: ${day}`) : accept({ day, period });
  };

  api.route(scope, {
    method: 'GET',
    path: '/sales',
    access: 'list-sales',
    summary: 'The sales of a day, newest first, and their sum',
    query: dayQuery,
    answer: dayAnswer,
    run: async ({ query, caller: { boxes } }) => {
      const asked = periodIn(query);
      if (!asked.ok) return asked;
      const { day, period } = asked.value;
      const rows = await store.sales.made(period, query.limit, query.before, boxes);
      return accept({ day, ...(await store.sales.sum(period, boxes)), rows: rows.map(saleView) });
    },
  });
  api.route(scope, {
    method: 'GET',
    path: '/sales.csv',
    access: 'list-sales',
    summary: 'The sales of a day as a file',
    query: dayQuery,
    answer: z.string(),
    type: 'text/csv; charset=utf-8',
    run: async ({ query, caller, reply }) => {
      const asked = periodIn(query);
      if (!asked.ok) return asked;
      reply.header('content-disposition', `attachment; filename="sales-${asked.value.day}.csv"`);
      return accept(await csvOf(asked.value.period, caller, store));
    },
  });
}

function paceProblem(waitMs: number, { who }: Caller, reply: FastifyReply): Refusal | undefined {
  if (waitMs === 0) return undefined;
  reply.header('retry-after', String(Math.ceil(waitMs / 1000)));
  return refuse('TOO_MANY_SALES', `expected at most ${CASHIER_SALES_MAX} sales a minute with the token ${who}`);
}

/** Returns the period of a day in Vietnam. Undefined for a text that is no day. */
function periodOf(day: string): Period | undefined {
  const fromMs = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00+07:00`) : Number.NaN;
  return Number.isNaN(fromMs) || vietnamDay(fromMs) !== day ? undefined : { fromMs, toMs: fromMs + DAY_MS };
}

/** Statuses of an order that still waits for money. */
const OPEN: readonly OrderStatus[] = ['created', 'pushed', 'shown'];

/**
 * Returns the JSON of a sale. `isOpen` is true while it waits for money. `status` is that of its order, or `underpaid`
 * while it waits for the rest, or `overpaid`. `paid` is the sum received.
 */
function saleView({ order, payments, soldBy }: Sale) {
  const paid = payments.reduce((sum, it) => sum + it.amount, 0);
  return {
    id: order.id,
    code: order.order_id,
    amount: order.amount,
    content: order.content,
    status: statusOf(order.status, order.amount, paid),
    isOpen: OPEN.includes(order.status),
    paid,
    failure: order.failure,
    terminalCode: order.terminal_code,
    soldBy,
    bankAccount: order.bank_account,
    qrCode: order.qr_code,
    madeAt: time(order.created_at_ms),
    paidAt: time(payments.at(-1)?.paid_at_ms ?? null),
  };
}

/** Returns the status of a sale. One that ended with too little money has the status with which its order ended. */
function statusOf(status: OrderStatus, amount: number, paid: number): string {
  if (paid > amount) return 'overpaid';
  return paid > 0 && paid < amount && OPEN.includes(status) ? 'underpaid' : status;
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Returns the sales of a period as RFC 4180 has it, oldest first, with the sum. Times are Vietnam's. */
async function csvOf(period: Period, { boxes }: Caller, { sales }: Stored['store']): Promise<string> {
  const found: Sale[] = [];
  for (let rows: Sale[] = [], more = true; more; found.push(...rows), more = rows.length === FILE_ROWS) {
    rows = await sales.made(period, FILE_ROWS, found.at(-1)?.order.id, boxes);
  }
  const rows = found.reverse().map((sale) => {
    const { code, amount, paid, status, content, terminalCode, bankAccount, soldBy } = saleView(sale);
    const made = vietnamTime(sale.order.created_at_ms);
    return [made, code, amount, paid, status, content, terminalCode, bankAccount, soldBy ?? ''];
  });
  const { amount } = await sales.sum(period, boxes);
  const head = ['time', 'code', 'amount', 'paid', 'status', 'content', 'box', 'account', 'cashier'];
  const lines = [head, ...rows, ['sum', '', '', amount, '', '', '', '', '']];
  return lines.map((cells) => `${cells.map((it) => csvCell(String(it))).join(',')}\r\n`).join('');
}

/** Returns a cell that a spreadsheet does not read as a formula. */
function csvCell(text: string): string {
  const plain = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}
