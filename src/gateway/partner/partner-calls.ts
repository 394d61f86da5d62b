import type { CheckedOrder, GenerateResponse } from '../../protocol/http-api.ts';
import type { Partner } from '../common/directory.ts';
import type { Result } from '../common/result.ts';
import type { CallNotes } from './call-notes.ts';

/** The rules for one call of a partner. */
export interface CallMode {
  notes: CallNotes;
  /**
   * True if the content stays as the partner sent it: no code is put before it, and a push shows it whatever the QR
   * contains.
   */
  isVerbatim?: boolean;
}

/** The calls of partners. A refused call changes nothing. */
export interface PartnerCalls {
  /** Makes a QR (PROTOCOL.md, clause GEN). `origin` is the address at which the caller reached the gateway. */
  generate(partner: Partner, json: unknown, call: CallMode & { origin: string }): Promise<Result<GenerateResponse>>;
  /** Pushes a QR to a box and waits for its confirmation (PROTOCOL.md, clause SND). */
  sendQr(partner: Partner, json: unknown, call: CallMode): Promise<Result<undefined>>;
  /** Simulates a completed payment (PROTOCOL.md, clause CBK). Returns the transaction id. */
  testCallback(partner: Partner, json: unknown, notes: CallNotes): Promise<Result<string>>;
  /**
   * Returns the state of a partner's orders or payments (PROTOCOL.md, clause CHK). `name` is the user name in the
   * checkSum; the default is the partner's own.
   */
  checkOrder(partner: Partner, json: unknown, name?: string): Promise<Result<CheckedOrder[]>>;
  /** Cancels an unpaid order of the partner (PROTOCOL.md, clause CAN). */
  cancelQr(partner: Partner, json: unknown): Promise<Result<undefined>>;
}
