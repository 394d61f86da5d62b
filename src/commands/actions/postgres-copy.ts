import { spawn } from 'node:child_process';
import { type FileHandle, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClientBase } from 'pg';
import { type BackupFile, copyBackup } from '../../gateway/store/backup/backup-file.ts';
import { ConfigError, MissingPeerError, PayboxError, systemCodeOf } from '../../lib/errors.ts';
import { systemRandom } from '../../lib/random.ts';

const OWNER_ONLY = 0o600;
const STDERR_CHARS_MAX = 4_000;

/** The tables in which gateways that share a database speak of the moment. In a restored one nobody lives, and nobody has work. */
const MOMENTARY = ['gateways', 'box_sessions', 'box_streams', 'leases', 'news', 'texts'];
const DUMP = [
  ...['--format=custom', '--no-owner', '--no-privileges'],
  ...MOMENTARY.map((table) => `--exclude-table-data=cluster.${table}`),
];
const RESTORE = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges'];

/**
 * Dumps a PostgreSQL database into an open file, all of it at one moment, while gateways use it. Throws MissingPeerError, and PayboxError with pg_dump's error text.
 */
export async function dumpPostgres(databaseUrl: string, target: FileHandle): Promise<void> {
  await runTool('pg_dump', DUMP, { databaseUrl, stdout: target.fd });
}

/** Reads a pg_dump file to its end. Throws PayboxError if it is damaged. */
export async function checkDump(source: FileHandle): Promise<void> {
  await runTool('pg_restore', ['--file=/dev/null'], { stdin: source.fd });
}

/**
 * Checks a backup and fills an empty database with it, all or nothing. Both steps use a private unnamed copy, which
 * nobody can change and which ends with the process. Throws ConfigError for a database that is not empty.
 */
export async function restorePostgres(databaseUrl: string, backup: BackupFile): Promise<void> {
  const handles: FileHandle[] = [];
  try {
    const [folder, name] = [tmpdir(), await mkdtemp(join(tmpdir(), 'paybox-restore-'))];
    const copy = join(name, 'copy');
    try {
      // Each program reads from its own descriptor's position.
      for (const flags of ['wx', 'r', 'r']) handles.push(await open(copy, flags, OWNER_ONLY));
    } finally {
      await rm(name, { recursive: true });
    }
    const [target, first, second] = handles as Three;
    await copyBackup(backup, target, folder);
    await checkDump(first);
    await fillPostgres(databaseUrl, second);
  } finally {
    for (const handle of handles) await handle.close();
  }
}

type Three = [FileHandle, FileHandle, FileHandle];

/** Holds the lock of the database meanwhile, so that no gateway begins there before it is complete. */
async function fillPostgres(databaseUrl: string, source: FileHandle): Promise<void> {
  const { default: pg } = await import('pg');
  const { LOCK_KEY } = await import('../../gateway/store/engines/postgres-session.ts');
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => undefined);
  const name = new URL(databaseUrl).pathname.slice(1);
  try {
    await client.connect();
    const tables = await client.query(
      "select 1 from pg_tables where schemaname in (current_schema(), 'cluster') limit 1",
    );
    if (tables.rows.length > 0) {
      const fix = 'make an empty one and name it in databaseUrl; the other stays what it is';
      throw new ConfigError(`the database ${name} is not empty`, fix);
    }
    const lock = await client.query<{ free: boolean }>(`select pg_try_advisory_lock(${LOCK_KEY}) as free`);
    if (lock.rows[0]?.free !== true) {
      throw new ConfigError(`a gateway uses the database ${name}`, 'end all gateways of it first, then try again');
    }
    await runTool('pg_restore', RESTORE, { databaseUrl, stdin: source.fd });
    await beginGeneration(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Stores that a restored database is another one than before, for the gateways that share it. So none of them takes newer
 * payments, which its mark in dataDir names, for a loss. Stopped before this, a start names them (clause STO-5).
 */
async function beginGeneration(client: ClientBase): Promise<void> {
  const { rows } = await client.query<{ shared: boolean }>(
    `select to_regclass('cluster.settings') is not null as shared`,
  );
  if (rows[0]?.shared === true) {
    await client.query('update cluster.settings set generation = $1', [systemRandom.uuid()]);
  }
}

/**
 * Runs a program of PostgreSQL. Its output goes to the file `stdout`, or nowhere. The password is in the environment,
 * because everyone can see arguments.
 */
async function runTool(
  tool: string,
  args: readonly string[],
  { databaseUrl, stdin, stdout }: { databaseUrl?: string; stdin?: number; stdout?: number },
): Promise<void> {
  const at = databaseUrl === undefined ? undefined : new URL(databaseUrl);
  const password = decodeURIComponent(at?.password ?? '');
  if (at !== undefined) at.password = '';
  const child = spawn(tool, at === undefined ? args : [`--dbname=${at.href}`, ...args], {
    stdio: [stdin ?? 'ignore', stdout ?? 'ignore', 'pipe'],
    env: { ...process.env, ...(password !== '' && { PGPASSWORD: password }) },
  });
  let said = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    said = `${said}${chunk}`.slice(-STDERR_CHARS_MAX);
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  }).catch((error: unknown) => {
    if (systemCodeOf(error) !== 'ENOENT') throw error;
    const fix =
      'install the client programs of PostgreSQL (on Debian postgresql-client), at least as new as the server';
    throw new MissingPeerError(`${tool} is not there`, fix, error);
  });
  if (code === 0) return;
  const fix = 'correct databaseUrl, or use client programs at least as new as the server';
  throw new PayboxError('NO_BACKUP', `${tool} failed: ${said.trim() || `it ended with ${code}`}`, {
    severity: 'fatal',
    fix,
  });
}
