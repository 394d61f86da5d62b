import { execFileSync } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { eventuallyDone } from '../support/net.ts';
import {
  type PostgresReplica,
  type PostgresServer,
  startPostgres,
  startReplica,
  TABLE_SPACE,
} from '../support/postgres.ts';
import { startProxy, type TcpProxy } from '../support/proxy.ts';
import { childrenOf, type ServerProcess, signalAll } from './processes.ts';

/** User and database of the gateway, which is no superuser. */
export const GATEWAY = 'shop';
const PASSWORD = 'sample-shop-password';
/** So few that a test can take all of them; three of them are for superusers. */
export const CONNECTIONS_MAX = 12;
const SETTINGS = [
  `max_connections=${CONNECTIONS_MAX}`,
  // A server that has lost its room ends, and is started again, instead of keeping the log of a standby for ever.
  ...['max_wal_size=6MB', 'min_wal_size=2MB', 'wal_keep_size=4MB', 'max_slot_wal_keep_size=8MB'],
  ...['shared_buffers=8MB', 'max_wal_senders=4', 'wal_retrieve_retry_interval=200ms', 'autovacuum_naptime=5s'],
];
const START_AGAIN_MS = 200;
/** One statement of the test may take so long; a server that hangs answers nothing. */
const STATEMENT_MS_MAX = 25_000;

/** How the primary waits for its standby. */
export type Replication = 'synchronous' | 'asynchronous';

/** One of the two servers. It is started again whenever it ends, as an init system does, but while a fault holds it down. */
class Server<Kind extends PostgresServer = PostgresServer> {
  readonly postgres: Kind;
  #isDown = false;
  #isClosed = false;
  readonly #tended: Promise<void>;

  constructor(postgres: Kind) {
    this.postgres = postgres;
    this.#tended = this.#tend();
  }

  /** Its living processes but the first. */
  get children(): ServerProcess[] {
    return this.postgres.isRunning() ? childrenOf(this.postgres.pid()) : [];
  }

  /** Sends a signal to all its processes; returns their ids. */
  signal(signal: NodeJS.Signals): number[] {
    if (!this.postgres.isRunning()) return [];
    const pids = [this.postgres.pid(), ...this.children.map(({ pid }) => pid)];
    signalAll(pids, signal);
    return pids;
  }

  /** Ends it until `up`. */
  async down(signal: NodeJS.Signals): Promise<void> {
    this.#isDown = true;
    const children = this.children.map(({ pid }) => pid);
    this.signal('SIGCONT');
    await this.postgres.stop(signal);
    // The children of a killed server notice that it is gone; one that does not would keep its memory.
    signalAll(children, 'SIGKILL');
  }

  up(): void {
    this.#isDown = false;
  }

  /** Ends it, and deletes its files. */
  async remove(): Promise<void> {
    this.#isClosed = true;
    await this.down('SIGQUIT');
    await this.#tended;
    await this.postgres.remove();
  }

  async #tend(): Promise<void> {
    while (!this.#isClosed) {
      if (!this.#isDown && !this.postgres.isRunning()) await this.postgres.start().catch(() => undefined);
      await delay(START_AGAIN_MS);
    }
  }
}

export type { Server };

/** A primary with a streaming standby, on small disks. A gateway reaches the primary through a proxy, also after a failover. */
export class Database {
  readonly proxy: TcpProxy;
  /** The server that takes payments. */
  primary: Server;
  standby: Server<PostgresReplica>;
  /** The primary before a failover, until `rebuild`. */
  former: Server | undefined;
  #isClosed = false;

  private constructor(proxy: TcpProxy, primary: Server, standby: Server<PostgresReplica>) {
    this.proxy = proxy;
    this.primary = primary;
    this.standby = standby;
  }

