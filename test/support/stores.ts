import { afterAll, beforeAll } from 'vitest';
import type { StorePlace } from '../../src/gateway/store/store.ts';
import { temporaryFolder } from './net.ts';
import { type PostgresServer, startPostgres } from './postgres.ts';
import { PROGRAMS, without } from './programs.ts';

/** A database engine for a gateway's store. */
export interface Engine {
  /** For test names; includes the reason when it is not available. */
  name: string;
  missing: boolean;
  /** Call it inside a `describe`. Returns a function that makes a place for an empty store. */
  places(): () => Promise<StorePlace>;
}

/** Whether PostgreSQL is missing here, and how to install it, for the name of a test. */
export const { missing, note } = without(PROGRAMS.postgres);

export const ENGINES: Engine[] = [
  { name: 'SQLite', missing: false, places: () => async () => ({ dataDir: await temporaryFolder() }) },
  {
    name: `PostgreSQL${note}`,
    missing,
    places: () => {
      const server = postgresServer();
      return async () => ({ dataDir: await temporaryFolder(), databaseUrl: await server().database() });
    },
  },
];

/** A server for the tests of this `describe`. */
export function postgresServer(settings: readonly string[] = []): () => PostgresServer {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await startPostgres(settings);
  });
  afterAll(() => server?.remove());
  return () => {
    if (server === undefined) throw new Error('PostgreSQL is not started');
    return server;
  };
}
