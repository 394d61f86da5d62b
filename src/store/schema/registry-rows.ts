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

/** One change of the registry. */
export interface AuditRow {
  seq: number;
  at_ms: number;
  who: string;
  what: string;
  /** The changed row, as `boxes/VVB000001`. */
  target: string;
  /** JSON without secrets. */
  detail: string;
}
