import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Random } from '../../../lib/random.ts';
import { decodeWith } from '../../../protocol/codec.ts';
import { amountOfText, type BoxNotice, type EnrolAnswer, enrolAnswer } from '../../../protocol/dialect.ts';
import { LIMITS, wallTimeMs } from '../../../protocol/fields.ts';
import { linkedAccount } from '../../../protocol/messages.ts';
import { isPayable } from '../../../protocol/vietqr.ts';
import type { BoxMemory } from '../contract.ts';

type PaidNotice = Extract<BoxNotice, { notificationType: 'N05' }>;

/** The box remembers this many payments within the window to detect repetitions. One more displaces the oldest. */
const PAYMENTS_MAX = 1_000;
/** The file has room for them, and for an account and a boxId of the greatest length. */
const FILE_BYTES_MAX = 262_144;

const NUMBERS = /\d+(?:[.,]\d+)*/g;

const linked = z.object({ account: linkedAccount, staticQr: z.string().max(LIMITS.qrCodeMax) });
const content = z.object({
  v: z.literal(1),
  /** The service and the MAC address that is enrolled there. */
  owner: z.string(),
  enrolled: enrolAnswer.optional(),
  /** The last N16. */
  linked: linked.optional(),
  /** The boot of the machine in which the payments arrived. It is missing on a system that does not name boots. */
  bootId: z.string().optional(),
  payments: z
    .array(z.object({ digest: z.string(), transactionId: z.uuid(), paidAtMs: wallTimeMs }))
    .max(PAYMENTS_MAX)
    .default([]),
});
type Content = z.output<typeof content>;
export type Linked = z.output<typeof linked>;

export interface MemoryDeps {
  clock: Clock;
  log: Logger;
  random: Random;
  box: BoxMemory;
  /** An equal N05 within this time is the same payment. */
  repeatWindowMs: number;
}

/** A payment as the box knows it: the dialect has no ids and no times. */
export interface KnownPayment {
  transactionId: string;
  /** The time of the first of these N05, by the box's calendar clock. */
  paidAtMs: number;
  repeated: boolean;
}

/** Logs that the box refuses a certificate, because its QR would take money (PROTOCOL.md, clause DIA-2). */
export function refuseCertificate(log: Logger): void {
  const reason = 'the qrCertificate of the enrolment is a payment QR, the screen does not show it';
  const fix = 'ask the service for one that links a box to an account';
  log.warn('certificate-refused', { code: 'QR_MISMATCH', reason, fix });
}

/** Remembers the messages of a service that sends most of them only once (PROTOCOL.md, clauses DIA-3 to DIA-6). */
export class VietqrMemory {
  readonly #deps: MemoryDeps;
  #content: Content;

  private constructor(start: Content, deps: MemoryDeps) {
    this.#content = start;
    this.#deps = deps;
  }

  /**
   * Reads the memory of this owner. It ignores the memory of another owner, and a damaged file. After a power cut it
   * forgets payments unless the clock is right, because a stopped clock would mistake a new payment for an earlier one.
   */
  static async open(owner: string, deps: MemoryDeps): Promise<VietqrMemory> {
    const { memory, boot } = deps.box;
    const text = await memory.read();
    const found = text === undefined ? undefined : decodeWith(content, text, FILE_BYTES_MAX);
    if (found?.ok === false) deps.log.error('link-memory-unreadable', { reason: found.reason });
    const own = found?.ok === true && found.value.owner === owner ? found.value : undefined;
    if (own?.enrolled !== undefined && isPayable(own.enrolled.qrCertificate)) refuseCertificate(deps.log);
    const known = own ?? { v: 1, owner, payments: [] };
    const isDated = known.bootId === boot.id || (await boot.isTimeRight());
    return new VietqrMemory({ ...known, bootId: boot.id, payments: isDated ? known.payments : [] }, deps);
  }

  get enrolled(): EnrolAnswer | undefined {
    return this.#content.enrolled;
  }

  get linked(): Linked | undefined {
    return this.#content.linked;
  }

  /** Stores the answer. A new boxId is another box to the service, so the box forgets the account of the old one. */
  async enrol(answer: EnrolAnswer): Promise<void> {
    const isOther = this.enrolled !== undefined && this.enrolled.boxId !== answer.boxId;
    await this.#keep({ enrolled: answer, ...(isOther ? { linked: undefined } : {}) });
  }

  async link(to: Linked): Promise<void> {
    await this.#keep({ linked: to });
  }

  /**
   * Returns the payment that an N05 reports. Its id is on the disk before the box receives it, so a repetition after a
   * crash has the same id. The box's journal then shows whether the box has announced it.
   */
  async payment({ amount, message }: PaidNotice): Promise<KnownPayment> {
    const { clock, random, repeatWindowMs } = this.#deps;
    // Some senders write 25000, others 25000.0 or 25,000, in the text too.
    const said = message.replaceAll(NUMBERS, (it) => (amountOfText(it) === amount ? String(amount) : it));
    const digest = createHash('sha256').update(`${amount}\n${said}`).digest('base64url');
    const nowMs = clock.wallMs();
    // A payment from a little later counts too, because the clock may have been set back.
    const recent = this.#content.payments.filter(({ paidAtMs }) => Math.abs(nowMs - paidAtMs) < repeatWindowMs);
    const known = recent.find((it) => it.digest === digest);
    if (known !== undefined) return { ...known, repeated: true };
    const fresh = { digest, transactionId: random.uuid(), paidAtMs: nowMs };
    await this.#keep({ payments: [...recent, fresh].slice(-PAYMENTS_MAX) });
    return { ...fresh, repeated: false };
  }

  async #keep(change: Partial<Content>): Promise<void> {
    this.#content = { ...this.#content, ...change };
    await this.#deps.box.memory.write(`${JSON.stringify(this.#content)}\n`);
  }
}
