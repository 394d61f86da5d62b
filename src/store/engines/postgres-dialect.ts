import { type Driver, PostgresDialect, type PostgresDialectConfig, PostgresDriver } from 'kysely';
import type { GroupCommit } from './group-commit.ts';

/** A PostgreSQL database whose queries settle once all that they may have seen is on the disk. */
export class DurablePostgresDialect extends PostgresDialect {
  readonly #config: PostgresDialectConfig;
  readonly #commits: GroupCommit;

  constructor(config: PostgresDialectConfig, commits: GroupCommit) {
    super(config);
    this.#config = config;
    this.#commits = commits;
  }

  override createDriver(): Driver {
    return new DurableDriver(this.#config, this.#commits);
  }
}

/** Lets the next query begin before the disk has the changes of the last one, so that one wait serves many. */
class DurableDriver extends PostgresDriver {
  readonly #commits: GroupCommit;

  constructor(config: PostgresDialectConfig, commits: GroupCommit) {
    super(config);
    this.#commits = commits;
  }

  override async releaseConnection(connection: Parameters<PostgresDriver['releaseConnection']>[0]): Promise<void> {
    await super.releaseConnection(connection);
    await this.#commits.settled();
  }

  override async destroy(): Promise<void> {
    // A failure was told to whoever waits for the change.
    await this.#commits.settled().catch(() => undefined);
    await super.destroy();
  }
}
