import { createHash } from 'node:crypto';
import { DEMO } from '../benchmarks/fixture.ts';

/** What came of a request: `unknown` when the connection broke, so that it may have happened or not. */
export type Outcome =
  | { kind: 'answered'; body: Record<string, unknown>; ok: boolean }
  /** Nobody listened: it did not happen. */
  | { kind: 'unsent' }
  | { kind: 'unknown'; reason: string };

export interface Order {
  orderId: string;
  amount: number;
  content: string;
}

const ANSWER_TIMEOUT_MS = 20_000;
/** Tokens are valid for 300 s. */
const TOKEN_AGE_MAX_MS = 120_000;

/** A partner's program that takes every broken connection for what it is: an unknown outcome. */
export class Shop {
  readonly #origin: string;
  #bearer = '';
  #tokenMs = Number.NEGATIVE_INFINITY;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Fetches a token where the last one is old. Throws when the gateway does not give one. */
  async login(): Promise<void> {
    if (performance.now() - this.#tokenMs < TOKEN_AGE_MAX_MS) return;
    const { username, password } = DEMO.partner;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    const outcome = await this.#post('/vqr/api/token_generate', {}, authorization);
    if (outcome.kind !== 'answered' || !outcome.ok) throw new Error(`no token: ${JSON.stringify(outcome)}`);
    this.#bearer = `Bearer ${String(outcome.body.access_token)}`;
    this.#tokenMs = performance.now();
  }

  generate(order: Order): Promise<Outcome> {
    return this.#post('/vqr/api/qr/generate-customer', { ...DEMO.account, ...order, transType: 'C', qrType: 0 });
  }

  push({ orderId, amount, content }: Order, qrCode: string): Promise<Outcome> {
    const { bankAccount, bankCode } = DEMO.account;
    const { terminalCode, serialNumber } = DEMO.box;
    const covered = `${DEMO.partner.password}${bankAccount}${amount}${bankCode}`;
    const checkSum = createHash('md5').update(covered).digest('hex');
    const request = { bankAccount, bankCode, amount: `${amount}`, content, qrCode, orderId, checkSum };
    return this.#post('/vqr/api/tid/send-qr', { ...request, terminalCode, serialNumber });
  }

  pay({ amount, content }: Pick<Order, 'amount' | 'content'>): Promise<Outcome> {
    const { bankAccount } = DEMO.account;
    return this.#post('/vqr/bank/api/test/transaction-callback', { bankAccount, content, amount, transType: 'C' });
  }

  cancel({ orderId }: Order): Promise<Outcome> {
    // The gateway's own routes refuse the bearer of a partner.
    return post(`${this.#origin}/_mock/orders/${orderId}/cancel`, {});
  }

  #post(path: string, body: object, authorization = this.#bearer): Promise<Outcome> {
    return post(`${this.#origin}${path}`, body, authorization);
  }
}

/** Posts JSON; never throws. */
export async function post(url: string, body: object, authorization = ''): Promise<Outcome> {
  try {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    });
    const text = await response.text();
    return {
      kind: 'answered',
      ok: response.ok,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
    };
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    if (cause instanceof Error && 'code' in cause && cause.code === 'ECONNREFUSED') return { kind: 'unsent' };
    return { kind: 'unknown', reason: String(cause) };
  }
}
