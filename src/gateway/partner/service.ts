import type { CheckedOrder, GenerateResponse } from '../../protocol/http-api.ts';
import { isOrderCode, makeOrderCode, withFreeCode } from '../../protocol/order-code.ts';
import type { Partner } from '../common/directory.ts';
import type { Metrics } from '../common/metrics.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { makePublicCode } from '../money/content.ts';
import { contentPaid } from '../money/matching.ts';
import type { MadeForOrder, QrMakers } from '../money/qr-makers.ts';
import type { ReceivePayment } from '../money/receive-payment.ts';
import type { NewOrder, PaymentDetails } from '../store/schema/tables.ts';
import type { CallNotes } from './call-notes.ts';
import { type CancelledOrder, cancelOrder, cancelQr } from './cancel-order.ts';
import { checkedOrders, decideCheckOrder } from './check-order.ts';
import { type Generated, generate, isForMaker } from './generate.ts';
import { warnOfSameOrder } from './order-warnings.ts';
import type { CallMode, PartnerCalls } from './partner-calls.ts';
import { PartnerPushes, type PushHub } from './partner-pushes.ts';
import { decideSendQr } from './send-qr.ts';
import { decideTestCallback } from './test-callback.ts';

/** Handles the calls of partners and the actions of admins in the console. A refused call changes nothing. */
export class Service implements PartnerCalls {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #hub: PushHub;
  readonly #makers: QrMakers;
  readonly #pay: ReceivePayment;
  readonly #metrics: Metrics;
  readonly #pushes: PartnerPushes;

  constructor(
    world: World,
    stored: Stored,
    hub: PushHub,
    { makers, pay, metrics }: { makers: QrMakers; pay: ReceivePayment; metrics: Metrics },
  ) {
    this.#world = world;
    this.#stored = stored;
    this.#hub = hub;
    this.#pushes = new PartnerPushes(world, stored, hub);
    this.#makers = makers;
    this.#pay = pay;
    this.#metrics = metrics;
  }

  async generate(
    partner: Partner,
    json: unknown,
    call: CallMode & { origin: string },
  ): Promise<Result<GenerateResponse>> {
    return withFreeCode(() => this.#generateOnce(partner, json, call));
  }

  /**
   * Generates once. Returns undefined, and stores nothing, if the code belongs to another order or does not fit the
   * content.
   */
  async #generateOnce(
    partner: Partner,
    json: unknown,
    { origin, notes, isVerbatim = false }: CallMode & { origin: string },
  ): Promise<Result<GenerateResponse> | undefined> {
    const { directory, store } = this.#stored;
    const { clock, random, changes } = this.#world;
    const makeCode = async (bankAccount: string, isOrder: boolean) =>
      isVerbatim ? undefined : this.#makeCode(bankAccount, isOrder);
    const generated = await generate(json, { directory, notes, makeCode });
    if (generated?.ok !== true) return generated;
    const made = isVerbatim ? undefined : await this.#madeBySource(partner, generated.value);
    if (made?.ok === false) return made;
    const { request, bank, amount, transType } = generated.value;
    const { content, code, qrCode } = made?.value ?? generated.value;
    const id = random.uuid();
    const ref = Buffer.from(random.uuid().replaceAll('-', ''), 'hex').toString('base64url');
    const names = {
      terminalCode: request.terminalCode ?? '',
      subTerminalCode: request.subTerminalCode ?? '',
      serviceCode: request.serviceCode ?? '',
      orderId: request.orderId ?? '',
    };
    const nowMs = clock.wallMs();
    if (amount === undefined) {
      await store.qrCodes.add(ref, qrCode, nowMs);
    } else {
      const order: NewOrder = {
        id,
        partner: partner.username,
        order_id: names.orderId,
        bank_account: request.bankAccount,
        bank_code: request.bankCode,
        user_bank_name: request.userBankName,
        amount,
        content,
        trans_type: transType,
        qr_code: qrCode,
        terminal_code: names.terminalCode,
        sub_terminal_code: names.subTerminalCode,
        service_code: names.serviceCode,
        sign: request.sign ?? '',
        url_link: request.urlLink ?? '',
        created_at_ms: nowMs,
      };
      await warnOfSameOrder(store, order, notes);
      const own = code !== undefined && isOrderCode(code) ? code : undefined;
      const sides = { qrRef: ref, code: own, request: made?.value.request };
      if (!(await store.orders.add(order, sides))) return undefined;
      changes.publish('orders');
    }
    return accept({
      bankCode: request.bankCode,
      bankName: bank.name,
      bankAccount: request.bankAccount,
      userBankName: request.userBankName,
      amount: amount === undefined ? '' : String(amount),
      content,
      qrCode,
      imgId: random.uuid(),
      existing: (await directory.account(request.bankAccount)) === undefined ? 0 : 1,
      transactionId: id,
      transactionRefId: ref,
      qrLink: `${origin}/qr/${ref}`,
      ...names,
      additionalData: request.additionalData ?? [],
    });
  }