  static async open(): Promise<Database> {
    const postgres = await startPostgres(SETTINGS, { smallDisks: true });
    const primary = new Server<PostgresServer>(postgres);
    let standby: Server<PostgresReplica> | undefined;
    try {
      const space = join(postgres.disks?.space ?? '', TABLE_SPACE);
      await mkdir(space);
      execFileSync('chown', ['--reference', dirname(space), space]);
      for (const sql of [
        // What the test does waits for no standby.
        'alter role paybox set synchronous_commit = local',
        `create role ${GATEWAY} login password '${PASSWORD}'`,
        `create tablespace small location '${space}'`,
        `create database ${GATEWAY} owner ${GATEWAY} tablespace small`,
      ]) {
        await postgres.run(ownUrl(postgres, 'postgres'), sql);
      }
      standby = new Server(await startReplica(postgres, SETTINGS));
      return new Database(await startProxy({ port: postgres.port }), primary, standby);
    } catch (error) {
      await standby?.remove();
      await primary.remove();
      throw error;
    }
  }

  /** The address for the gateway. */
  get url(): string {
    return `postgres://${GATEWAY}:${PASSWORD}@127.0.0.1:${this.proxy.port}/${GATEWAY}`;
  }

  /** Runs one statement as superuser in the gateway's database. */
  async run(sql: string, { postgres }: Server = this.primary): Promise<Record<string, unknown>[]> {
    const client = await this.client(postgres);
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      client.end().catch(() => undefined);
    }
  }

  /** Opens a connection as superuser. */
  async client(postgres: PostgresServer = this.primary.postgres): Promise<pg.Client> {
    return connected(ownUrl(postgres, GATEWAY));
  }

  /** Opens a connection that takes one of those that the gateway may have. */
  async idler(): Promise<pg.Client> {
    const url = new URL(ownUrl(this.primary.postgres, 'postgres'));
    return connected(Object.assign(url, { username: GATEWAY, password: PASSWORD }).href);
  }

  /** Processes of the primary that serve the gateway. */
  get backends(): ServerProcess[] {
    return this.primary.children.filter(({ title }) => title.startsWith(`postgres: ${GATEWAY} ${GATEWAY} `));
  }

  /** Makes the primary wait for the standby, or not. */
  async replicate(how: Replication): Promise<void> {
    const name = how === 'synchronous' ? this.standby.postgres.name : '';
    await this.run(`alter system set synchronous_standby_names = '${name}'`);
    await this.run('select pg_reload_conf()');
  }

  /** Whether the standby has all that the primary has. */
  async isCaughtUp(): Promise<boolean> {
    const [row] = await this.run(
      `select count(*)::int as count from pg_stat_replication where state = 'streaming' and flush_lsn >= pg_current_wal_insert_lsn()`,
    );
    return row?.count === 1;
  }

  /** The standby becomes the primary, and gets the connections of the gateway. */
  async failOver(): Promise<void> {
    const [row] = await this.run('select pg_is_in_recovery() as is_standby', this.standby);
    if (row?.is_standby === true) await this.standby.postgres.promote();
    this.former = this.primary;
    this.primary = this.standby;
    this.proxy.aim({ port: this.primary.postgres.port });
    this.proxy.cut();
  }

  /** The connections of the gateway lead to the primary before the failover again. */
  leadBack(): void {
    if (this.former === undefined) throw new Error('there was no failover');
    [this.primary, this.former] = [this.former, this.primary];
    this.proxy.aim({ port: this.primary.postgres.port });
    this.proxy.cut();
  }

  /** Gives the primary a new standby. */
  async rebuild(): Promise<void> {
    await this.replicate('asynchronous');
    if (this.former === undefined) {
      const { name } = this.standby.postgres;
      await this.standby.remove();
      // The server may not have noticed yet that the standby is gone.
      await eventuallyDone('the slot of the standby to be free', () =>
        this.run(`select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = '${name}'`),
      );
    } else {
      await this.former.remove();
      this.former = undefined;
    }
    this.standby = new Server(await startReplica(this.primary.postgres, SETTINGS));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.proxy.close();
    const servers = new Set([this.primary, this.standby, this.former].filter((it) => it !== undefined));
    await Promise.all([...servers].map((it) => it.remove()));
  }
}

function ownUrl({ port, password }: PostgresServer, database: string): string {
  return `postgres://paybox:${password}@127.0.0.1:${port}/${database}`;
}

async function connected(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString,
    connectionTimeoutMillis: STATEMENT_MS_MAX,
    query_timeout: STATEMENT_MS_MAX,
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
