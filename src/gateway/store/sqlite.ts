import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import type { SqliteDatabase, SqliteStatement } from 'kysely';

/** Statements kept prepared; the queries of the store are fewer. */
const STATEMENTS_MAX = 200;

/** `node:sqlite` in the shape that Kysely's SqliteDialect asks for. */
export function openSqlite(file: string): SqliteDatabase {
  const db = new DatabaseSync(file);
  // Alone on the file: two gateways on one folder would tell the same payments twice.
  // NORMAL is safe against a killed process; only a power cut may take the last writes.
  db.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
  const prepared = new Map<string, SqliteStatement>();
  return {
    prepare: (sql) => {
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

function adapt(statement: StatementSync): SqliteStatement {
  const inputs = (parameters: readonly unknown[]) => parameters as SQLInputValue[];
  return {
    reader: statement.columns().length > 0,
    all: (parameters) => statement.all(...inputs(parameters)),
    run: (parameters) => statement.run(...inputs(parameters)),
    iterate: (parameters) => statement.iterate(...inputs(parameters)),
  };
}
