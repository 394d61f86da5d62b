import { spawn } from 'node:child_process';
import { ConfigError, MissingPeerError, PayboxError, systemCodeOf } from '../lib/errors.ts';

const STDERR_CHARS_MAX = 4_000;

/** Writes a PostgreSQL database into a file that is there. Throws MissingPeerError, and PayboxError with what pg_dump says. */
export async function dumpPostgres(databaseUrl: string, file: string): Promise<void> {
  await runTool('pg_dump', ['--format=custom', '--no-owner', '--no-privileges', `--file=${file}`], databaseUrl);
}

/** Reads a file of pg_dump through to its end. Throws PayboxError when it cannot be. */
export async function checkDump(file: string): Promise<void> {
  await runTool('pg_restore', ['--file=/dev/null', file], undefined);
}

/** Fills an empty database: whole or not at all. Throws ConfigError for one that holds something. */
export async function restorePostgres(databaseUrl: string, file: string): Promise<void> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => undefined);
  try {
    await client.connect();
    const tables = await client.query('select 1 from pg_tables where schemaname = current_schema() limit 1');
    if (tables.rows.length > 0) {
      const fix = 'make an empty one and name it in databaseUrl; the other stays what it is';
      throw new ConfigError(`the database ${new URL(databaseUrl).pathname.slice(1)} is not empty`, fix);
    }
  } finally {
    await client.end().catch(() => undefined);
  }
  const whole = ['--single-transaction', '--exit-on-error', '--no-owner', '--no-privileges'];
  await runTool('pg_restore', [...whole, file], databaseUrl);
}

/** The password goes by the environment: arguments are for all to see. */
async function runTool(tool: string, args: readonly string[], databaseUrl: string | undefined): Promise<void> {
  const at = databaseUrl === undefined ? undefined : new URL(databaseUrl);
  const password = decodeURIComponent(at?.password ?? '');
  if (at !== undefined) at.password = '';
  const child = spawn(tool, at === undefined ? args : [`--dbname=${at.href}`, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, ...(password !== '' && { PGPASSWORD: password }) },
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
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
