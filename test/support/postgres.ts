import { type ChildProcess, type ExecFileSyncOptions, execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { chown, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { mount, unmount } from './disk.ts';
import { eventually, freePort } from './net.ts';
import { findProgram, PROGRAMS } from './programs.ts';

const USER = 'paybox';
const PASSWORD = 'postgres-secret';

/** A PostgreSQL server with its own data folder on a free loopback port. */
export interface PostgresServer {
  port: number;
  password: string;
  disks: ServerDisks | undefined;
  /** Of the process that started all others; it changes with each start. */
  pid(): number;
  /** Whether that process has not ended. Afterwards its id may be that of any other. */
  isRunning(): boolean;
  /** Makes an empty database; returns its address with user and password. */
  database(): Promise<string>;
  /** Runs one statement in this database as superuser. */
  run(databaseUrl: string, sql: string): Promise<Record<string, unknown>[]>;
  /** Starts it again on the same port and folder; waits until it answers. */
  start(): Promise<void>;
  /** Stops it. SIGINT ends every connection, as a stop of the machine; SIGKILL or SIGQUIT is a crash. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Stops it and deletes its folder. */
  remove(): Promise<void>;
}

/** Small file systems of one server, which a test can fill. Each path is where one is mounted. */
export interface ServerDisks {
  data: string;
  /** Holds the write-ahead log. */
  wal: string;
  /** This folder has room for a tablespace, in its folder `TABLE_SPACE`. */
  space: string;
}

/** Folder of a tablespace on its disk. A replica of the server has it on its own disk. */
export const TABLE_SPACE = 'table-space';
/** A server of tests needs 50 MB for data, 8 MB for the log, and 10 MB for a database in the tablespace. */
const DISK_SIZES = { data: '96m', wal: '24m', space: '24m' } as const satisfies Record<keyof ServerDisks, string>;

/** A streaming standby of another server. It takes queries that only read, until it is promoted. */
export interface PostgresReplica extends PostgresServer {
  /** Its name in `pg_stat_replication` of the primary, and for `synchronous_standby_names` there. */
  name: string;
  /** Receives nothing more from the primary. Settles once the connection between them is closed. */
  disconnect(): Promise<void>;
  /** Receives again. Settles once it has replayed all that the primary had written by the call. */
  catchUp(): Promise<void>;
  /** Makes it a primary of its own, with a new timeline. Settles once it takes writes. The old primary is left as it is. */
  promote(): Promise<void>;
}

/** Tests never cut the power, so data need not reach the disk: killing the server loses nothing. */
const NO_SYNC = ['-c', 'fsync=off', '-c', 'full_page_writes=off'];
/** A killed server leaves its shared memory; it is deleted with the data. */
const SHARED_MEMORY = ['-c', 'dynamic_shared_memory_type=mmap'];

/** The folder of a server, and how its programs are run. */
interface Place {
  bin: string;
  folder: string;
  data: string;
  disks: ServerDisks | undefined;
  port: number;
  /** PostgreSQL refuses to run as root: then it runs as user postgres. */
  as: { uid: number; gid: number } | undefined;
}

/**
 * Starts a server, as user postgres when run by root. `settings` are `name=value`. With `smallDisks`, which only root can have, it
 * and its replicas are on small disks of their own.
 */
export async function startPostgres(
  settings: readonly string[] = [],
  { smallDisks = false } = {},
): Promise<PostgresServer> {
  const place = await newPlace(smallDisks);
  try {
    await makeData(place.bin, place.folder, place.data, place.as);
    if (place.disks !== undefined) {
      const [made, wal] = [join(place.data, 'pg_wal'), join(place.disks.wal, 'wal')];
      execFileSync('cp', ['-a', made, wal]);
      execFileSync('rm', ['-r', made]);
      execFileSync('ln', ['-s', wal, made]);
    }
    return await launch(place, settings);
  } catch (error) {
    await discard(place);
    throw error;
  }
}

/**
 * Starts an asynchronous standby of `primary`, with the databases that it has now and later. For a synchronous one set
 * `synchronous_standby_names` of the primary to its name, and reload. Fails over: `promote`, and clients are led to its port.
 */
export async function startReplica(
  primary: PostgresServer,
  settings: readonly string[] = [],
): Promise<PostgresReplica> {
  const place = await newPlace(primary.disks !== undefined);
  try {
    return await replicate(place, primary, settings);
  } catch (error) {
    await discard(place);
    throw error;
  }
}

async function replicate(place: Place, primary: PostgresServer, settings: readonly string[]): Promise<PostgresReplica> {
  const { bin, folder, data, disks, port, as } = place;
  const name = `replica_${port}`;
  const source = `host=127.0.0.1 port=${primary.port} user=${USER} password=${PASSWORD} application_name=${name}`;
  // A slot, so that a standby that was away finds all that it missed.
  const copy = ['-D', data, '-d', source, '-X', 'stream', '-c', 'fast', '-C', '-S', name, '-R', '--no-sync'];
  if (disks !== undefined && primary.disks !== undefined) {
    const spaces = [primary.disks.space, disks.space].map((it) => join(it, TABLE_SPACE));
    copy.push(`--waldir=${join(disks.wal, 'wal')}`, '-T', spaces.join('='));
  }
  await new Promise<void>((resolve, reject) => {
    execFile(join(bin, 'pg_basebackup'), copy, { ...as, cwd: folder }, (error) => (error ? reject(error) : resolve()));
  });
  const server = await launch(place, settings);
  const here = urlOf(port, 'postgres');
  const primaryConninfo = async (value: string) => {
    await query(here, `alter system set primary_conninfo = '${value}'`);
    await query(here, 'select pg_reload_conf()');
  };
  return {
    ...server,
    name,
    disconnect: async () => {
      await primaryConninfo('');
      await eventually('the standby to be disconnected', async () => {
        const receivers = await query(here, 'select 1 from pg_stat_wal_receiver');
        return receivers.length === 0;
      });
    },
    catchUp: async () => {
      const [written] = await query(urlOf(primary.port, 'postgres'), 'select pg_current_wal_lsn()::text as lsn');
      await primaryConninfo(source);
      await eventually('the standby to catch up', async () => {
        const [row] = await query(here, `select pg_last_wal_replay_lsn() >= '${written?.lsn}'::pg_lsn as is_there`);
        return row?.is_there === true;
      });
    },
    promote: async () => {
      await query(here, 'select pg_promote(true, 30)');
    },
  };
}

async function newPlace(smallDisks: boolean): Promise<Place> {
  // The folder of the package, also where PATH has only a link to the server: `pg_basebackup` is there too.
  const bin = dirname(realpathSync(findProgram(PROGRAMS.postgres) ?? ''));
  const as = process.getuid?.() === 0 ? userOf('postgres') : undefined;
  const folder = await mkdtemp(join(tmpdir(), 'paybox-postgres-'));
  if (as !== undefined) await chown(folder, as.uid, as.gid);
  const port = await freePort();
  if (!smallDisks) return { bin, folder, data: join(folder, 'data'), disks: undefined, port, as };
  const disks = { data: join(folder, 'data-disk'), wal: join(folder, 'wal-disk'), space: join(folder, 'space-disk') };
  const place = { bin, folder, data: join(disks.data, 'data'), disks, port, as };
  const owner = as === undefined ? '' : `,uid=${as.uid},gid=${as.gid}`;
  try {
    for (const [name, size] of Object.entries(DISK_SIZES)) {
      const disk = disks[name as keyof ServerDisks];
      await mkdir(disk);
      mount('-t', 'tmpfs', '-o', `size=${size},mode=700${owner}`, 'paybox-test', disk);
    }
    return place;
  } catch (error) {
    await discard(place);
    throw error;
  }
}

/** Deletes the files of a server that has ended, and its shared memory: a server that was killed leaves both. */
async function discard(place: Place): Promise<void> {
  await removeMemory(await memoryOf(place));
  for (const disk of Object.values(place.disks ?? {})) unmount(disk);
  await rm(place.folder, { recursive: true, force: true, maxRetries: 5 });
}

/** The id of the shared memory by which a server keeps others away from its data. */
async function memoryOf({ data }: Place): Promise<string | undefined> {
  const lines = (await readFile(join(data, 'postmaster.pid'), 'utf8').catch(() => '')).split('\n');
  return /^ *\d+ +(\d+)$/.exec(lines[6] ?? '')?.[1];
}

async function removeMemory(id: string | undefined): Promise<void> {
  // Fails where the memory has gone with its last process.
  if (id !== undefined) await new Promise<void>((resolve) => execFile('ipcrm', ['-m', id], () => resolve()));
}

function urlOf(port: number, name: string): string {
  return `postgres://${USER}:${PASSWORD}@127.0.0.1:${port}/${name}`;
}

/** Starts the server of a data folder. Where that fails, it is deleted. */
async function launch(place: Place, settings: readonly string[]): Promise<PostgresServer> {
  const { bin, folder, data, disks, port, as } = place;
  let server: ChildProcess | undefined;
  let databases = 0;

  const start = async () => {
    const args = [
      '-D',
      data,
      '-p',
      String(port),
      '-k',
      folder,
      '-c',
      'listen_addresses=127.0.0.1',
      ...NO_SYNC,
      ...SHARED_MEMORY,
      ...settings.flatMap((it) => ['-c', it]),
    ];
    const child = spawn(join(bin, 'postgres'), args, { ...as, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
    server = child;
    let output = '';
    child.stderr.on('data', (chunk: Buffer) => {
      output = `${output}${chunk}`.slice(-10_000);
    });
    await eventually('PostgreSQL', async () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL ended: ${output}`);
      return query(urlOf(port, 'postgres'), 'select 1').then(
        () => true,
        () => false,
      );
    });
  };
  const isRunning = () => server !== undefined && server.exitCode === null && server.signalCode === null;
  const stop = async (signal: NodeJS.Signals = 'SIGINT') => {
    if (server === undefined || !isRunning()) return;
    const ended = once(server, 'exit');
    // The next start finds the memory of a killed server only by chance: its key depends on which others were there.
    const memory = signal === 'SIGKILL' ? await memoryOf(place) : undefined;
    server.kill(signal);
    await ended;
    await removeMemory(memory);
  };
  const remove = async () => {
    await stop('SIGQUIT');
    await discard(place);
  };
  await start().catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  return {
    port,
    password: PASSWORD,
    disks,
    pid: () => server?.pid ?? 0,
    isRunning,
    database: async () => {
      databases += 1;
      const name = `test_${databases}`;
      await query(urlOf(port, 'postgres'), `create database ${name}`);
      return urlOf(port, name);
    },
    run: query,
    start,
    stop,
    remove,
  };
}

/** Makes the data folder of a new server: a copy of the one that the first of a test run made, because that takes a second. */
async function makeData(
  bin: string,
  cwd: string,
  data: string,
  as: ReturnType<typeof userOf> | undefined,
): Promise<void> {
  const first = join(tmpdir(), 'paybox-postgres-data');
  const quietly = { ...as, cwd, stdio: ['ignore', 'ignore', 'pipe'] } satisfies ExecFileSyncOptions;
  if (existsSync(first)) {
    execFileSync('cp', ['-a', first, data], quietly);
    return;
  }
  const passwordFile = join(cwd, 'password');
  await writeFile(passwordFile, `${PASSWORD}\n`);
  const setUp = ['-D', data, '-U', USER, '-A', 'scram-sha-256', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'];
  execFileSync(join(bin, 'initdb'), [...setUp, '--wal-segsize=1', `--pwfile=${passwordFile}`], quietly);
  const copy = join(cwd, 'copy');
  execFileSync('cp', ['-a', data, copy], quietly);
  // Another worker may have been faster.
  await rename(copy, first).catch(() => rm(copy, { recursive: true }));
}

function userOf(name: string): { uid: number; gid: number } {
  const id = (which: '-u' | '-g') => Number(execFileSync('id', [which, name], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function query(databaseUrl: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 30_000 });
  client.on('error', () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql)).rows;
  } finally {
    await client.end();
  }
}
