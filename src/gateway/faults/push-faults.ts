import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import type { FaultName } from '../../protocol/faults.ts';
import type { DownMessage, DownOf } from '../../protocol/messages.ts';
import { decodeVietQr, encodeVietQr, type VietQr } from '../../protocol/vietqr.ts';
import type { Line } from '../boxes/line.ts';
import type { Faults } from './faults.ts';
import { otherAccount, otherAmount, withOtherContent } from './other-money.ts';

const QR_CHANGES: readonly (readonly [fault: FaultName, change: (qr: VietQr) => VietQr])[] = [
  ['qr-amount', (qr) => ({ ...qr, amount: otherAmount(qr.amount ?? 0) })],
  ['qr-content', withOtherContent],
  ['qr-account', (qr) => ({ ...qr, account: otherAccount(qr.account) })],
];

export interface PushFaultsDeps {
  faults: Faults;
  clock: Clock;
  random: Random;
  /** How long a push waits for its confirmation, in milliseconds. */
  confirmTimeoutMs: number;
}

/** What is to happen between the start of a push and its way to the box, by pushId. */
export type BeforeShow = Map<string, () => Promise<unknown>>;

/** The line to a box on which the faults of pushes are made (PROTOCOL.md, clause FLT-6). */
export class PushFaultLine implements Line {
  readonly #terminalCode: string;
  readonly #line: Line;
  readonly #deps: PushFaultsDeps;
  readonly #before: BeforeShow;
  /** Waits for the message that follows it. */
  #overtaken: DownOf<'show'> | undefined;

  constructor(terminalCode: string, line: Line, before: BeforeShow, deps: PushFaultsDeps) {
    this.#terminalCode = terminalCode;
    this.#line = line;
    this.#before = before;
    this.#deps = deps;
  }

  get transport(): Line['transport'] {
    return this.#line.transport;
  }

  end(): void {
    this.#line.end();
  }

  send(message: DownMessage): void {
    const overtaken = this.#overtaken;
    this.#overtaken = undefined;
    if (message.type === 'show') this.#show(message);
    else this.#line.send(message);
    if (overtaken !== undefined) this.#line.send(overtaken);
  }

  #show(asked: DownOf<'show'>): void {
    const before = this.#before.get(asked.pushId);
    this.#before.delete(asked.pushId);
    if (before === undefined) this.#pass(asked);
    else void before().then(() => this.#pass(asked));
  }

  #pass(asked: DownOf<'show'>): void {
    const { clock, random, confirmTimeoutMs } = this.#deps;
    const happening = (fault: FaultName) =>
      this.#deps.faults.take(fault, { boxes: [this.#terminalCode], content: asked.content });
    const show = { ...asked, qrCode: this.#qrCode(asked) };
    if (happening('push-lost')) return;
    if (happening('push-swapped')) {
      this.#overtaken = show;
      return;
    }
    const sendAll = happening('push-twice')
      ? () => {
          this.#line.send(show);
          this.#line.send({ ...show, id: random.uuid() });
        }
      : () => this.#line.send(show);
    const late = happening('push-late');
    const lateMs = late === undefined ? 0 : confirmTimeoutMs + (late.seconds ?? 0) * 1000;
    const slowMs = (happening('box-slow')?.seconds ?? 0) * 1000;
    if (lateMs + slowMs > 0) void clock.sleep(lateMs + slowMs).then(sendAll);
    else sendAll();
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
