import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { eventually } from '../support/net.ts';
import type { ReceivedCallback } from '../support/partner-server.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';

/** The demo identities of the contract, spelled out: what a partner's program would have in its own configuration. */
export const PARTNER = { username: 'demo', password: 'demo-secret' };
export const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

export interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/** Calls the service with nothing but fetch, as the specification writes it. */
export class Shop {
  readonly #baseUrl: string;
  #bearer = '';

  constructor(baseUrl: string) {
    this.#baseUrl = baseUrl;
  }

  async post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const response = await fetch(`${this.#baseUrl}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: this.#bearer, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  async login({ username, password } = PARTNER): Promise<void> {
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const { status, body } = await this.post('/api/token_generate', {}, { authorization: `Basic ${basic}` });
    expect(status).toBe(200);
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 300 });
    this.#bearer = `Bearer ${String(body.access_token)}`;
  }

  generate(order: { amount: number; content: string; orderId: string }): Promise<Answer> {
    return this.post('/api/qr/generate-customer', { ...ACCOUNT, ...order, transType: 'C', qrType: 0 });
  }

  sendQr(qr: Record<string, unknown>, change: Record<string, unknown> = {}): Promise<Answer> {
    const { bankAccount, bankCode } = ACCOUNT;
    const amount = String(qr.amount);
    const checkSum = createHash('md5').update(`${PARTNER.password}${bankAccount}${amount}${bankCode}`).digest('hex');
    const { content, qrCode, orderId } = qr;
    const box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
    return this.post('/api/tid/send-qr', {
      bankAccount,
      bankCode,
      amount,
      content,
      qrCode,
      orderId,
      ...box,
      checkSum,
      ...change,
    });
  }

  pay(payment: { amount: number; content: string }, bankAccount = ACCOUNT.bankAccount): Promise<Answer> {
    return this.post('/bank/api/test/transaction-callback', { bankAccount, ...payment, transType: 'C' });
  }
}

export async function getJson<T = Record<string, unknown>>(
  url: string,
  headers: Record<string, string> = {},
): Promise<T> {
  return (await (await fetch(url, { headers })).json()) as T;
}

/** The whole loop once: push, read the QR off the box's picture, pay, see it paid everywhere. */
export async function walkTheLoop(
  at: { baseUrl: string; boxUrl: string; consoleUrl: string },
  received: ReceivedCallback[],
): Promise<void> {
  const order = { amount: 50_000, content: 'DH001', orderId: 'DH001' };
  const shop = new Shop(at.baseUrl);
  await shop.login();
  const generated = await shop.generate(order);
  expect(generated).toMatchObject({ status: 200, body: { amount: '50000', content: 'DH001', bankCode: 'MB' } });

  expect(await shop.sendQr(generated.body)).toEqual({ status: 200, body: { status: 'SUCCESS', message: '' } });
  const { qrCode } = generated.body;
  expect(await getJson(`${at.boxUrl}/status`)).toMatchObject({
    state: 'showing',
    online: true,
    order: { ...order, qrCode },
  });
  const { display } = await getJson<{ display: { qr: Record<string, unknown> } }>(`${at.boxUrl}/status`);
  expect(display.qr).toMatchObject({ modules: 33, quietModules: 4, polarity: 'dark on light' });
  const picture = new Uint8Array(await (await fetch(`${at.boxUrl}/screen.png`)).arrayBuffer());
  expect(decodeQrTwice(picture)).toEqual([qrCode, qrCode]);
  expect(await (await fetch(`${at.boxUrl}/screen.txt`)).text()).toContain('50.000 ₫');

  const paid = await shop.pay({ amount: order.amount, content: order.content });
  expect(paid).toMatchObject({ status: 200, body: { status: 'SUCCESS' } });
  const transactionId = String(paid.body.message);
  const status = await eventually('paid on the box', async () => {
    const now = await getJson(`${at.boxUrl}/status`);
    return now.state === 'paid' ? now : undefined;
  });
  expect(status).toMatchObject({ order: null, lastPayment: { transactionId, orderId: 'DH001', amount: 50_000 } });
  await eventually('the callback', () => received.length > 0);
  expect(received).toMatchObject([
    {
      path: '/shop/paid',
      authorization: undefined,
      body: { transactionid: transactionId, amount: 50_000, content: 'DH001', orderId: 'DH001', transType: 'C' },
    },
  ]);
  await eventually('the box has reported the payment to the gateway', async () => {
    const payments = await getJson<unknown>(`${at.consoleUrl}_mock/payments`);
    const text = JSON.stringify(payments);
    return text.includes(transactionId) && /"reportedAt":"?\d/.test(text);
  });
  expect(JSON.stringify(await getJson(`${at.consoleUrl}_mock/orders`))).toMatch(/"status":"paid"/);
}
