import { type Driver, PostgresDialect, PostgresDriver, type PostgresPool } from 'kysely';
import { systemClock, withDeadline } from '../../../lib/clock.ts';
import type { GroupCommit } from './group-commit.ts';

/** Running queries have this long when the store closes. After that, the server is abandoned. */
const CLOSE_WAIT_MS = 1_000;

interface Parts {
  pool: PostgresPool;
  commits: GroupCommit;
  /** Makes everything that waits for the server fail at once. `lateMs` is set if the store has waited too long. */
  abandon: (lateMs: number | undefined) => void;
}

/** Opens a PostgreSQL database whose queries settle once everything that they may have seen is on the disk. */
export class DurablePostgresDialect extends PostgresDialect {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    super(parts);
    this.#parts = parts;
  }

  override createDriver(): Driver {
    return new DurableDriver(this.#parts);
  }
}

/** Lets the next query begin before the disk has the changes of the last one, so that one wait serves many. */
class DurableDriver extends PostgresDriver {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    super(parts);
    this.#parts = parts;
  }

  override async releaseConnection(connection: Parameters<PostgresDriver['releaseConnection']>[0]): Promise<void> {
    await super.releaseConnection(connection);
    await this.#parts.commits.settled();
  }

  override async destroy(): Promise<void> {
    const ended = this.#end().then(() => true);
    const isEnded = await withDeadline(systemClock, CLOSE_WAIT_MS, ended);
    this.#parts.abandon(isEnded ? undefined : CLOSE_WAIT_MS);
    await ended;
  }

  async #end(): Promise<void> {
    // Everybody who waits for a change has already received its failure.
    await this.#parts.commits.settled().catch(() => undefined);
    await super.destroy();
  }
}