  /** Returns a QR that a source made for this order, or undefined if no source makes the QRs of the account. */
  async #madeBySource(partner: Partner, generated: Generated): Promise<Result<MadeForOrder> | undefined> {
    const { bankAccount } = generated.request;
    if (!isForMaker(generated) || !this.#makers.has(bankAccount)) return undefined;
    const account = await this.#stored.directory.account(bankAccount);
    if (account?.partner !== partner.username || account.bank.bin !== generated.bank.bin) return undefined;
    return this.#makers.make(account, generated.amount);
  }

  async sendQr(partner: Partner, json: unknown, call: CallMode): Promise<Result<undefined>> {
    const { clock } = this.#world;
    const { directory, store } = this.#stored;
    const begunMs = clock.monotonicMs();
    const madeFor = async (bankAccount: string, qrCode: string) =>
      this.#makers.has(bankAccount) ? store.paymentRequests.ofQr(bankAccount, qrCode) : undefined;
    const decided = await decideSendQr(json, partner, { directory, madeFor, nowMs: clock.wallMs() });
    const result = !decided.ok
      ? decided
      : !(await this.#hub.reachable(decided.value.box.terminalCode))
        ? refuse('BOX_OFFLINE', 'the box is not connected')
        : decided.value.box.disabled
          ? refuse('BOX_OFFLINE', 'the box is disabled')
          : await this.#pushes.push(partner, decided.value, call);
    this.#metrics.pushed(result.ok ? 'SUCCESS' : result.code, (clock.monotonicMs() - begunMs) / 1000);
    return result;
  }

  async testCallback(partner: Partner, json: unknown, notes: CallNotes): Promise<Result<string>> {
    const { config } = this.#world;
    const { directory } = this.#stored;
    const { sandbox, contentPrefix } = config;
    const decided = await decideTestCallback(json, partner, { directory, sandbox, notes, contentPrefix });
    if (!decided.ok) return decided;
    const { account, content, amount, transType } = decided.value;
    const money: PaymentDetails = {
      partner: partner.username,
      bank_account: account.bankAccount,
      content,
      amount,
      trans_type: transType,
    };
    const { search } = this.#stored.store;
    const pays = { ...money, content: await contentPaid(search, money) };
    if (!(await search.hasOrder(pays, this.#world.clock.wallMs()))) {
      notes.warn('content: no order of this account has it with this amount, so the callback has no orderId');
    }
    return accept(await this.#pay({ money, bankCode: account.bankCode, pays }));
  }

  async checkOrder(partner: Partner, json: unknown, name = partner.username): Promise<Result<CheckedOrder[]>> {
    const { directory, store } = this.#stored;
    const decided = await decideCheckOrder(json, { partner, name, directory });
    if (!decided.ok) return decided;
    const { by, value, bankAccount } = decided.value;
    const account = { partner: partner.username, bank_account: bankAccount };
    const { orders, payments } =
      by === 'orderId' ? await store.search.byOrderId(account, value) : await store.search.byReference(account, value);
    const found = checkedOrders(orders, payments);
    return found.length === 0 ? refuse('E96', `value: expected a known ${by} of this account`) : accept(found);
  }

  cancelQr(partner: Partner, json: unknown): Promise<Result<undefined>> {
    return cancelQr(partner, json, this.#world, this.#stored, this.#hub);
  }

  /** Pays one order as a test callback does. A partner without a callback URL gets no callback. */
  async payOrder(idOrOrderId: string): Promise<Result<string>> {
    if (!this.#world.config.sandbox) return refuse('E75', 'not a sandbox');
    const order = await this.#stored.store.orders.find(idOrOrderId);
    if (order === undefined) return refuse('E96', 'no such order');
    return accept(await this.#pay({ money: order, bankCode: order.bank_code, pays: { orderRef: order.id } }));
  }

  /** Cancels an unpaid order and withdraws it from its box. */
  cancelOrder(idOrOrderId: string): Promise<Result<CancelledOrder>> {
    return cancelOrder(idOrOrderId, this.#world, this.#stored, this.#hub);
  }

  async #makeCode(bankAccount: string, isOrder: boolean): Promise<string | undefined> {
    const { config, random } = this.#world;
    const contentPrefix = (await this.#stored.directory.account(bankAccount))?.contentPrefix ?? config.contentPrefix;
    if (contentPrefix === 'vietqr') return makePublicCode(random);
    return contentPrefix === 'code' && isOrder ? makeOrderCode(random) : undefined;
  }
}
