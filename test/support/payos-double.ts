import { createHmac } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { field, PARTS, payloadOf } from '../protocol/payloads.ts';
import { bankTime, deliver, linkOf, type Moved, moved, type Post, PROVIDERS, type Provider } from './providers.ts';

type Json = Record<string, unknown>;

/** A payment request as payOS keeps it. */
export interface Link {
  orderCode: number;
  amount: number;
  description: string;
  status: 'PENDING' | 'UNDERPAID' | 'PAID' | 'CANCELLED' | 'EXPIRED';
  expiredAt: number;
  qrCode: string;
  paid: Moved[];
}

/** An answer in place of the right one; `undefined` hangs. */
type Strange = { status: number; headers?: Record<string, string>; body?: Json } | undefined;

const CLIENT = 'sample-client-id';
const KEY = 'sample-api-key-of-a-test';
const CHECKSUM_KEY = String(PROVIDERS.payos?.options.checksumKey);
/** Where its QRs pay to: a virtual account for each order. */
export const VIRTUAL = { bankCode: 'MB', begins: 'VQRQ' };
const MAIN_ACCOUNT = '0123456789';

/**
 * payOS with its API and its webhook, written anew from the facts about it: it shares no code with the gateway. What a
 * test changes takes effect at once.
 */
export class PayosDouble {
  readonly links = new Map<number, Link>();
  /** Requests so far, as `POST /v2/payment-requests`, with the orderCode for `*`. */
  readonly asked: string[] = [];
  /** Answers that come first to requests for a new link, in their order. */
  readonly first: Strange[] = [];
  /** Answers that come first to any other request. */
  readonly firstOthers: Strange[] = [];
  /** Changes the data of a new link before it is signed. */
  change: (data: Json) => Json = (data) => data;
  /** The key with which it signs its answers. */
  key = CHECKSUM_KEY;
  url = '';

  /** The source `till` in a gateway's file; it makes the QRs of the account. */
  source(change: Json = {}, qr: Json = {}): Json {
    return {
      ...{ kind: 'payos', name: 'till', checksumKey: CHECKSUM_KEY, clientId: CLIENT, apiKey: KEY },
      api: { url: this.url },
      qr: { accounts: [MAIN_ACCOUNT], virtualAccounts: [VIRTUAL], pageUrl: 'https://shop.example/', ...qr },
      ...change,
    };
  }

  /** The only link of a test, or the newest one. */
  newest(): Link {
    const link = [...this.links.values()].at(-1);
    if (link === undefined) throw new Error('payOS was asked for no QR');
    return link;
  }

  /** Somebody pays to a link; payOS tells nobody of it before `tell`. */
  pay(link: Link, change: Partial<Moved> = {}): Moved {
    if (link.status !== 'PENDING' && link.status !== 'UNDERPAID') throw new Error(`the link is ${link.status}`);
    const atMs = Date.now() - 1000;
    const money = moved({
      id: link.orderCode,
      reference: `FT${link.orderCode}${link.paid.length}`,
      bankAccount: MAIN_ACCOUNT,
      virtualAccount: virtualOf(link.orderCode),
      amount: link.amount,
      text: `CT tu 9990001 ${link.description}`,
      atMs: atMs - (atMs % 1000),
      orderCode: link.orderCode,
      ...change,
    });
    link.paid.push(money);
    const sum = link.paid.reduce((total, it) => total + it.amount, 0);
    link.status = sum >= link.amount ? 'PAID' : 'UNDERPAID';
    return money;
  }

  /** Tells the hook until it is answered. */
  tell(gateway: { origin: string }, money: Moved): ReturnType<typeof deliver> {
    const post: Post = async ({ path, headers, body }) => {
      const answer = await fetch(`${gateway.origin}/hooks/till${path}`, { method: 'POST', headers, body });
      return { status: answer.status, body: await answer.json() };
    };
    return deliver(PROVIDERS.payos as Provider, money, post, Date.now);
  }

