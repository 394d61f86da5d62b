import type { DatabaseSync } from 'node:sqlite';
import {
  type DialectAdapter,
  type Driver,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  SqliteDriver,
} from 'kysely';
import type { WalSync } from './wal-sync.ts';

/** After this many commits, about 3 MB, the write-ahead log is copied into the database. */
const COMMITS_PER_CHECKPOINT = 200;
/** SQLite's own waits for the disk would block the event loop, so WalSync waits instead. */
const CHECKPOINT = 'PRAGMA synchronous = OFF; PRAGMA wal_checkpoint(PASSIVE); PRAGMA synchronous = NORMAL';

export interface OpenSqlite {
  db: DatabaseSync;
  adapted: SqliteDatabase;
  disk: WalSync;
}

/** Opens a SQLite file whose queries settle once everything that they may have seen is on the disk. */
export class DurableSqliteDialect extends SqliteDialect {
  readonly #open: () => OpenSqlite;

  constructor(open: () => OpenSqlite) {
    super({ database: async () => open().adapted });
    this.#open = open;
  }

  /** Runs migrations in one transaction, so that the next start can repeat a killed one. */
  override createAdapter(): DialectAdapter {
    return new TransactionalAdapter();
  }

  override createDriver(): Driver {
    return new DurableDriver(this.#open);
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** Lets the next query begin before the disk has the changes of the last one, so that one wait serves many. */
class DurableDriver extends SqliteDriver {
  readonly #opened: () => OpenSqlite | undefined;
  /** The number of commits that are in the database itself, and not only in the log. */
  #copied = 0;

  constructor(open: () => OpenSqlite) {
    let opened: OpenSqlite | undefined;
    super({
      database: async () => {
        opened = open();
        return opened.adapted;
      },
    });
    this.#opened = () => opened;
  }

  override async releaseConnection(): Promise<void> {
    const opened = this.#opened();
    try {
      if (opened !== undefined && opened.disk.commits - this.#copied >= COMMITS_PER_CHECKPOINT) {
        this.#copied = opened.disk.commits;
        await opened.disk.checkpoint(() => opened.db.exec(CHECKPOINT));
      }
    } finally {
      await super.releaseConnection();
    }
    await opened?.disk.settled();
  }

  override async destroy(): Promise<void> {
    const disk = this.#opened()?.disk;
    // Everybody who waits for a change has already received its failure.
    await disk?.settled().catch(() => undefined);
    await super.destroy();
    disk?.close();
  }
}
