import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Listed } from '../../src/gateway/money/sources/source.ts';
import { bankTime, linkOf, type Moved, PROVIDERS } from './providers.ts';

type Json = Record<string, unknown>;
interface Asked {
  path: string;
  query: URLSearchParams;
  headers: Record<string, string | string[] | undefined>;
}
interface ListAnswer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** The API of a provider, written anew from the facts about it. What a test changes takes effect at once. */
export interface ProviderList {
  /** The source in a gateway's file, without its name; `url` is where this list is. */
  options(url: string): Json;
  /** What the bank has moved; a list has it at once. */
  moved: Moved[];
  /** Entries as they are, before the others. */
  strange: Json[];
  /** Answers that come first, in their order, whatever is asked. */
  first: ListAnswer[];
  /** Requests with a right token so far. */
  asked: Asked[];
  answer(asked: Asked): ListAnswer;
}

const TOKEN = 'sample-api-token-of-a-test';
export const tooMany = (retryAfter?: string): ListAnswer => ({
  status: 429,
  headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  body: '{}',
});
export const failing = (status: number, body = 'oops'): ListAnswer => ({ status, headers: {}, body });
const json = (status: number, body: Json): ListAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

const inDays = (from: string | null, to: string | null) => (it: Moved) => {
  const day = bankTime(it.atMs).slice(0, 10);
  return day >= (from ?? '') && day <= (to ?? '9');
};
const inTimes = (from: string | null, to: string | null) => (it: Moved) =>
  bankTime(it.atMs) >= (from ?? '') && bankTime(it.atMs) <= (to ?? '9');

/** Rows of one page, and how many pages there are. */
function pageOf(rows: readonly Json[], page: number, size: number) {
  return { rows: rows.slice((page - 1) * size, page * size), pages: Math.ceil(rows.length / size) };
}

function list(token: string, options: (url: string) => Json, answer: (it: ProviderList, asked: Asked) => ListAnswer) {
  const it: ProviderList = {
    options,
    moved: [],
    strange: [],
    first: [],
    asked: [],
    answer: (asked) => {
      const sent = asked.headers['x-api-key'] ?? asked.headers.authorization;
      if (sent !== token) return json(401, { message: 'Unauthorized' });
      it.asked.push(asked);
      return it.first.shift() ?? answer(it, asked);
    },
  };
  return it;
}

const api = (name: string) => (url: string) => ({ ...PROVIDERS[name]?.options, api: { url, token: TOKEN } });

/** `pageMax`: more rows than this are not on one page, whatever is asked. */
export function sepayList(pageMax = 100): ProviderList {
  return list(`Bearer ${TOKEN}`, api('sepay signed'), ({ moved, strange }, { path, query }) => {
    if (path !== '/v2/transactions') return json(404, {});
    const found = moved.filter(inTimes(query.get('transaction_date_from'), query.get('transaction_date_to')));
    const rows = found.map((it) => ({
      id: `5f3c9d2e-0000-4000-8000-${String(it.id).padStart(12, '0')}`,
      transaction_date: bankTime(it.atMs),
      account_number: it.bankAccount,
      va: it.virtualAccount || null,
      va_id: null,
      transfer_type: it.out ? 'out' : 'in',
      amount_in: it.out ? 0 : it.amount,
      amount_out: it.out ? it.amount : 0,
      accumulated: 0,
      transaction_content: it.text,
      reference_number: it.reference || null,
      code: null,
      bank_brand_name: 'Vietcombank',
      bank_account_id: 'b',
      webhook_success: 0,
    }));
    const [page, size] = [Number(query.get('page') ?? 1), Math.min(Number(query.get('per_page') ?? 20), pageMax)];
    const { rows: data, pages } = pageOf([...strange, ...rows], page, size);
    const pagination = {
      total: rows.length,
      per_page: size,
      current_page: page,
      last_page: pages,
      has_more: page < pages,
    };
    return json(200, { status: 'success', data, meta: { pagination } });
  });
}