  answer(method: string, path: string, headers: Json, body: Json): Strange {
    const [, code = '', action] = /^\/v2\/payment-requests(?:\/(\d+))?(\/cancel)?$/.exec(path) ?? [];
    this.asked.push(`${method} ${path.replace(/\d{4,}/, '*')}`);
    if (headers['x-client-id'] !== CLIENT || headers['x-api-key'] !== KEY) return { status: 401 };
    const strange = code === '' ? this.first : this.firstOthers;
    if (strange.length > 0) return strange.shift();
    if (code === '') return method === 'POST' ? this.#make(body) : { status: 404 };
    const link = this.links.get(Number(code));
    if (link === undefined) return { status: 200, body: { code: '101', desc: 'no such order' } };
    if (link.status === 'PENDING' && link.expiredAt * 1000 <= Date.now()) link.status = 'EXPIRED';
    if (action === undefined) return this.#signed(this.#linkData(link));
    if (link.status !== 'PENDING' && link.status !== 'UNDERPAID') {
      return { status: 200, body: { code: '231', desc: `the order is ${link.status}` } };
    }
    link.status = 'CANCELLED';
    return this.#signed(this.#linkData(link));
  }

  #make(body: Json): Strange {
    const { amount, cancelUrl, description, orderCode, returnUrl, signature, expiredAt } = body;
    const signed = `amount=${amount}&cancelUrl=${cancelUrl}&description=${description}&orderCode=${orderCode}&returnUrl=${returnUrl}`;
    const isRight = createHmac('sha256', CHECKSUM_KEY).update(signed).digest('hex') === signature;
    if (!isRight) return { status: 200, body: { code: '201', desc: 'the signature is wrong' } };
    if (String(description).length > 9) return { status: 200, body: { code: '20', desc: 'the description is long' } };
    if (this.links.has(Number(orderCode))) return { status: 200, body: { code: '231', desc: 'the order is there' } };
    const accountNumber = virtualOf(Number(orderCode));
    const qrCode = payloadOf({
      ...PARTS,
      account: field('01', accountNumber),
      amount: field('54', String(amount)),
      labels: field('62', field('08', `CS${description}`)),
      merchantName: '',
      merchantCity: '',
      category: '',
    });
    const link: Link = {
      ...{ orderCode: Number(orderCode), amount: Number(amount), description: `CS${description}`, status: 'PENDING' },
      ...{ expiredAt: Number(expiredAt), qrCode, paid: [] },
    };
    this.links.set(link.orderCode, link);
    const data = this.change({
      ...{ bin: '970422', accountNumber, accountName: 'NGUYEN VAN A', amount, description: link.description },
      ...{ orderCode, currency: 'VND', paymentLinkId: linkOf(link.orderCode), status: 'PENDING', expiredAt },
      ...{ checkoutUrl: 'https://pay.example/x', qrCode },
    });
    return this.#signed(data);
  }

  #linkData({ orderCode, amount, status, paid }: Link): Json {
    const amountPaid = paid.reduce((sum, it) => sum + it.amount, 0);
    const transactions = paid.map((it) => ({
      ...{ accountNumber: it.bankAccount, amount: it.amount, description: it.text, reference: it.reference },
      transactionDateTime: `${bankTime(it.atMs).replace(' ', 'T')}+07:00`,
      virtualAccountNumber: it.virtualAccount,
    }));
    return {
      ...{ id: linkOf(orderCode), orderCode, amount, amountPaid, amountRemaining: Math.max(0, amount - amountPaid) },
      ...{ status, createdAt: '2026-01-01T00:00:00+07:00', transactions, canceledAt: null },
    };
  }

  #signed(data: Json): Strange {
    const text = Object.keys(data)
      .sort()
      .map((key) => `${key}=${textOf(data[key])}`);
    const signature = createHmac('sha256', this.key).update(text.join('&')).digest('hex');
    return { status: 200, body: { code: '00', desc: 'success', data, signature } };
  }
}

/** The virtual account of an order. */
export const virtualOf = (orderCode: number) => `VQRQ${String(orderCode).slice(-10).padStart(10, '0')}`;

function textOf(value: unknown): string {
  if (!Array.isArray(value)) return String(value ?? '');
  const sorted = (it: Json) => Object.fromEntries(Object.entries(it).sort(([a], [b]) => (a < b ? -1 : 1)));
  return JSON.stringify(value.map((it: Json) => sorted(it)));
}

/** payOS over HTTP, until the test ends. */
export async function payosDouble(): Promise<PayosDouble> {
  const payos = new PayosDouble();
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const answer = payos.answer(
      request.method ?? '',
      request.url ?? '',
      request.headers,
      text === '' ? {} : JSON.parse(text),
    );
    if (answer === undefined) return;
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(JSON.stringify(answer.body ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  payos.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return payos;
}
