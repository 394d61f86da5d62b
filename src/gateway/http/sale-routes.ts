import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { issuesOf } from '../../protocol/codec.ts';
import { amountVnd, boxCode, LIMITS } from '../../protocol/fields.ts';
import type { Period, Sale } from '../../store/repositories/sales.ts';
import type { OrderStatus } from '../../store/schema/tables.ts';
import { answerRefusal, listQuery, readBody } from '../access/requests.ts';
import type { Context } from '../context.ts';
import { accept, type Result, refuse } from '../result.ts';
import type { Sales } from '../service/sales.ts';
import type { Service } from '../service/service.ts';

const DAY_MS = 86_400_000;
/** Vietnam has one time zone, without summer time. */
const VIETNAM_MS = 7 * 3_600_000;
const SALE_BYTES_MAX = 4_096;
/** Rows that are read at a time for a file. */
const FILE_ROWS = 500;
/** The code and a space before it. */
const NOTE_CHARS_MAX = LIMITS.contentMax - 10;

const saleRequest = z.strictObject({
  amount: amountVnd,
  terminalCode: boxCode.or(z.literal('')).default(''),
  note: z
    .string()
    .regex(
      new RegExp(`^[A-Za-z0-9 ]{0,${NOTE_CHARS_MAX}}$`),
      `at most ${NOTE_CHARS_MAX} letters without accents, digits and spaces`,
    )
    .default(''),
});
const day = z.string().refine((text) => periodOf(text) !== undefined, 'expected a day as 2026-01-31');
const dayQuery = listQuery.extend({ day: day.optional() });

export interface SaleRoutesDeps extends Pick<Context, 'store' | 'clock' | 'log'> {
  sales: Sales;
  service: Pick<Service, 'cancelOrder'>;
}

/** The calls of a cashier, below `/admin/v1` (PROTOCOL.md, clause SEL). */
export function saleRoutes(scope: FastifyInstance, { store, clock, log, sales, service }: SaleRoutesDeps): void {
  const answer = (request: FastifyRequest, reply: FastifyReply, result: Result<object>) =>
    result.ok ? result.value : answerRefusal(request, reply, log, result, result.code === 'E96' ? 404 : 400);
  const known = async (id: string): Promise<Result<Sale>> => {
    const sale = await store.sales.find(id);
    return sale === undefined ? refuse('E96', 'no such sale') : accept(sale);
  };
  const viewOf = (result: Result<Sale>): Result<object> => (result.ok ? accept(saleView(result.value)) : result);

  scope.post('/sales', { bodyLimit: SALE_BYTES_MAX }, async (request, reply) => {
    const json = readBody(request, log);
    if (!json.ok) return answer(request, reply, json);
    const asked = saleRequest.safeParse(json.value);
    if (!asked.success) return answer(request, reply, refuse('E46', issuesOf(asked.error)));
    const sold = await sales.sell(asked.data);
    if (sold.ok) reply.code(201);
    return answer(request, reply, viewOf(sold));
  });
  scope.get('/sales', async (request, reply) => {
    const query = dayQuery.safeParse(request.query);
    if (!query.success) return answer(request, reply, refuse('E46', issuesOf(query.error)));
    const { limit, before, day = dayOf(clock.wallMs()) } = query.data;
    const period = periodOf(day);
    if (period === undefined) return answer(request, reply, refuse('E46', `day: ${day}`));
    const { amount, ...counts } = await store.sales.sum(period);
    const rows = await store.sales.made(period, limit, before);
    return { day, ...counts, amount, rows: rows.map(saleView) };
  });
  scope.get('/sales.csv', async (request, reply) => {
    const query = dayQuery.safeParse(request.query);
    if (!query.success) return answer(request, reply, refuse('E46', issuesOf(query.error)));
    const { day = dayOf(clock.wallMs()) } = query.data;
    const period = periodOf(day);
    if (period === undefined) return answer(request, reply, refuse('E46', `day: ${day}`));
    reply.header('content-disposition', `attachment; filename="sales-${day}.csv"`).type('text/csv; charset=utf-8');
    return reply.send(await csvOf(period, store));
  });
  scope.get<{ Params: { id: string } }>('/sales/:id', async (request, reply) =>
    answer(request, reply, viewOf(await known(request.params.id))),
  );
  scope.post<{ Params: { id: string } }>('/sales/:id/cancel', async (request, reply) => {
    const found = await known(request.params.id);
    if (!found.ok) return answer(request, reply, found);
    const cancelled = await service.cancelOrder(found.value.order.id);
    return answer(request, reply, cancelled.ok ? viewOf(await known(found.value.order.id)) : cancelled);
  });
}

/** The day in Vietnam at this time, as 2026-01-31. */
function dayOf(wallMs: number): string {
  return new Date(wallMs + VIETNAM_MS).toISOString().slice(0, 10);
}

/** A day in Vietnam; `undefined` for a text that is none. */
function periodOf(day: string): Period | undefined {
  const fromMs = /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00+07:00`) : Number.NaN;
  return Number.isNaN(fromMs) || dayOf(fromMs) !== day ? undefined : { fromMs, toMs: fromMs + DAY_MS };
}

/** Statuses of an order that still waits for its money. */
const OPEN: readonly OrderStatus[] = ['created', 'pushed', 'shown'];

/** JSON of a sale. `isOpen` while it waits for money. `status` is that of its order, or `underpaid` while money is missing; `paid` is what has come. */
function saleView({ order, payments }: Sale) {
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
    bankAccount: order.bank_account,
    qrCode: order.qr_code,
    madeAt: time(order.created_at_ms),
    paidAt: time(payments.at(-1)?.paid_at_ms ?? null),
  };
}

function statusOf(status: Sale['order']['status'], amount: number, paid: number): string {
  if (paid === 0 || paid === amount) return status;
  return paid < amount ? 'underpaid' : 'overpaid';
}

function time(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** The sales of a period, oldest first, as RFC 4180 has it, and the sum; times are Vietnam's. */
async function csvOf(period: Period, { sales }: Context['store']): Promise<string> {
  const found: Sale[] = [];
  for (let rows: Sale[] = [], more = true; more; found.push(...rows), more = rows.length === FILE_ROWS) {
    rows = await sales.made(period, FILE_ROWS, found.at(-1)?.order.id);
  }
  const rows = found.reverse().map((sale) => {
    const { code, amount, paid, status, content, terminalCode, bankAccount } = saleView(sale);
    const made = localTime(sale.order.created_at_ms);
    return [made, code, amount, paid, status, content, terminalCode, bankAccount];
  });
  const { amount } = await sales.sum(period);
  const head = ['time', 'code', 'amount', 'paid', 'status', 'content', 'box', 'account'];
  const lines = [head, ...rows, ['sum', '', '', amount, '', '', '', '']];
  return lines.map((cells) => `${cells.map((it) => csvCell(String(it))).join(',')}\r\n`).join('');
}

/** A cell that a spreadsheet does not take as a formula. */
function csvCell(text: string): string {
  const plain = /^[=+\-@\t]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

function localTime(wallMs: number): string {
  return new Date(wallMs + VIETNAM_MS).toISOString().slice(0, 19).replace('T', ' ');
}
