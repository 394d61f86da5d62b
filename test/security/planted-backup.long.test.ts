import { execFileSync } from 'node:child_process';
import { chown, lstat, mkdir, open, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Kysely, Migrator } from 'kysely';
import { describe, expect, it } from 'vitest';
import { openBackup } from '../../src/gateway/store/backup/backup-file.ts';
import { restoreBackup } from '../../src/gateway/store/backup/restore.ts';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import { MIGRATIONS } from '../../src/gateway/store/schema/migrations.ts';
import type { Tables } from '../../src/gateway/store/schema/tables.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { pay } from '../store/rows.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

const STORE = 'gateway.sqlite';
const SECRET = 'of somebody else';
/** The user of a service, in whose folder root restores. */
const SERVICE = 65_534;
const HUGE_BYTES = 2 ** 43;
const STAMP = '20300101T000000Z';

/** A backup with these payments. */
async function backupOf(...payments: string[]): Promise<{ folder: string; file: string }> {
  const folder = await temporaryFolder();
  const store = await openStore({ dataDir: join(folder, 'of') }, keptLog().log);
  for (const id of payments) await pay(store, id);
  const copy = await store.backup();
  await writeFile(join(folder, 'backup'), await copy.readFile());
  await copy.close();
  await store.close();
  return { folder, file: join(folder, 'backup') };
}

async function paymentsIn(dataDir: string): Promise<string[]> {
  const store = await openStore({ dataDir }, keptLog().log);
  const rows = await store.payments.newest(10);
  await store.close();
  return rows.map(({ id }) => id).toSorted();
}

function change(file: string, sql: string): void {
  const db = new DatabaseSync(file, { defensive: false });
  db.function('paybox_checksum', () => '');
  db.exec(`pragma journal_mode = delete; ${sql}`);
  db.close();
}

describe('who owns the folder of a store that root restores', () => {
  it.each([
    'gateway.mark.new',
    'gateway.mark',
    'gateway.incoming.mark',
    'gateway.incoming.mark.new',
    'gateway.incoming.sqlite',
    'gateway.restoring-20260101T000000Z.sqlite',
    'gateway.sqlite.restoring',
    'gateway.sqlite-wal',
    'gateway.sqlite-shm',
    STORE,
  ])('BAK-4 has no file written, nor given to him, by a link called %s', async (name) => {
    const { folder, file } = await backupOf('a');
    const [dataDir, victim] = [join(folder, 'data'), join(folder, 'victim')];
    await writeFile(victim, SECRET, { mode: 0o640 });
    const before = await stat(victim);
    await mkdir(dataDir);
    if (process.getuid?.() === 0) await chown(dataDir, SERVICE, SERVICE);
    await symlink(victim, join(dataDir, name));
    const restored = await payboxToEnd('restore', file, '--data', dataDir, '--replace');
    expect(restored).toMatchObject({ code: 0 });
    expect(await readFile(victim, 'utf8')).toBe(SECRET);
    const { uid, gid, mode } = await stat(victim);
    expect({ uid, gid, mode }).toEqual({ uid: before.uid, gid: before.gid, mode: before.mode });
    const owner = await stat(dataDir);
    for (const own of [STORE, 'gateway.mark']) {
      const made = await lstat(join(dataDir, own));
      expect([own, made.isFile(), made.uid, made.mode & 0o777]).toEqual([own, true, owner.uid, 0o600]);
    }
    expect(await paymentsIn(dataDir)).toEqual(['a']);
  });

  it("BAK-4 the owner of a store's folder holds up a restore by no pipe in the place of the store", async () => {
    const { folder, file } = await backupOf('a');
    const dataDir = join(folder, 'data');
    await mkdir(dataDir);
    execFileSync('mkfifo', [join(dataDir, STORE)]);
    expect(await payboxToEnd('restore', file, '--data', dataDir, '--replace')).toMatchObject({ code: 0 });
    expect(await paymentsIn(dataDir)).toEqual(['a']);
  });
});

