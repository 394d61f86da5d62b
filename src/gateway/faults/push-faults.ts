import type { Random } from '../../lib/random.ts';
import type { FaultName } from '../../protocol/faults.ts';
import type { DownMessage, DownOf } from '../../protocol/messages.ts';
import { decodeVietQr, encodeVietQr, type VietQr } from '../../protocol/vietqr.ts';
import type { BoxConnection } from '../boxes/connection.ts';
import type { DelayedOccurrence } from './active-faults.ts';
import type { Faults } from './faults.ts';
import { otherAccount, otherAmount, withOtherContent } from './other-money.ts';

const QR_CHANGES: readonly (readonly [fault: FaultName, change: (qr: VietQr) => VietQr])[] = [
  ['qr-amount', (qr) => ({ ...qr, amount: otherAmount(qr.amount ?? 0) })],
  ['qr-content', withOtherContent],
  ['qr-account', (qr) => ({ ...qr, account: otherAccount(qr.account) })],
];

/** So many deadlines of a push after it was to leave, its withdrawal has overtaken it, where its box is there at all. */
const SWAPPED_DEADLINES = 2;

export interface PushFaultsDeps {
  faults: Faults;
  random: Random;
  /** How long a push waits for its confirmation, in milliseconds. */
  confirmTimeoutMs: number;
}

/** What is to happen between the start of a push and its way to the box, by pushId. */
export type BeforeShow = Map<string, () => Promise<unknown>>;

/** The line to a box on which the faults of pushes are made (PROTOCOL.md, clause FLT-6). */
export class PushFaultLine implements BoxConnection {
  readonly #terminalCode: string;
  readonly #line: BoxConnection;
  readonly #deps: PushFaultsDeps;
  readonly #before: BeforeShow;
  /** Says the push that waits for the message which follows it. */
  #sayOvertaken: (() => void) | undefined;

  constructor(terminalCode: string, line: BoxConnection, before: BeforeShow, deps: PushFaultsDeps) {
    this.#terminalCode = terminalCode;
    this.#line = line;
    this.#before = before;
    this.#deps = deps;
  }

  get transport(): BoxConnection['transport'] {
    return this.#line.transport;
  }

  end(): void {
    this.#line.end();
  }

  send(message: DownMessage): void {
    if (message.type === 'show') this.#show(message);
    else this.#say(message);
  }

  #say(message: DownMessage): void {
    this.#line.send(message);
    if (message.type !== 'heard') this.#sayOvertaken?.();
  }

  #show(asked: DownOf<'show'>): void {
    const before = this.#before.get(asked.pushId);
    this.#before.delete(asked.pushId);
    if (before === undefined) this.#pass(asked);
    else void before().then(() => this.#pass(asked));
  }

  #pass(asked: DownOf<'show'>): void {
    const { faults, random, confirmTimeoutMs } = this.#deps;
    const subject = { boxes: [this.#terminalCode], content: asked.content };
    const show = { ...asked, qrCode: this.#qrCode(asked) };
    if (faults.take('push-lost', subject)) return;
    const swapped = this.#sayOvertaken === undefined ? faults.delay('push-swapped', subject) : undefined;
    if (swapped !== undefined) {
      this.#overtake(show, swapped);
      return;
    }
    const isTwice = faults.take('push-twice', subject) !== undefined;
    const sayAll = () => {
      this.#say(show);
      if (isTwice) this.#say({ ...show, id: random.uuid() });
    };
    const late = faults.delay('push-late', subject);
    const slow = faults.delay('box-slow', subject);
    if (late === undefined && slow === undefined) {
      sayAll();
      return;
    }
    const lateMs = late === undefined ? 0 : confirmTimeoutMs + (late.seconds ?? 0) * 1000;
    const slowMs = (slow?.seconds ?? 0) * 1000;
    void Promise.all([late?.delayed(lateMs), slow?.delayed(lateMs + slowMs)]).then((goesOn) => {
      if (!goesOn.includes(false)) sayAll();
    });
  }

  /** Has the next message go before this push; where none comes until it is over, it goes then. */
  #overtake(show: DownOf<'show'>, { delayed: held }: DelayedOccurrence): void {
    const said = new AbortController();
    const say = () => {
      this.#sayOvertaken = undefined;
      said.abort();
      this.#line.send(show);
    };
    this.#sayOvertaken = say;
    void held(SWAPPED_DEADLINES * this.#deps.confirmTimeoutMs, said.signal).then((goesOn) => {
      if (goesOn && !said.signal.aborted) say();
    });
  }

  /** The QR as asked for, or one that says something else. */
  #qrCode({ qrCode, content }: DownOf<'show'>): string {
    const happens = (fault: FaultName) =>
      this.#deps.faults.take(fault, { boxes: [this.#terminalCode], content }) !== undefined;
    const changes = QR_CHANGES.filter(([fault]) => happens(fault));
    if (changes.length === 0) return qrCode;
    const decoded = decodeVietQr(qrCode);
    if (!decoded.ok) return qrCode;
    return encodeVietQr(changes.reduce((qr, [, change]) => change(qr), decoded.value));
  }
}
