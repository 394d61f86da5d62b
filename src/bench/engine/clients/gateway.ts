import { z } from 'zod';
import { PayboxError } from '../../../lib/errors.ts';
import { authorizationHeader, parseJson } from '../../../lib/http-client.ts';
import type { ActiveFaultView, FaultOrder } from '../../../protocol/faults.ts';
import { statusResponse } from '../../../protocol/http-api.ts';
import { activeFaultsIn, endedFault, FAULTS, jsonOf, orderedFault, request } from './http.ts';
import { PartnerClient } from './partner.ts';

/** The first page is small, because it is nearly always enough. Later ones are larger, up to the gateway's maximum. */
const FIRST_ROWS = 4;
/** The rows of a first page that somebody reads as a list. */
export const LISTED_ROWS = 20;
const GROWTH = 8;
const ROWS_MAX = 500;
/** The client reads this many pages of one list at most, and ignores later ones. */
const PAGES_MAX = 200;

const time = z.string().nullable();
/** The answer of `/_mock/about`. A gateway may hide some of it. */
export const gatewayAbout = z.looseObject({
  baseUrl: z.string(),
  partner: z.looseObject({ username: z.string(), password: z.string().nullable() }).nullable(),
  account: z.looseObject({ bankAccount: z.string(), bankCode: z.string(), userBankName: z.string() }).nullable(),
});
const orders = z.array(z.looseObject({ id: z.string(), orderId: z.string(), status: z.string() }));
const payments = z.array(
  z.looseObject({
    transactionId: z.string(),
    content: z.string(),
    amount: z.int(),
    paidAt: z.iso.datetime(),
    boxes: z.array(z.looseObject({ terminalCode: z.string(), reportedAt: time, unconfirmed: z.string().nullish() })),
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

/** The bank account that a scenario requests payments for. */
export interface Account {
  bankAccount: string;
  bankCode: string;
  userBankName: string;
}

export interface GatewayAccess {
  /** The gateway's origin, for example `http://127.0.0.1:8800`. */
  origin: string;
  /** The `{base_url}` of the service. */
  baseUrl: string;
  partner: { username: string; password: string };
  account: Account;
  /** The admin token, which a gateway on another machine needs. */
  adminToken?: string | undefined;
}

/** Calls a gateway in two roles: partner (the service) and admin (the mock's own API). */
export class GatewayClient {
  readonly account: Account;
  readonly partner: PartnerClient;
  readonly access: GatewayAccess;

  constructor(access: GatewayAccess) {
    this.access = access;
    this.account = access.account;
    this.partner = new PartnerClient({ baseUrl: access.baseUrl, ...access.partner });
  }

  /** Yields pages of orders, the newest first. It requests a page only when the caller wants more rows. */
  orders(): AsyncGenerator<OrderView[], void> {
    return this.#pages('orders', orders, ({ id }) => id);
  }

  payments(): AsyncGenerator<PaymentView[], void> {
    return this.#pages('payments', payments, ({ transactionId }) => transactionId);
  }

  callbacks(firstRows = FIRST_ROWS): AsyncGenerator<CallbackView[], void> {
    return this.#pages('callbacks', callbacks, ({ id }) => id, firstRows);
  }

  /** Returns the active faults; undefined for a gateway that takes no fault orders. */
  async faults(): Promise<ActiveFaultView[] | undefined> {
    const url = this.#url(FAULTS);
    return activeFaultsIn(url, await request(url, { headers: this.#headers() }));
  }

  /** Orders a fault. Throws PayboxError when the gateway refuses. */
  async orderFault(order: FaultOrder): Promise<ActiveFaultView> {
    const url = this.#url(FAULTS);
    return orderedFault(url, await request(url, { method: 'POST', headers: this.#headers(), json: order }));
  }

  /** Ends a fault. A fault that is already over is no error. */
  async endFault(id: string): Promise<void> {
    const url = this.#url(`${FAULTS}/${encodeURIComponent(id)}`);
    endedFault(url, await request(url, { method: 'DELETE', headers: this.#headers() }));
  }

  /** Cancels an order. Returns `SUCCESS` or the refusal code. */
  cancel(orderId: string): Promise<string> {
    return this.#post(`orders/${encodeURIComponent(orderId)}/cancel`, {});
  }

  /** Admits a box by its enrolment code. Returns `SUCCESS` or the refusal code. */
  enrol(terminalCode: string, code: string): Promise<string> {
    return this.#post(`enrolments/${encodeURIComponent(terminalCode)}/accept`, { code });
  }

  /** Returns whether the box has an open enrolment request. */
  async asks(terminalCode: string): Promise<boolean> {
    const asking = z.array(z.looseObject({ terminalCode: z.string() })).parse(await this.#get('enrolments'));
    return asking.some((it) => it.terminalCode === terminalCode);
  }

  async *#pages<T>(
    list: string,
    schema: z.ZodType<T[]>,
    idOf: (row: T) => string,
    firstRows = FIRST_ROWS,
  ): AsyncGenerator<T[], void> {
    let before = '';
    for (let page = 0, limit = firstRows; page < PAGES_MAX; page += 1, limit = Math.min(limit * GROWTH, ROWS_MAX)) {
      const rows = schema.parse(await this.#get(`${list}?limit=${limit}${before}`));
      yield rows;
      const oldest = rows.at(-1);
      if (oldest === undefined || rows.length < limit) return;
      before = `&before=${encodeURIComponent(idOf(oldest))}`;
    }
  }

  #url(path: string): string {
    return `${this.access.origin}/_mock/${path}`;
  }

  async #get(path: string): Promise<unknown> {
    const url = this.#url(path);
    return jsonOf(url, await request(url, { headers: this.#headers() }));
  }

  async #post(path: string, json: object): Promise<string> {
    const url = this.#url(path);
    const { status, body } = await request(url, { method: 'POST', headers: this.#headers(), json });
    const text = body.toString('utf8');
    const parsed = statusResponse.safeParse(parseJson(body));
    if (parsed.success) return parsed.data.status === 'SUCCESS' ? 'SUCCESS' : parsed.data.message;
    throw new PayboxError('REFUSED', `${url} answered ${status}: ${text.slice(0, 300)}`, { severity: 'fatal' });
  }

  #headers(): Record<string, string> {
    return authorizationHeader(this.access.adminToken);
  }
}
