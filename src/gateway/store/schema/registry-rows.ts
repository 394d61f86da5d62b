/* Rows of the registry. Times are milliseconds since 1970, flags 0 or 1. */

export type RegistryTable = 'partners' | 'accounts' | 'boxes' | 'sources';

/** Columns of every row of the registry. */
interface Registered {
  /** `file`: the row is written from the gateway's file at each start, and its secrets are only there. */
  managed: 'file' | 'store';
  disabled: number;
  changed_at_ms: number;
}

export interface PartnerRow extends Registered {
  username: string;
  /** Wrapped; null for a row of the file. */
  password: string | null;
  /** JSON of the callback's configuration, wrapped; null without one and for a row of the file. */
  callback: string | null;
}

export interface AccountRow extends Registered {
  bank_account: string;
  bank_code: string;
  user_bank_name: string;
  partner: string | null;
  /** `contentPrefix` of its contents; null: as the gateway's file says. */
  content_prefix: string | null;
}

export interface BoxRow extends Registered {
  terminal_code: string;
  serial_number: string;
  account: string | null;
  /** As in the gateway's file. */
  dialect: string;
  /** Twelve upper-case digits. */
  mac_addr: string | null;
  confirm: 'displayed' | 'accepted' | 'sent' | null;
  /** Wrapped; null for a row of the file, and for a box that enrols. */
  secret: string | null;
}

export interface SourceRow extends Registered {
  name: string;
  kind: string;
  /** JSON of its options but name and kind, wrapped; null for a row of the file. */
  options: string | null;
}

/** A token with which a program or a person calls the gateway's own routes. */
export interface AdminTokenRow {
  id: string;
  /** No other token that is not revoked has it. */
  name: string;
  /** SHA-256 of the token, in hexadecimal digits: the token itself is stored nowhere. */
  digest: string;
  role: string;
  /** JSON: the terminalCodes of the boxes that a cashier may use; null for all boxes. */
  boxes: string | null;
  created_at_ms: number;
  /** Who made it. */
  created_by: string;
  /** Up to a minute old. */
  last_used_at_ms: number | null;
  /** From then on the gateway refuses it. */
  revoked_at_ms: number | null;
}

/** Who changed something, and when. */
export interface ChangedBy {
  at_ms: number;
  /** The name of the token, `config`, `admin-token`, `loopback`, or `file`. */
  who: string;
  /** IP address of the caller; null for a change by the gateway's file, or by an earlier version. */
  address: string | null;
}

/** One change by an admin, as the audit list has it. */
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
