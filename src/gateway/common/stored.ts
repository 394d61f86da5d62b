import type { DatabaseClock } from '../store/engines/database-clock.ts';
import type { Store } from '../store/store.ts';
import type { BoxSecrets } from './box-secrets.ts';
import type { Directory, VirtualAccountTable } from './directory.ts';
import type { Logins } from './logins.ts';
import type { Vault } from './vault.ts';

/** The store of a gateway, and the parts that read and guard it. */
export interface Stored {
  store: Store;
  directory: Directory;
  vault: Vault;
  /** Secrets that boxes agreed on at enrolment. */
  secrets: BoxSecrets;
  /** The calendar of the database. */
  time: DatabaseClock;
  /** Limits wrong logins over HTTP and at the broker together. */
  logins: Logins;
  /** The virtual accounts that QRs of accounts may pay to. */
  virtualAccounts: VirtualAccountTable;
}
