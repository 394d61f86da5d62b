import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import {
  type Dialect,
  type DialectAdapter,
  SqliteAdapter,
  type SqliteDatabase,
  SqliteDialect,
  type SqliteStatement,
} from 'kysely';

/** Statements kept prepared; the queries of the store are fewer. */
const STATEMENTS_MAX = 200;

/** A SQLite file, opened at the first query. */
export function sqliteDialect(file: string): Dialect {
  return new WholeMigrations({ database: async () => openSqlite(file) });
}

/** SQLite, whose migrations are made whole or not at all: one that is killed midway is made anew by the next start. */
class WholeMigrations extends SqliteDialect {
  override createAdapter(): DialectAdapter {
    return new TransactionalAdapter();
  }
}

class TransactionalAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

/** `node:sqlite` in the shape that Kysely's SqliteDialect asks for. */
function openSqlite(file: string): SqliteDatabase {
  const db = new DatabaseSync(file);
  try {
    // Alone on the file: two gateways on one folder would tell the same payments twice.
    // FULL: what a partner or a box was answered must survive a power cut.
    db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL');
  } catch (error) {
    db.close();
    throw error;
  }
  const prepared = new Map<string, SqliteStatement>();
  return {
    prepare: (sql) => {
      // After a full disk SQLite has rolled back by itself, and refuses to do so again.
      if (sql === 'rollback' && !db.isTransaction) return NOTHING;
      const known = prepared.get(sql);
      if (known !== undefined) return known;
      const statement = adapt(db.prepare(sql));
      if (prepared.size < STATEMENTS_MAX) prepared.set(sql, statement);
      return statement;
    },
    close: () => {
      prepared.clear();
      db.close();
    },
  };
}

const NOTHING: SqliteStatement = {
  reader: false,
  all: () => [],
  run: () => ({ changes: 0, lastInsertRowid: 0 }),
  iterate: () => [][Symbol.iterator](),
};

function adapt(statement: StatementSync): SqliteStatement {
  const inputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...inputs(parameters)),
    run: (parameters) => statement.run(...inputs(parameters)),
    iterate: (parameters) => statement.iterate(...inputs(parameters)),
  };
}
