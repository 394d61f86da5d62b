import { afterAll, beforeAll } from 'vitest';
import type { StorePlace } from '../../src/gateway/store/store.ts';
import { temporaryFolder } from './net.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { PROGRAMS, without } from './programs.ts';

/** What the store of a gateway can be on. */
export interface Engine {
  /** For the names of tests; with the reason where it cannot be had here. */
  name: string;
  missing: boolean;
  /** To be called in a `describe`: gives a function that makes a place for a store in which nothing is yet. */
  places(): () => Promise<StorePlace>;
}

const postgres = without(PROGRAMS.postgres);

export const ENGINES: Engine[] = [
  { name: 'SQLite', missing: false, places: () => async () => ({ dataDir: await temporaryFolder() }) },
  {
    name: `PostgreSQL${postgres.note}`,
    missing: postgres.missing,
    places: () => {
      const server = postgresServer();
      return async () => ({ dataDir: await temporaryFolder(), databaseUrl: await server().database() });
    },
  },
];

/** A server for the tests of this `describe`. */
export function postgresServer(): () => PostgresServer {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server?.remove());
  return () => {
    if (server === undefined) throw new Error('PostgreSQL is not started');
    return server;
  };
}
