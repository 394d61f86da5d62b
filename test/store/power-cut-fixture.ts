import { copyFileSync, fdatasync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { Kysely } from 'kysely';
import { expect, onTestFinished } from 'vitest';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import type { SyncFile } from '../../src/gateway/store/engines/wal-sync.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { opened } from './rows.ts';

const NAME = 'gateway.sqlite';
const WAL = `${NAME}-wal`;
const PARTS = [NAME, WAL];
/** What a disk writes at once, or not. */
const BLOCK_BYTES = 4096;
export const sync = promisify(fdatasync);

/** The file of a store of its own, whose waits for the disk go through `wait`. */
export async function openedFile(dataDir: string, wait: SyncFile): Promise<Kysely<Tables>> {
  await (await opened({ dataDir })).close();
  const { dialect } = sqliteFile(join(dataDir, NAME), keptLog().log, wait);
  const db = new Kysely<Tables>({ dialect });
  onTestFinished(() => db.destroy().catch(() => undefined));
  return db;
}

export async function keep(db: Kysely<Tables>, name: string): Promise<void> {
  await db.insertInto('settings').values({ name, value: name }).execute();
}

export function keptIn(db: Kysely<Tables>): Promise<string[]> {
  const rows = db.selectFrom('settings').select('name').where('name', 'like', 'row-%').execute();
  return rows.then((all) => all.map(({ name }) => name));
}

/** Cuts the power while rows are committed, at moments of this seed: every commit that was reported is in a sound file. */
export async function expectCommitsAfterCuts(seed: number): Promise<void> {
  const random = seededRandom(seed);
  const dataDir = await temporaryFolder();
  /** What the disk has for certain. */
  const certain = new Map<string, Buffer>();
  const cuts: { certain: Map<string, Buffer>; maybe: Map<string, Buffer>; told: string[] }[] = [];
  const told: string[] = [];
  const logBeforeDatabase: boolean[] = [];
  const now = () => new Map(PARTS.map((part) => [part, readFileSync(join(dataDir, part))]));
  const cut = () => cuts.push({ certain: new Map(certain), maybe: now(), told: [...told] });
  const db = await openedFile(dataDir, async (fd) => {
    const part = basename(readlinkSync(`/proc/self/fd/${fd}`));
    const content = readFileSync(join(dataDir, part));
    if (random.fraction() < 0.03) cut();
    // What the log lost, the database would have only in part.
    if (part === NAME) logBeforeDatabase.push(certain.get(WAL)?.equals(readFileSync(join(dataDir, WAL))) ?? false);
    await sync(fd);
    certain.set(part, content);
  });
  await keptIn(db);
  for (const [part, content] of now()) certain.set(part, content);
  for (let row = 0; row < 500; ) {
    const together = 1 + Math.floor(random.fraction() * 4);
    await Promise.all(
      Array.from({ length: together }, async (_, n) => {
        const name = `row-${row + n}`;
        await keep(db, name);
        told.push(name);
      }),
    );
    row += together;
    if (random.fraction() < 0.03) cut();
  }
  await db.destroy();
  expect(logBeforeDatabase).toEqual([true, true]);
  expect(cuts.length).toBeGreaterThan(5);
  for (const { told: expected, ...disk } of cuts) {
    const after = await temporaryFolder();
    for (const part of PARTS) {
      const [old, fresh] = [disk.certain.get(part), disk.maybe.get(part)];
      writeFileSync(join(after, part), mixed(old ?? Buffer.alloc(0), fresh ?? Buffer.alloc(0), random.fraction));
    }
    copyFileSync(join(dataDir, 'gateway.mark'), join(after, 'gateway.mark'));
    const found = new Kysely<Tables>({ dialect: sqliteFile(join(after, NAME), keptLog().log).dialect });
    const names = new Set(await keptIn(found));
    await found.destroy();
    expect(expected.filter((name) => !names.has(name))).toEqual([]);
  }
}

/** Each block as it certainly was, or as it was to become. */
function mixed(old: Buffer, fresh: Buffer, fraction: () => number): Buffer {
  const bytes = Math.max(old.length, fresh.length);
  const share = fraction();
  const blocks: Buffer[] = [];
  for (let at = 0; at < bytes; at += BLOCK_BYTES) {
    const from = fraction() < share ? fresh : old;
    blocks.push(Buffer.concat([from.subarray(at, at + BLOCK_BYTES)], Math.min(BLOCK_BYTES, bytes - at)));
  }
  return Buffer.concat(blocks);
}
