import type { Generated } from 'kysely';
import type { OrderStatus } from '../../../protocol/statuses.ts';
import type {
  AccountRow,
  AdminTokenRow,
  AuditRow,
  BoxRow,
  BoxSecretRow,
  EnrolmentRequestRow,
  PartnerRow,
  SourceRow,
} from './registry-rows.ts';

export type * from './registry-rows.ts';
export type { OrderStatus };

/** The setting with the id of the key that encrypts the secrets of the registry. */
export const KEY_ID = 'registry-key';

/** The tables of a store. Times are milliseconds since 1970. `seq` orders rows by age. Flags are 0 or 1. */
export interface Tables {
  settings: { name: string; value: string };
  qr_codes: { ref: string; qr_code: string; created_at_ms: number };
  orders: OrderRow & Checked;
  pushes: PushRow & Checked;
  payments: PaymentRow & Checked & { link: string };
  callbacks: CallbackRow & Checked;
  callback_attempts: AttemptRow;
  notices: NoticeRow & Checked;
  box_secrets: BoxSecretRow;
  enrolment_requests: EnrolmentRequestRow;
  known_logins: { digest: string; seq: number };
  ledger: LedgerRow & Checked;
  damaged_rows: DamagedRow;
  credits: CreditRow & Checked;
  order_codes: OrderCodeRow & Checked;
  payment_requests: PaymentRequestRow & Checked;
  /** Orders that cashiers made. */
  sales: SaleRow;
  partners: PartnerRow;
  accounts: AccountRow;
  boxes: BoxRow;
  sources: SourceRow;
  audit: AuditRow;
  admin_tokens: AdminTokenRow;
}

/** A trigger writes the checksum at each insert and update. */
export interface Checked {
  checksum: Generated<string>;
}

/** The fields by which the order of a payment is found (PROTOCOL.md, clause CBK-6). */
export interface PaymentDetails {
  partner: string;
  bank_account: string;
  amount: number;
  content: string;
  trans_type: 'C' | 'D';
}

/** An order before it has a number and a status. */
export interface NewOrder extends PaymentDetails {
  id: string;
  order_id: string;
  bank_code: string;
  user_bank_name: string;
  qr_code: string;
  terminal_code: string;
  sub_terminal_code: string;
  service_code: string;
  sign: string;
  url_link: string;
  created_at_ms: number;
}

export interface OrderRow extends NewOrder {
  seq: number;
  status: OrderStatus;
  /** The error code of the newest push, if that failed. */
  failure: string | null;
  last_push_id: string | null;
  /** The box that last showed it (PROTOCOL.md, clause CBK-7). */
  shown_on: string | null;
  /** The push with which that box showed it. */
  shown_push_id: string | null;
  updated_at_ms: number;
  paid_at_ms: number | null;
}

/** `sent` until the box or the deadline decides. `failed`, `cancelled` and `ended` are final. */
export type PushStatus = 'sent' | 'accepted' | 'shown' | 'failed' | 'cancelled' | 'ended';

/** The expected error of the calendar clock. It matters for absent boxes only: the others end a push themselves. */
export const CLOCK_ERROR_MS_MAX = 86_400_000;

/** The statuses of a push that a box may show, now or soon. */
export const OPEN_PUSH: readonly PushStatus[] = ['sent', 'accepted', 'shown'];

/** A push before it has a number and an outcome. */
export interface NewPush {
  id: string;
  /** The `id` of its order. */
  order_ref: string;
  terminal_code: string;
  created_at_ms: number;
  expires_at_ms: number;
}

export interface PushRow extends NewPush {
  seq: number;
  status: PushStatus;
  code: string | null;
  confirmed_at_ms: number | null;
  ended_at_ms: number | null;
}

/** The facts by which a payment is found at the bank, and in the books of its partner. */
export interface PaymentFacts {
  id: string;
  partner: string;
  order_id: string;
  reference_number: string;
  bank_account: string;
  bank_code: string;
  amount: number;
  paid_at_ms: number;
}

/** A payment before the store has numbered it. */
export interface NewPayment extends PaymentFacts {
  /** The `id` of its order. Null for a payment that fits no order. */
  order_ref: string | null;
  content: string;
  trans_type: 'C' | 'D';
}

