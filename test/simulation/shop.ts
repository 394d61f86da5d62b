import type { Result } from '../../src/gateway/common/result.ts';
import type { GatewayConfig } from '../../src/gateway/config/config.ts';
import { CallNotes } from '../../src/gateway/partner/call-notes.ts';
import { checkSum } from '../../src/protocol/checksum.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';
import type { World } from './world.ts';

const BINS: Record<string, string> = { MB: '970422', VCB: '970436' };

export interface KnownOrder {
  orderId: string;
  amount: number;
  content: string;
  bankAccount: string;
  bankCode: string;
  qrCode: string;
}

/** The partner's calls of the service, and what was answered to them. */
export class Shop {
  readonly #world: World;
  readonly #config: GatewayConfig;
  readonly orders: KnownOrder[] = [];
  /** Transaction ids that were answered SUCCESS, with what was paid. */
  readonly accepted = new Map<string, { amount: number; content: string }>();
  /** What was asked to be paid, whatever the answer: `content amount`. */
  readonly asked = new Map<string, number>();
  /** Calls that have not been answered. */
  pending = 0;

  constructor(world: World, config: GatewayConfig) {
    this.#world = world;
    this.#config = config;
  }

  newOrder(terminalCode: string): KnownOrder {
    const { chance } = this.#world;
    const box = this.#config.boxes.find((it) => it.terminalCode === terminalCode);
    const account = this.#config.accounts.find((it) => it.bankAccount === box?.account);
    if (account === undefined) throw new Error(`no account for ${terminalCode}`);
    const { bankAccount, bankCode } = account;
    const orderId = `DH${this.orders.length + 1}`;
    const amount = chance.whole(1, 20) * 1000;
    const qr = { bin: BINS[bankCode] ?? '', account: bankAccount, service: 'account', initiation: 'dynamic' } as const;
    const qrCode = encodeVietQr({ ...qr, amount, purpose: orderId });
    const order = { orderId, amount, content: orderId, bankAccount, bankCode, qrCode };
    this.orders.push(order);
    return order;
  }

  /** Asks for the QR first, as most partners do. */
  async generate(order: KnownOrder): Promise<void> {
    const { qrCode: _, ...asked } = order;
    await this.#call('generate', (service, partner) =>
      service.generate(
        partner,
        { ...asked, userBankName: 'A', qrType: 0, transType: 'C' },
        {
          origin: 'http://gateway',
          notes: new CallNotes(true),
        },
      ),
    );
  }

  async push(order: KnownOrder, terminalCode: string): Promise<void> {
    const { oracle, boxes, clock } = this.#world;
    const box = this.#config.boxes.find((it) => it.terminalCode === terminalCode);
    const begunMs = clock.monotonicMs();
    const request = { ...order, amount: String(order.amount), terminalCode, serialNumber: box?.serialNumber };
    const sum = checkSum('demo-secret', request);
    const verdict = await this.#call('push', (service, partner) =>
      service.sendQr(partner, { ...request, checkSum: sum }, { notes: new CallNotes(false) }),
    );
    if (verdict?.ok !== true) return;
    for (const device of boxes) oracle.check(device);
    // A push that is repeated is answered by the one before it, which a payment of another order may cover for a while.
    const seen = [...oracle.pushes.values()].some(
      (push) =>
        push.orderId === order.orderId &&
        push.terminalCode === terminalCode &&
        push.lastSeenAtMs > Number.NEGATIVE_INFINITY &&
        (push.lastSeenAtMs >= begunMs || (push.expiresAtMs > begunMs && push.withdrawnAtMs > begunMs)),
    );
    if (!seen) oracle.violations.push(`the push of ${order.orderId} succeeded, but ${terminalCode} does not show it`);
  }

  async pay({ amount, content, bankAccount }: Pick<KnownOrder, 'amount' | 'content' | 'bankAccount'>): Promise<void> {
    const key = `${content} ${amount}`;
    this.asked.set(key, (this.asked.get(key) ?? 0) + 1);
    const verdict = await this.#call('pay', (service, partner) =>
      service.testCallback(partner, { bankAccount, content, amount }, new CallNotes(true)),
    );
    if (verdict?.ok === true) this.accepted.set(verdict.value, { amount, content });
  }

  async payOrder({ orderId, amount, content }: KnownOrder): Promise<void> {
    const key = `${content} ${amount}`;
    this.asked.set(key, (this.asked.get(key) ?? 0) + 1);
    const verdict = await this.#call('pay by order', (service) => service.payOrder(orderId));
    if (verdict?.ok === true) this.accepted.set(verdict.value, { amount, content });
  }

  async cancel({ orderId }: KnownOrder): Promise<void> {
    await this.#call('cancel', (service) => service.cancelOrder(orderId));
  }

  /** Undefined when the gateway was not there, or died before it answered: whether it was done is not known then. */
  async #call<T>(
    what: string,
    work: (
      service: NonNullable<World['gateway']['service']>['service'],
      partner: GatewayConfig['partners'][number],
    ) => Promise<Result<T>>,
  ): Promise<Result<T> | undefined> {
    const { gateway, trace } = this.#world;
    const [partner] = this.#config.partners;
    const up = gateway.service;
    if (up === undefined || partner === undefined) {
      this.#world.count(`${what}: no gateway`);
      return undefined;
    }
    this.pending += 1;
    const answer = await Promise.race([work(up.service, partner), up.run.death]).catch(() => undefined);
    this.pending -= 1;
    const result = answer === undefined ? 'no answer' : answer.ok ? 'SUCCESS' : answer.code;
    trace('partner', what, result);
    this.#world.count(`${what}: ${result}`);
    return answer;
  }
}