describe('who owns the backup that is restored', () => {
  it.each([
    ['a pipe', 'it is not a file', async (file: string) => void execFileSync('mkfifo', [file])],
    ['a folder', 'it is not a file', async (file: string) => void (await mkdir(file))],
    ['a link', 'it is a link', async (file: string) => symlink((await backupOf('a')).file, file)],
    [
      'larger than the disk',
      'has no room',
      async (file: string) => {
        await writeFile(file, 'SQLite format 3\0');
        const handle = await open(file, 'r+');
        await handle.truncate(HUGE_BYTES);
        await handle.close();
      },
    ],
  ])('BAK-4 is refused at once where it is %s, and nothing is changed', async (_what, words, make) => {
    const folder = await temporaryFolder();
    const file = join(folder, 'backup');
    await make(file);
    const refused = await payboxToEnd('restore', file, '--data', join(folder, 'new', 'data'));
    expect(refused).toMatchObject({ code: 2, output: expect.stringContaining(words) });
    expect(await readdir(folder)).toEqual(['backup']);
  });

  it('BAK-4 the owner of a backup has none restored but the one that was opened and checked', async () => {
    const [{ folder, file }, evil] = [await backupOf('a'), await backupOf('a', 'b')];
    const swapped = await openBackup(file);
    await rename(evil.file, file);
    const { summary } = await restoreBackup(swapped, join(folder, 'data'), { replace: false, stamp: STAMP });
    await swapped.handle.close();
    expect(summary.payments).toBe(1);
    expect(await paymentsIn(join(folder, 'data'))).toEqual(['a']);

    const written = await openBackup(file);
    change(file, 'create trigger zz after insert on notices begin delete from notices; end');
    const other = join(folder, 'other');
    await expect(restoreBackup(written, other, { replace: false, stamp: STAMP })).rejects.toThrow('trigger "zz"');
    await written.handle.close();
    expect(await readdir(folder)).not.toContain('other');
  });
});

describe('a backup whose schema no gateway has made', () => {
  const drop = 'drop trigger notices_updated';
  it.each([
    ['it has a trigger "zz"', 'create trigger zz after insert on notices begin delete from notices; end'],
    ['it has a view "zz"', 'create view zz as select * from payments'],
    ['it has a table "zz"', 'create table zz (a)'],
    ['it has an index "zz"', 'create index zz on orders (sign)'],
    [
      'it has another trigger "notices_updated"',
      `${drop}; create trigger notices_updated after update of recorded on notices begin select 1; end`,
    ],
    ['it has no trigger "notices_updated"', drop],
    [
      'it has a trigger "sqlite_zz"',
      `create trigger zz after insert on notices begin delete from notices; end; pragma writable_schema = on;
       update sqlite_schema set name = 'sqlite_zz', sql = replace(sql, 'zz', 'sqlite_zz') where name = 'zz'`,
    ],
  ])('BAK-4 is refused as a backup: %s', async (words, sql) => {
    const { folder, file } = await backupOf('a');
    change(file, sql);
    const refused = await payboxToEnd('restore', file, '--data', join(folder, 'data'));
    expect(refused).toMatchObject({
      code: 2,
      output: expect.stringContaining(`${file} is not a backup of a gateway: ${words}`),
    });
    expect((await readdir(folder)).toSorted()).toEqual(['backup', 'of']);
  });

  it('BAK-4 a backup whose schema no gateway has made is not one of an older version', async () => {
    for (const made of Object.keys(MIGRATIONS).keys()) {
      const folder = await temporaryFolder();
      const file = join(folder, 'backup');
      const db = new Kysely<Tables>({ dialect: sqliteFile(file, keptLog().log).dialect });
      const older = Object.fromEntries(Object.entries(MIGRATIONS).slice(0, made + 1));
      const migrator = new Migrator({ db, provider: { getMigrations: async () => older } });
      const { error } = await migrator.migrateToLatest();
      await db.destroy();
      expect(error).toBeUndefined();
      const backup = await openBackup(file);
      await restoreBackup(backup, join(folder, 'data'), { replace: false, stamp: STAMP });
      await backup.handle.close();
      expect(await paymentsIn(join(folder, 'data'))).toEqual([]);
    }
  });
});
