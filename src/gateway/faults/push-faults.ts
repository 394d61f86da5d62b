import { reasonOf } from '../../lib/errors.ts';
import type { FaultName } from '../../protocol/faults.ts';
import { LIMITS } from '../../protocol/fields.ts';
import type { DownMessage, DownOf } from '../../protocol/messages.ts';
import { decodeVietQr, encodeVietQr, type VietQr } from '../../protocol/vietqr.ts';
import type { BoxConnection } from '../boxes/connection.ts';
import { refuse } from '../common/result.ts';
import type { World } from '../common/world.ts';
import type { PushHub } from '../partner/partner-pushes.ts';
import type { DelayedOccurrence } from './active-faults.ts';
import type { Faults } from './faults.ts';
import { type LatePayments, OTHER_CONTENT, otherAmount } from './payment-faults.ts';

const QR_CHANGES: readonly (readonly [fault: FaultName, change: (qr: VietQr) => VietQr])[] = [
  ['qr-amount', (qr) => ({ ...qr, amount: otherAmount(qr.amount ?? 0) })],
  // The other fields of the QR are removed, because there would be no room for them.
  [
    'qr-content',
    ({ bill: _, reference: _reference, terminal: _terminal, ...qr }) => ({ ...qr, purpose: OTHER_CONTENT }),
  ],
  // This makes another account, as a typing error would.
  ['qr-account', (qr) => ({ ...qr, account: `${qr.account.slice(0, -1)}${qr.account.endsWith('0') ? '1' : '0'}` })],
];

/** A swapped push waits for the next message for this many deadlines. Its withdrawal comes earlier. */
const SWAPPED_DEADLINES = 2;

/** Pays the order of a push. */
export type PayPush = (pushId: string) => Promise<unknown>;

/** The faults of pushes, and the parts that they use. */
export interface PushEdge {
  faults: Faults;
  latePayments: LatePayments;
  payPush: PayPush;
}

/** Adds the fault of an offline box to pushes (PROTOCOL.md, clause FLT-6). */
export function withOfflineFault(hub: PushHub, faults: Faults): PushHub {
  return {
    reachable: (terminalCode) => hub.reachable(terminalCode),
    onlineCodes: (...args) => hub.onlineCodes(...args),
    withdrawPush: (...args) => hub.withdrawPush(...args),
    push: async (push, newOrder, show, seen) => {
      const box = push.terminal_code;
      if (faults.take('box-offline', { boxes: [box], content: show.content })) {
        return refuse('BOX_OFFLINE', 'the fault box-offline');
      }
      return hub.push(push, newOrder, show, seen);
    },
  };
}

/** Sends messages to a box with the faults of pushes (PROTOCOL.md, clauses FLT-6 and FLT-7). */
export class FaultyConnection implements BoxConnection {
  readonly transport: BoxConnection['transport'];
  readonly #terminalCode: string;
  readonly #connection: BoxConnection;
  readonly #world: World;
  readonly #faults: Faults;
  readonly #latePayments: LatePayments;
  readonly #payPush: PayPush;
  /** Sends the swapped push that waits for the next message. */
  #sendOvertaken: (() => void) | undefined;

  constructor(
    terminalCode: string,
    connection: BoxConnection,
    world: World,
    { faults, latePayments, payPush }: PushEdge,
  ) {
    this.transport = connection.transport;
    this.#terminalCode = terminalCode;
    this.#connection = connection;
    this.#world = world;
    this.#faults = faults;
    this.#latePayments = latePayments;
    this.#payPush = payPush;
  }

  end(): void {
    this.#connection.end();
  }

  send(message: DownMessage): void {
    const late = message.type === 'payment' ? this.#lateBy(message) : undefined;
    if (message.type === 'show') this.#show(message);
    else if (late === undefined) this.#send(message);
    else void late.then(() => this.#send(message));
  }

  /**
   * Settles when a late payment may reach the box. Undefined for any other one. A gateway alone delays the payment
   * itself; of several, each finds it in the store.
   */
  #lateBy(payment: DownOf<'payment'>): Promise<unknown> | undefined {
    return this.#world.place.others().length === 0 ? undefined : this.#latePayments.until(payment);
  }

  #send(message: DownMessage): void {
    this.#connection.send(message);
    if (message.type !== 'heard') this.#sendOvertaken?.();
  }

  #show(show: DownOf<'show'>): void {
    this.#faults.orderByContent(this.#terminalCode, show.content);
    if (this.#faults.take('paid-before', this.#subjectOf(show)) === undefined) {
      this.#showOnce(show);
      return;
    }
    void this.#payPush(show.pushId)
      .catch((error: unknown) => this.#world.log.error('payment-failed', { reason: reasonOf(error) }))
      .then(() => this.#showOnce(show));
  }

  #showOnce(asked: DownOf<'show'>): void {
    const { confirmTimeoutMs } = this.#world.config;
    const faults = this.#faults;
    const subject = this.#subjectOf(asked);
    const show = { ...asked, qrCode: this.#qrCodeOf(asked) };
    if (faults.take('push-lost', subject)) return;
    const swapped = this.#sendOvertaken === undefined ? faults.delay('push-swapped', subject) : undefined;
    if (swapped !== undefined) {
      this.#sendAfterNext(show, swapped);
      return;
    }
    const isTwice = faults.take('push-twice', subject) !== undefined;
    const sendAll = () => {
      this.#send(show);
      if (isTwice) this.#send({ ...show, id: this.#world.random.uuid() });
    };
    const late = faults.delay('push-late', subject);
    const slow = faults.delay('box-slow', subject);
    if (late === undefined && slow === undefined) {
      sendAll();
      return;
    }
    const lateMs = late === undefined ? 0 : confirmTimeoutMs + (late.seconds ?? 0) * 1000;
    const slowMs = (slow?.seconds ?? 0) * 1000;
    void Promise.all([late?.delayed(lateMs), slow?.delayed(lateMs + slowMs)]).then((goesOn) => {
      if (!goesOn.includes(false)) sendAll();
    });
  }

  /** Delays this push until the next message was sent, or until the delay ends. */
  #sendAfterNext(show: DownOf<'show'>, { delayed }: DelayedOccurrence): void {
    const sent = new AbortController();
    const send = () => {
      this.#sendOvertaken = undefined;
      sent.abort();
      this.#connection.send(show);
    };
    this.#sendOvertaken = send;
    void delayed(SWAPPED_DEADLINES * this.#world.config.confirmTimeoutMs, sent.signal).then((goesOn) => {
      if (goesOn && !sent.signal.aborted) send();
    });
  }

  /** Returns the QR of the push. An active fault may change it. */
  #qrCodeOf(show: DownOf<'show'>): string {
    const changes = QR_CHANGES.filter(([fault]) => this.#faults.take(fault, this.#subjectOf(show)));
    if (changes.length === 0) return show.qrCode;
    const decoded = decodeVietQr(show.qrCode);
    if (!decoded.ok) return show.qrCode;
    const { purpose, ...qr } = decoded.value;
    const short = purpose === undefined ? qr : { ...qr, purpose: purpose.slice(0, LIMITS.contentMax) };
    return encodeVietQr(changes.reduce((changed, [, change]) => change(changed), short));
  }

  #subjectOf({ content }: DownOf<'show'>) {
    return { boxes: [this.#terminalCode], content };
  }
}
