import type { IPublishPacket } from 'mqtt';
import type { Clock } from '../../../lib/clock.ts';
import type { Logger } from '../../../lib/log.ts';
import { boxCodeIn, decodeEnrolAnswer, type EnrolAnswer } from '../../../protocol/dialect.ts';
import type { BoxName } from '../../../protocol/fields.ts';
import { isPayable } from '../../../protocol/vietqr.ts';
import { refuseCertificate } from './vietqr-memory.ts';

const ASK_AGAIN_FIRST_MS = 500;
const ASK_AGAIN_MAX_MS = 60_000;
/**
 * The box accepts another boxId only after this many questions in a row had it as their only answer, for at least 3.5
 * s.
 */
const OTHER_ANSWERS_MIN = 3;

export interface EnrolmentDeps {
  clock: Clock;
  log: Logger;
  identity: BoxName;
  publish(): void;
  /** Returns the answer that counts now. */
  enrolled(): EnrolAnswer | undefined;
  isShowing(): boolean;
  take(answer: EnrolAnswer): Promise<void>;
}

/** Asks the service for the boxId, and decides which answer counts (PROTOCOL.md, clauses DIA-1, DIA-3 and DIA-8). */
export class VietqrEnrolment {
  readonly #deps: EnrolmentDeps;
  #isOpen = false;
  /** The last answer to the newest question that has another boxId. */
  #other: EnrolAnswer | undefined;
  #otherBefore: string | undefined;
  #othersInRow = 0;
  #isCertificateRefused = false;

  constructor(deps: EnrolmentDeps) {
    this.#deps = deps;
  }

  /** Asks, with backoff, until an answer counts or `signal` aborts. */
  async ask(signal: AbortSignal): Promise<void> {
    const { clock, publish, isShowing } = this.#deps;
    this.#isOpen = true;
    for (let waitMs = ASK_AGAIN_FIRST_MS; ; waitMs = Math.min(waitMs * 2, ASK_AGAIN_MAX_MS)) {
      this.#other = undefined;
      publish();
      await clock.sleep(waitMs, signal);
      if (signal.aborted || !this.#isOpen) return;
      const other = this.#otherInRow();
      if (other !== undefined && !isShowing()) return this.#count(other);
    }
  }

  /** Returns the answer with another boxId, if enough questions in a row had only this one. */
  #otherInRow(): EnrolAnswer | undefined {
    const other = this.#other;
    const isSame = other !== undefined && other.boxId === this.#otherBefore;
    this.#othersInRow = isSame ? this.#othersInRow + 1 : 1;
    this.#otherBefore = other?.boxId;
    return this.#othersInRow < OTHER_ANSWERS_MIN ? undefined : other;
  }

  /**
   * Processes an answer. A service answers on two topics, and some services with another certificate each time, so the
   * first answer counts.
   */
  async hear({ payload, retain }: { payload: IPublishPacket['payload']; retain?: boolean | undefined }): Promise<void> {
    const { enrolled } = this.#deps;
    // The age of a retained message is unknown.
    if (retain === true) return this.#refuse('enrolment: retained by the broker');
    const decoded = decodeEnrolAnswer(payload);
    if (!decoded.ok) return this.#refuse(decoded.reason);
    const answer = decoded.value;
    const known = enrolled()?.boxId;
    if (!this.#isOpen) {
      if (answer.boxId !== known) this.#refuse('another boxId, and the box has not asked');
      return;
    }
    if (isPayable(answer.qrCertificate)) return this.#refuseCertificate();
    if (known === undefined || known === answer.boxId) return this.#count(answer);
    if (this.#other !== undefined && this.#other.boxId !== answer.boxId) this.#otherBefore = undefined;
    this.#other = answer;
  }

  async #count(answer: EnrolAnswer): Promise<void> {
    const { log, identity, enrolled, take } = this.#deps;
    this.#isOpen = false;
    const before = enrolled();
    if (before?.boxId === answer.boxId && before.qrCertificate === answer.qrCertificate) return;
    const service = boxCodeIn(answer.boxId) ?? null;
    if (before?.boxId !== answer.boxId) log.info('box-enrolled', { service });
    if (service !== identity.terminalCode)
      log.warn('box-code-mismatched', { service, configured: identity.terminalCode, fix: 'correct box.terminalCode' });
    await take(answer);
  }

  #refuse(reason: string): void {
    this.#deps.log.warn('message-refused', { code: 'MESSAGE_ILLEGAL', reason });
  }

  #refuseCertificate(): void {
    if (this.#isCertificateRefused) return;
    this.#isCertificateRefused = true;
    refuseCertificate(this.#deps.log);
  }
}
