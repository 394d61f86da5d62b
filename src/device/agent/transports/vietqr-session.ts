import { findBank } from '../../../protocol/banks.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import type { BoxNotice } from '../../../protocol/dialect.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import { type LinkedAccount, linkedAccount, MESSAGE_VERSION, type UpMessage } from '../../../protocol/messages.ts';
import { decodeVietQr } from '../../../protocol/vietqr.ts';
import { staticQrProblem } from '../../box/push.ts';
import type { LinkPictures } from '../../box/state.ts';
import type { InboundMessage, TransportIo } from '../contract.ts';
import type { VietqrMemory } from './vietqr-memory.ts';

type NoticeOf<T extends BoxNotice['notificationType']> = Extract<BoxNotice, { notificationType: T }>;

export interface SessionDeps extends TransportIo {
  memory: VietqrMemory;
  /** Makes the ids that the dialect lacks. */
  newId(): string;
  qrLifetimeMs: number;
}

/**
 * Plays the gateway's part of a session in the box, for a service without sessions (PROTOCOL.md, clause DIA). Ids and
 * lifetimes are the box's own. The box's reports go nowhere, because the dialect has no messages for them.
 */
export class VietqrSession {
  readonly #deps: SessionDeps;
  #helloAtMs: number;

  constructor(deps: SessionDeps) {
    this.#deps = deps;
    this.#helloAtMs = deps.clock.monotonicMs();
  }

  /** Returns the answer to a message of the box; undefined if it has none. */
  async answer(message: UpMessage): Promise<InboundMessage | undefined> {
    switch (message.type) {
      case 'hello': {
        const { clock, box } = this.#deps;
        this.#helloAtMs = clock.monotonicMs();
        const isOwnTime = !(await box.boot.isTimeRight());
        const { account, pictures } = this.#link();
        // The service cannot say whether the QR on the screen still counts. The QR has its own end.
        const openPushIds = message.shownPushId === null ? [] : [message.shownPushId];
        return { ...this.#head(), type: 'welcome', link: account, openPushIds, pictures, isOwnTime };
      }
      case 'alive':
        this.#deps.heard(message.id);
        return undefined;
      case 'ended':
      case 'paid':
        return { ...this.#head(), type: 'ack', reportIds: [message.id] };
      default:
        return undefined;
    }
  }

  /** Translates a message of the service for the box; undefined if the box does not need it. */
  async translate(notice: BoxNotice): Promise<InboundMessage | undefined> {
    switch (notice.notificationType) {
      case 'N16':
        return this.#linked(notice);
      case 'N17':
        return this.#show(notice);
      case 'N05':
        return this.#payment(notice);
      case 'N12':
        return this.#withdraw();
      case 'N00':
        return undefined;
    }
  }

  /** Returns the current account or certificate for a box that is registered. */
  linkMessage(): InboundMessage {
    return { type: 'linked', sessionId: this.#deps.sessionId, ...this.#link() };
  }

  #link(): { account: LinkedAccount | null; pictures: LinkPictures } {
    const { linked, enrolled } = this.#deps.memory;
    if (linked !== undefined) return { account: linked.account, pictures: { staticQr: linked.staticQr } };
    return { account: null, pictures: { certificate: enrolled?.qrCertificate } };
  }

  async #linked(notice: NoticeOf<'N16'>): Promise<InboundMessage | undefined> {
    const { log, memory } = this.#deps;
    const decoded = decodeVietQr(notice.qrCode);
    const bankCode = [notice.bankCode, notice.bankShortName].find((it) => findBank(it) !== undefined);
    const account = linkedAccount.safeParse({
      bankAccount: notice.bankAccount,
      bankCode: bankCode ?? (decoded.ok ? decoded.value.bin : ''),
      userBankName: notice.userBankName.slice(0, LIMITS.userBankNameMax).toWellFormed(),
    });
    if (!account.success) {
      log.warn('message-refused', { code: 'MESSAGE_ILLEGAL', reason: `N16: ${issuesOf(account.error)}` });
      return undefined;
    }
    const reason = staticQrProblem(notice.qrCode, account.data);
    if (reason !== undefined) log.warn('static-qr-refused', { code: 'QR_MISMATCH', reason });
    await memory.link({ account: account.data, staticQr: notice.qrCode });
    log.info('account-linked', { account: account.data.bankAccount });
    return this.linkMessage();
  }

  #show({ amount, qrCode }: NoticeOf<'N17'>): InboundMessage | undefined {
    const { clock, log, memory, box, qrLifetimeMs, newId } = this.#deps;
    if (box.showing()?.qrCode === qrCode) return undefined;
    if (memory.linked === undefined) {
      log.warn('push-rejected', { code: 'E36', reason: 'no account is linked to this box: it has had no N16' });
      return undefined;
    }
    const decoded = decodeVietQr(qrCode);
    return {
      ...this.#head(),
      type: 'show',
      pushId: newId(),
      orderId: '',
      amount,
      content: (decoded.ok ? decoded.value.purpose : undefined) ?? '',
      ...memory.linked.account,
      qrCode,
      expiresAtMs: clock.wallMs() + qrLifetimeMs,
      expiresInMs: qrLifetimeMs,
      sessionMs: Math.floor(clock.monotonicMs() - this.#helloAtMs),
    };
  }

  /**
   * Translates a payment. It pays the QR on the screen if the amounts are equal, because the dialect names no order.
   */
  async #payment(notice: NoticeOf<'N05'>): Promise<InboundMessage> {
    const { memory, box, log } = this.#deps;
    const { transactionId, paidAtMs, repeated } = await memory.payment(notice);
    if (repeated) log.info('payment-repeated', { transactionId });
    const { amount, message } = notice;
    const showing = box.showing();
    const { bankAccount = '', bankCode = '' } = memory.linked?.account ?? {};
    const pushId = showing?.amount === amount ? showing.pushId : null;
    const content = shortened(message, LIMITS.pushContentMax);
    const paid = { transactionId, pushId, orderId: '', amount, content, bankAccount, bankCode, paidAtMs, repeated };
    return { ...this.#head(), type: 'payment', ...paid, late: false, due: null };
  }

  /**
   * Returns a withdrawal of the order on the screen. The service names an order that the box does not know, so it can
   * only mean that one.
   */
  #withdraw(): InboundMessage | undefined {
    const showing = this.#deps.box.showing();
    if (showing === undefined) return undefined;
    return { ...this.#head(), type: 'withdraw', pushId: showing.pushId, why: 'cancelled' };
  }

  #head() {
    const { clock, newId, sessionId } = this.#deps;
    return { v: MESSAGE_VERSION, id: newId(), sentAtMs: Math.floor(clock.wallMs()), sessionId } as const;
  }
}

function shortened(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}
