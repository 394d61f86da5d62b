import { randomUUID } from 'node:crypto';
import { copyFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { JOURNAL_FILE } from '../../../src/device/agent/journal/journal.ts';
import type { Entry } from '../../../src/device/box/entry.ts';
import { ConfigError } from '../../../src/lib/errors.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { temporaryFolder } from '../../support/net.ts';
import { acked, open, payment, push, shown } from './support.ts';

/** Until a file that could not be opened is tried again. */
const REOPEN_MS = 1_000;

describe('the journal on disk', () => {
  it('MSG-6 the journal returns every entry in the order in which it was written', async () => {
    const folder = join(await temporaryFolder(), 'not', 'there', 'yet');
    const first = push();
    const entries = [first, shown(first), payment()];
    const before = open(folder);
    await before.journal.append(entries.slice(0, 2));
    await before.journal.append(entries.slice(2));
    before.journal.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual(entries);
    expect(journal.status()).toEqual({ ok: true, reason: null, complete: true, setAside: [] });
    expect(lines).toEqual([]);
  });

  it('AGT-8 an append is on the disk before it settles: a copy of the files at that moment has it', async () => {
    const folder = await temporaryFolder();
    const copy = await temporaryFolder();
    const entries = [push(), payment()];
    await open(folder).journal.append(entries);
    for (const file of readdirSync(folder)) {
      if (!file.endsWith('-shm')) copyFileSync(join(folder, file), join(copy, file));
    }
    expect(open(copy).journal.load()).toEqual(entries);
  });

  it('AGT-8 an append is flushed: a power cut cannot take it from the memory of the operating system', async () => {
    const opened = new Set<DatabaseSync>();
    const { exec } = DatabaseSync.prototype;
    const spied = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementation(function (this: DatabaseSync, sql) {
      opened.add(this);
      return exec.call(this, sql);
    });
    onTestFinished(() => spied.mockRestore());
    await open(await temporaryFolder()).journal.append([push()]);
    const [db, ...others] = opened;
    expect(others).toEqual([]);
    expect(db?.prepare('PRAGMA synchronous').get()).toEqual({ synchronous: 2 });
  });

  it('an append stores all of its entries or none', async () => {
    const folder = await temporaryFolder();
    const { journal } = open(folder);
    const unwritable = {
      kind: 'shown',
      pushId: randomUUID(),
      toJSON: () => {
        throw new Error('no');
      },
    } as unknown as Entry;
    await expect(journal.append([push(), unwritable])).rejects.toMatchObject({ code: 'STORAGE_FAULT' });
    journal.close();
    expect(open(folder).journal.load()).toEqual([]);
  });

  it('the journal writes a fact once, however often it is appended', async () => {
    const folder = await temporaryFolder();
    const entries = [push(), payment(), acked(randomUUID(), randomUUID())];
    const before = open(folder).journal;
    await before.append(entries);
    await before.append([...entries, ...entries]);
    before.close();
    const { journal } = open(folder);
    await journal.append(entries);
    journal.close();
    expect(open(folder).journal.load()).toEqual(entries);
  });

  it('the journal skips an entry that does not decode or was changed, and names its number', async () => {
    const folder = await temporaryFolder();
    const before = open(folder);
    const entries = [push(), payment(), push(), payment()];
    await before.journal.append(entries);
    before.journal.close();
    const db = new DatabaseSync(join(folder, JOURNAL_FILE));
    db.exec(`UPDATE entries SET crc = NULL, json = '{"kind":"payment"' WHERE seq = 1;
             UPDATE entries SET json = replace(json, '50000', '50001') WHERE seq = 2;
             UPDATE entries SET crc = NULL, json = '{"kind":"tea"}' WHERE seq = 3`);
    db.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual([entries[3]]);
    expect(lines).toMatchObject([{ event: 'journal-entries-skipped', count: 3, seqs: '1, 2, 3', reason: 'not JSON' }]);
  });

  it('a journal belongs to one program: a second one on the same folder waits until the first has ended', async () => {
    const folder = await temporaryFolder();
    const theirs = push();
    const first = open(folder).journal;
    await first.append([theirs]);
    expect(() => open(folder)).toThrow(ConfigError);
    expect(() => open(folder)).toThrow(/another program has the journal open: .*journal\.db/);
    await first.append([payment()]);
    first.close();
    expect(open(folder).journal.load()).toHaveLength(2);
  });

  it('a journal belongs to one box: that of another terminalCode is set aside as it is, and a fresh one begins', async () => {
    const folder = await temporaryFolder();
    const theirs = [push(), payment()];
    const before = open(folder, 'VVB000002');
    await before.journal.append(theirs);
    before.journal.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual([]);
    expect(lines).toMatchObject([{ event: 'journal-set-aside', reason: 'it is the journal of VVB000002', saved: 0 }]);
    const mine = push();
    await journal.append([mine]);
    journal.close();
    const [aside, ...more] = readdirSync(folder).filter((it) => /\.another-box-[\dTZ-]+$/.test(it));
    expect(more).toEqual([]);
    const after = open(folder).journal;
    expect(after.status().setAside).toEqual([aside]);
    expect(after.load()).toEqual([mine]);
    const elsewhere = await temporaryFolder();
    copyFileSync(join(folder, String(aside)), join(elsewhere, JOURNAL_FILE));
    expect(open(elsewhere, 'VVB000002').journal.load()).toEqual(theirs);
  });

  it('the journal answers STORAGE_FAULT for a folder that cannot be made, again and again, until it can be', async () => {
    const [parent, clock] = [await temporaryFolder(), new VirtualClock()];
    const folder = join(parent, 'data');
    writeFileSync(folder, 'a file where the folder should be');
    const { journal, events } = open(folder, undefined, clock);
    expect(events()).toEqual(['journal-not-opened']);
    expect(journal.load()).toEqual([]);
    for (const _ of [1, 2]) {
      await expect(journal.append([push()])).rejects.toMatchObject({ code: 'STORAGE_FAULT' });
      await clock.advance(REOPEN_MS);
    }
    expect(journal.status().ok).toBe(false);
    rmSync(folder);
    const first = push();
    await journal.append([first]);
    expect(journal.load()).toEqual([first]);
  });

  it('a journal of a newer program is set aside, with what can be read of it', async () => {
    const folder = await temporaryFolder();
    const entry = payment();
    const before = open(folder).journal;
    await before.append([entry]);
    before.close();
    const db = new DatabaseSync(join(folder, JOURNAL_FILE));
    db.exec(`PRAGMA user_version = 2; INSERT INTO entries (kind, json) VALUES ('new', '{"kind":"new"}')`);
    db.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual([entry]);
    expect(lines).toMatchObject([{ event: 'journal-set-aside', why: 'other-version', saved: 1 }]);
    expect(journal.status().setAside).toEqual([expect.stringContaining('journal.db.other-version-')]);
  });

  it('a journal that was written without checksums can be opened', async () => {
    const folder = await temporaryFolder();
    const entries = [push(), payment()];
    const db = new DatabaseSync(join(folder, JOURNAL_FILE));
    db.exec(`CREATE TABLE entries (seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, json TEXT NOT NULL) STRICT;
             CREATE TABLE owner (terminalCode TEXT NOT NULL) STRICT;
             INSERT INTO owner VALUES ('VVB000001'); PRAGMA user_version = 1; PRAGMA journal_mode = WAL`);
    const insert = db.prepare('INSERT INTO entries (kind, json) VALUES (?, ?)');
    for (const entry of entries) insert.run(entry.kind, JSON.stringify(entry));
    db.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual(entries);
    const more = payment();
    await journal.append([more]);
    journal.close();
    expect(open(folder).journal.load()).toEqual([...entries, more]);
    expect(lines).toEqual([]);
  });

  it('a journal deleted or moved away while the box runs is written anew, with all that the box knows', async () => {
    const folder = await temporaryFolder();
    const { journal, events } = open(folder);
    const [first, second, third] = [payment(), payment(), payment()];
    await journal.append([first]);
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    await journal.append([second]);
    renameSync(folder, `${folder}-elsewhere`);
    await journal.append([third]);
    rmSync(`${folder}-elsewhere`, { recursive: true });
    journal.close();
    expect(events().filter((event) => event === 'journal-file-removed')).toHaveLength(2);
    expect(open(folder).journal.load()).toEqual([first, second, third]);
  });

  it('a journal replaced by another file while the box runs is used as it is, with all that the box knows', async () => {
    const [folder, other] = [await temporaryFolder(), await temporaryFolder()];
    const [mine, theirs, later] = [payment(), payment(), payment()];
    const before = open(other).journal;
    await before.append([theirs]);
    before.close();
    const { journal, events } = open(folder);
    await journal.append([mine]);
    for (const name of readdirSync(folder)) if (name !== JOURNAL_FILE) rmSync(join(folder, name));
    renameSync(join(other, JOURNAL_FILE), join(folder, JOURNAL_FILE));
    expect(journal.reopen()).toEqual([theirs]);
    await journal.append([later]);
    journal.close();
    expect(events()).toContain('journal-file-removed');
    expect(open(folder).journal.load()).toEqual([theirs, mine, later]);
  });
});