export interface PaymentRow extends NewPayment {
  seq: number;
  /** The chain that the payment is in (see `LedgerRow`). */
  writer: string;
  /** Counts the payments of its chain from 1, without gaps. */
  number: number;
}

export type CallbackStatus = 'pending' | 'delivered' | 'failed';

export interface CallbackRow {
  id: string;
  seq: number;
  payment_id: string;
  partner: string;
  url: string;
  /** Every attempt sends the same bytes (PROTOCOL.md, clause SYN-2). */
  body: string;
  status: CallbackStatus;
  warning: string | null;
  /** The number of scheduled attempts so far. Attempts by hand do not count. */
  tries: number;
  next_at_ms: number;
  created_at_ms: number;
}

/** An attempt before the store has numbered it. */
export interface NewAttempt {
  id: string;
  callback_id: string;
  by_hand: number;
  started_at_ms: number;
  duration_ms: number;
  /** JSON with the authorization masked. */
  request_headers: string;
  response_status: number | null;
  response_body: string | null;
  error: string | null;
}

export interface AttemptRow extends NewAttempt {
  seq: number;
}

export interface NoticeRow {
  payment_id: string;
  terminal_code: string;
  /** The push that the box showed for this payment. */
  push_id: string | null;
  created_at_ms: number;
  /** The time when it was first sent to the box. It is recorded before it is sent. */
  told_at_ms: number | null;
  reported_at_ms: number | null;
  recorded: number | null;
  /** 1 once it was sent to the box as old news. */
  late: number;
}

/** A chain of payments: its end, its newest pruned payment, and the number of pruned payments. */
export interface LedgerRow {
  /** The writer: the name of a gateway that shares its database, or '' for a gateway alone. */
  name: string;
  end_seq: number;
  end_link: string;
  pruned_seq: number;
  pruned_link: string;
  pruned_count: number;
}

/** One movement of money as its source has reported it (PROTOCOL.md, clause CRE-1). */
export interface NewCreditRow {
  /** Also the id of its payment. */
  id: string;
  source: string;
  source_id: string;
  /** The bank's number of the transfer, or ''. */
  reference: string;
  bank_account: string;
  virtual_account: string;
  amount: number;
  text: string;
  bank_time_ms: number;
  received_at_ms: number;
  late: number;
}

export interface CreditRow extends NewCreditRow {
  seq: number;
  /** Null if nobody gets a payment for it, because its account is not in the system or it is too old. */
  payment_id: string | null;
  /** The amount of its order. Null if exactly that was paid, or if it has no order. */
  order_amount: number | null;
  /** The sum that was paid with this credit. Null where `order_amount` is null. */
  order_paid: number | null;
}

/** The code in the content of an order, by which the text of a bank names it (PROTOCOL.md, clause MAT-1). */
export interface OrderCodeRow {
  code: string;
  bank_account: string;
  /** The `id` of its order. */
  order_ref: string;
  created_at_ms: number;
}

/** A payment request as its source made it. */
export interface NewPaymentRequest {
  source: string;
  /** The number of the order at the source. */
  order_code: number;
  /** The virtual account to which its QR pays. '' if the QR pays to the account itself. */
  virtual_account: string;
  created_at_ms: number;
  /** From then on the source accepts no money for it. */
  expires_at_ms: number;
}

/** The request of a source that collects for an order (PROTOCOL.md, clause PQR-1). */
export interface PaymentRequestRow extends NewPaymentRequest {
  /** The `id` of its order. */
  order_ref: string;
  /** The account of the order. */
  bank_account: string;
  /** The time when the gateway began to withdraw it. From then on the gateway does not push its QR. */
  ended_at_ms: number | null;
  /** The time from which the source accepts no more money for it, and all money that it accepted is in the store. */
  closed_at_ms: number | null;
}

export interface SaleRow {
  /** The `id` of its order. */
  order_ref: string;
  created_at_ms: number;
  /** The name of the cashier's token. Null for a sale of an earlier version. */
  sold_by: string | null;
}

/** A damaged row whose loss an admin accepted. */
export interface DamagedRow {
  table_name: string;
  name: string;
  content: string;
}
