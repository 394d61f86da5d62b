import { z } from 'zod';
import { PayboxError } from '../lib/errors.ts';
import { statusResponse } from '../protocol/http-api.ts';
import { ask, jsonOf } from './http.ts';
import { Partner } from './partner.ts';

/** Rows that the gateway tells of at once. */
const ROWS = 500;

const time = z.string().nullable();
const orders = z.array(z.looseObject({ id: z.string(), orderId: z.string(), status: z.string() }));
const payments = z.array(
  z.looseObject({
    transactionId: z.string(),
    boxes: z.array(z.looseObject({ terminalCode: z.string(), reportedAt: time })),
  }),
);
const callbacks = z.array(
  z.looseObject({
    id: z.string(),
    transactionId: z.string(),
    status: z.string(),
    attempts: z.array(
      z.looseObject({
        request: z.looseObject({ body: z.string() }),
        response: z.looseObject({ status: z.int(), body: z.string().nullable() }).nullable(),
        error: z.string().nullable(),
      }),
    ),
  }),
);

export type OrderView = z.output<typeof orders>[number];
export type PaymentView = z.output<typeof payments>[number];
export type CallbackView = z.output<typeof callbacks>[number];

/** Whose money a scenario asks for. */
export interface Account {
  bankAccount: string;
  bankCode: string;
  userBankName: string;
}

export interface GatewayAccess {
  /** As `http://127.0.0.1:8800`. */
  origin: string;
  /** `{base_url}` of the service. */
  baseUrl: string;
  partner: { username: string; password: string };
  account: Account;
  /** For a gateway on another machine. */
  adminToken?: string | undefined;
}

/** A gateway as its partner and its owner speak to it: the service, and what the mock adds. */
export class GatewayAt {
  readonly account: Account;
  readonly partner: Partner;
  readonly access: GatewayAccess;

  constructor(access: GatewayAccess) {
    this.access = access;
    this.account = access.account;
    this.partner = new Partner({ baseUrl: access.baseUrl, ...access.partner });
  }

  async orders(): Promise<OrderView[]> {
    return orders.parse(await this.#get(`orders?limit=${ROWS}`));
  }

  async payments(): Promise<PaymentView[]> {
    return payments.parse(await this.#get(`payments?limit=${ROWS}`));
  }

  async callbacks(): Promise<CallbackView[]> {
    return callbacks.parse(await this.#get(`callbacks?limit=${ROWS}`));
  }

  /** `SUCCESS`, or the code of the refusal. */
  cancel(orderId: string): Promise<string> {
    return this.#post(`orders/${encodeURIComponent(orderId)}/cancel`, {});
  }

  /** `SUCCESS`, or the code of the refusal. */
  enrol(terminalCode: string, code: string): Promise<string> {
    return this.#post(`enrolments/${encodeURIComponent(terminalCode)}/accept`, { code });
  }

  /** Whether a box asks for a secret. */
  async asks(terminalCode: string): Promise<boolean> {
    const asking = z.array(z.looseObject({ terminalCode: z.string() })).parse(await this.#get('enrolments'));
    return asking.some((it) => it.terminalCode === terminalCode);
  }

  async #get(path: string): Promise<unknown> {
    const url = `${this.access.origin}/_mock/${path}`;
    return jsonOf(url, await ask(url, { headers: this.#headers() }));
  }

  async #post(path: string, json: object): Promise<string> {
    const url = `${this.access.origin}/_mock/${path}`;
    const { status, body } = await ask(url, { method: 'POST', headers: this.#headers(), json });
    const text = Buffer.from(body).toString('utf8');
    const parsed = statusResponse.safeParse(text.startsWith('{') ? JSON.parse(text) : undefined);
    if (parsed.success) return parsed.data.status === 'SUCCESS' ? 'SUCCESS' : parsed.data.message;
    throw new PayboxError('REFUSED', `${url} answered ${status}: ${text.slice(0, 300)}`, { severity: 'fatal' });
  }

  #headers(): Record<string, string> {
    const { adminToken } = this.access;
    return adminToken === undefined ? {} : { authorization: `Bearer ${adminToken}` };
  }
}
