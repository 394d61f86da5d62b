/* The rows of the registry. Times are milliseconds since 1970, flags are 0 or 1. */

export type RegistryTable = 'partners' | 'accounts' | 'boxes' | 'sources';

/** Columns of every row of the registry. */
interface Registered {
  /** `file`: the gateway's file writes the row at each start, and only the file has its secrets. */
  managed: 'file' | 'store';
  disabled: number;
  changed_at_ms: number;
}

export interface PartnerRow extends Registered {
  username: string;
  /** Encrypted. Null for a row of the file. */
  password: string | null;
  /** JSON of the callback's configuration, encrypted. Null without one, and for a row of the file. */
  callback: string | null;
}

export interface AccountRow extends Registered {
  bank_account: string;
  bank_code: string;
  user_bank_name: string;
  partner: string | null;
  /** The `contentPrefix` of its contents. Null if the gateway's own applies. */
  content_prefix: string | null;
}

export interface BoxRow extends Registered {
  terminal_code: string;
  serial_number: string;
  account: string | null;
  /** As in the gateway's file. */
  dialect: string;
  /** Twelve hexadecimal digits in upper case. */
  mac_addr: string | null;
  confirm: 'displayed' | 'accepted' | 'sent' | null;
  /** Encrypted. Null for a row of the file, and for a box that enrols. */
  secret: string | null;
}

export interface SourceRow extends Registered {
  name: string;
  kind: string;
  /** JSON of its options without name and kind, encrypted. Null for a row of the file. */
  options: string | null;
}

/** A token with which a program or a person calls the gateway's own routes. */
export interface AdminTokenRow {
  id: string;
  /** Unique among the tokens that are not revoked. */
  name: string;
  /** SHA-256 of the token, in hexadecimal. The token itself is not stored. */
  digest: string;
  role: string;
  /** JSON with the terminalCodes of the boxes that a cashier may use. Null for all boxes. */
  boxes: string | null;
  created_at_ms: number;
  /** The name of the caller who created it. */
  created_by: string;
  /** May be up to a minute old. */
  last_used_at_ms: number | null;
  /** From this time on the gateway refuses the token. */
  revoked_at_ms: number | null;
}

/** The author and the time of a change. */
export interface ChangedBy {
  at_ms: number;
  /** The name of the token, `config`, `admin-token`, `loopback`, or `file`. */
  who: string;
  /** The IP address of the caller. Null for a change by the gateway's file, or by an earlier version. */
  address: string | null;
}

/** One change by an admin, as the audit list shows it. */
export interface NewAudit extends ChangedBy {
  what: string;
  /** The changed row, as `boxes/VVB000001`. */
  target: string;
  /** JSON without secrets. */
  detail: string;
}

export interface AuditRow extends NewAudit {
  seq: number;
}

/** A request to enrol as a box makes it. */
export interface NewEnrolmentRequest {
  id: string;
  terminal_code: string;
  serial_number: string;
  public_key: string;
  proof: string;
  address: string;
  /** The address, or its /64 of IPv6. */
  network: string;
  /** The run of the gateway that took it. The request expires with that run. */
  run: string;
  asked_at_ms: number;
  /** The time at which it expires. */
  until_ms: number;
}

export interface EnrolmentRequestRow extends NewEnrolmentRequest {
  /** JSON of the answer to the box. Null while nobody has decided. */
  state: string | null;
  /** How many wrong codes an admin has typed for its box. */
  wrong_codes: number;
}

/** A secret that a box agreed on at its enrolment. */
export interface EnrolledSecret {
  terminal_code: string;
  serial_number: string;
  secret: string;
  enrolled_at_ms: number;
}

/** A secret that was agreed on at enrolment, with the box of this serialNumber. */
export interface BoxSecretRow extends EnrolledSecret {
  /** 1 once the secret is encrypted. 0 for a secret of an earlier version, until the next start. */
  wrapped: number;
}
