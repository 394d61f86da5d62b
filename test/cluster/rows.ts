import pg from 'pg';
import { eventually } from '../support/net.ts';

/** A run of a gateway, as its row in `cluster.gateways` says. */
export interface RunRow {
  run: string;
  name: string;
  gone: boolean;
  seenAt: string;
}

/** Reads what the gateways of a database have in the schema `cluster`. Opens a connection for each question. */
export class ClusterRows {
  readonly #databaseUrl: string;

  constructor(databaseUrl: string) {
    this.#databaseUrl = databaseUrl;
  }

  async query<Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.#databaseUrl, query_timeout: 5_000 });
    // A server that crashes ends the connection beside a query.
    client.on('error', () => undefined);
    try {
      await client.connect();
      return (await client.query<Row>(sql, values)).rows;
    } finally {
      await client.end().catch(() => undefined);
    }
  }

  runs(): Promise<RunRow[]> {
    return this.query<RunRow>('select run, name, gone, seen_at::text as "seenAt" from cluster.gateways order by name');
  }

  async runOf(name: string): Promise<string | undefined> {
    return (await this.runs()).find((it) => it.name === name && !it.gone)?.run;
  }

  /** Returns the boxes that each run holds. */
  async boxesOf(run: string): Promise<string[]> {
    const sql = 'select terminal_code from cluster.box_sessions where run = $1 order by terminal_code';
    return (await this.query<{ terminal_code: string }>(sql, [run])).map((it) => it.terminal_code);
  }

  /** Returns those of these boxes that no living run but `except` holds. */
  async unserved(boxes: readonly string[], except: string): Promise<string[]> {
    const rows = await this.query<{ terminal_code: string }>(
      `select terminal_code from cluster.box_sessions join cluster.gateways using (run)
         where terminal_code = any($1) and run <> $2 and not gone`,
      [boxes, except],
    );
    const served = new Set(rows.map((it) => it.terminal_code));
    return boxes.filter((it) => !served.has(it));
  }

  /** Settles once exactly the gateways of these names live, and each has looked at the others since. */
  async whole(names: readonly string[]): Promise<void> {
    const living = async (since?: string) => {
      const runs = await this.runs().catch(() => []);
      if (runs.some(({ gone }) => gone)) return false;
      if (runs.map(({ name }) => name).join() !== names.toSorted().join()) return false;
      return since === undefined || runs.every(({ seenAt }) => seenAt > since);
    };
    await eventually(`the gateways ${names.join()}`, () => living());
    // A gateway looks at the others after it has been seen: at the second time from now, the first look is over.
    for (let beat = 0; beat < 2; beat += 1) {
      const [now] = await this.query<{ now: string }>('select clock_timestamp()::text as now');
      await eventually('each to look', () => living(now?.now));
    }
  }
}
