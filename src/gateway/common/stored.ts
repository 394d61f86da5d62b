import type { DatabaseClock } from '../store/engines/database-clock.ts';
import type { Store } from '../store/store.ts';
import type { BoxSecrets } from './box-secrets.ts';
import type { Directory } from './directory.ts';
import type { Logins } from './logins.ts';
import type { Vault } from './vault.ts';
import type { VirtualAccountTable } from './virtual-accounts.ts';

/** The store of a gateway, and what reads and guards it. */
export interface Stored {
  store: Store;
  /** Partners, accounts and boxes. */
  directory: Directory;
  /** Wraps secrets. */
  vault: Vault;
  /** Secrets that boxes agreed on at enrolment. */
  secrets: BoxSecrets;
  /** The calendar of the database. */
  time: DatabaseClock;
  /** Limits wrong logins; one for HTTP and the broker, so that one limit covers all of them. */
  logins: Logins;
  /** The QRs of accounts may pay to these beside the account itself. */
  virtualAccounts: VirtualAccountTable;
}