export function cassoList(pageMax = 100): ProviderList {
  return list(`Apikey ${TOKEN}`, api('casso V2'), ({ moved, strange }, { path, query }) => {
    if (path !== '/v2/transactions') return json(404, {});
    const found = moved.filter(inDays(query.get('fromDate'), query.get('toDate')));
    const all = found.map((it) => ({
      id: it.id,
      tid: it.reference,
      description: it.text,
      amount: it.out ? -it.amount : it.amount,
      cusum_balance: 1_070_904,
      when: bankTime(it.atMs).replace(' ', 'T'),
      bankSubAccId: it.bankAccount,
      paymentChannel: '',
      virtualAccount: it.virtualAccount,
      virtualAccountName: '',
      accountId: 733,
      bankCodeName: 'acb_digi',
    }));
    const [page, pageSize] = [Number(query.get('page') ?? 1), Math.min(Number(query.get('pageSize') ?? 10), pageMax)];
    const { rows: records, pages: totalPages } = pageOf([...strange, ...all], page, pageSize);
    const nextPage = page < totalPages ? page + 1 : null;
    const data = { page, pageSize, nextPage, prevPage: null, totalPages, totalRecords: all.length, records };
    return json(200, { error: 0, message: 'success', data });
  });
}

const isObject = (it: unknown): it is Json => typeof it === 'object' && it !== null && !Array.isArray(it);
const sorted = (it: Json) =>
  Object.fromEntries(
    Object.keys(it)
      .sort()
      .map((key) => [key, it[key]]),
  );

/** The payment links that are at payOS are those of the orders that money was moved for. */
export function payosList(signed = true): ProviderList {
  const options: Json = { ...PROVIDERS.payos?.options };
  const withApi = (url: string) => ({ ...options, clientId: 'sample-client', apiKey: TOKEN, api: { url } });
  return list(TOKEN, withApi, ({ moved, strange }, { path }) => {
    const orderCode = Number(path.split('/').at(-1));
    const paid = moved.filter((it) => it.orderCode === orderCode && !it.out);
    if (paid.length === 0)
      return orderCode % 2 === 0 ? json(404, {}) : json(200, { code: '101', desc: 'no such order' });
    const amountPaid = paid.reduce((sum, it) => sum + it.amount, 0);
    const transactions = paid.map((it) => ({
      accountNumber: it.bankAccount,
      amount: it.amount,
      counterAccountBankName: null,
      description: it.text,
      reference: it.reference,
      transactionDateTime: `${bankTime(it.atMs).replace(' ', 'T')}+07:00`,
      virtualAccountName: null,
      virtualAccountNumber: it.virtualAccount || null,
    }));
    const data: Json = {
      id: linkOf(orderCode),
      orderCode,
      amount: amountPaid,
      amountPaid,
      amountRemaining: 0,
      status: 'PAID',
      createdAt: '2025-12-12T09:00:00+07:00',
      transactions: [...strange, ...transactions],
      canceledAt: null,
    };
    const text = Object.keys(data)
      .sort()
      .map((key) => {
        const value = data[key];
        const items = Array.isArray(value)
          ? JSON.stringify(value.map((it) => (isObject(it) ? sorted(it) : it)))
          : value;
        return `${key}=${items ?? ''}`;
      });
    const signature = createHmac('sha256', String(options.checksumKey)).update(text.join('&')).digest('hex');
    return json(200, { code: '00', desc: 'success', data, ...(signed ? { signature } : {}) });
  });
}

/** The list over HTTP, until it is closed. */
export async function openListServer(provider: ProviderList): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(({ url = '', headers }, response) => {
    const { pathname: path, searchParams: query } = new URL(url, 'http://list');
    const { status, headers: sent, body } = provider.answer({ path, query, headers });
    response.writeHead(status, sent).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

/** The list over HTTP, until the test ends. */
export async function listServer(provider: ProviderList): Promise<string> {
  const { url, close } = await openListServer(provider);
  onTestFinished(close);
  return url;
}

/** All that a list has. */
export async function allOf(pages: AsyncIterable<Listed> | undefined): Promise<Listed> {
  const all: Listed = { credits: [], unread: [] };
  for await (const { credits, unread } of pages ?? []) {
    all.credits.push(...credits);
    all.unread.push(...unread);
  }
  return all;
}
