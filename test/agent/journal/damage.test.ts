import { mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { JOURNAL_FILE } from '../../../src/device/agent/journal/journal.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { temporaryFolder } from '../../support/net.ts';
import { expectToBeAmong, expectToStart, filled } from './damage-fixture.ts';
import { AT, open, payment, push } from './support.ts';

const aside = (folder: string) => readdirSync(folder).filter((it) => /\.damaged-[\dTZ-]+$/.test(it));

describe('a damaged journal', () => {
  const damages: [name: string, least: number, damage: (file: string) => void][] = [
    ['is no database', 0, (file) => writeFileSync(file, 'the dog ate it '.repeat(100))],
    ['ends in the middle', 10, (file) => truncateSync(file, 32_768 + 100)],
    [
      'has zeros where pages were',
      10,
      (file) => {
        const bytes = readFileSync(file);
        bytes.fill(0, 28_672, 32_768);
        writeFileSync(file, bytes);
      },
    ],
    [
      'has a torn header',
      0,
      (file) => {
        const bytes = readFileSync(file);
        bytes.fill(0xff, 16, 100);
        writeFileSync(file, bytes);
      },
    ],
  ];
  for (const [name, least, damage] of damages) {
    it(`a journal that ${name} is set aside as it is, and a fresh one begins with what could be read`, async () => {
      const { folder, file, entries } = await filled();
      damage(file);
      const bytes = readFileSync(file);
      const { journal, lines } = open(folder);
      const saved = [...journal.load()];
      expectToBeAmong(saved, entries);
      expect(saved.length).toBeGreaterThanOrEqual(least);
      expect(saved.length).toBeLessThan(entries.length);
      const [name, ...more] = aside(folder);
      expect(more).toEqual([]);
      expect(readFileSync(join(folder, String(name)))).toEqual(bytes);
      expect(lines.filter((line) => line.event === 'journal-set-aside')).toMatchObject([{ saved: saved.length }]);
      expect(journal.status()).toEqual({ ok: true, reason: null, complete: false, setAside: [name] });
      const entry = push();
      await journal.append([entry]);
      journal.close();
      const after = open(folder).journal;
      expect(after.load()).toEqual([...saved, entry]);
      expect(after.status().setAside).toEqual([name]);
    });
  }

  it('the newest entries of a damaged journal are saved from its write-ahead log', async () => {
    const { folder, file, entries } = await filled({ keepLog: true });
    const bytes = readFileSync(file);
    bytes.writeUInt32BE(77, 60);
    writeFileSync(file, bytes);
    expect(open(folder).journal.load()).toEqual(entries);
  });

  it('a journal is read without an entry that stands under the number of another', async () => {
    const { folder, file, entries } = await filled();
    const db = new DatabaseSync(file);
    db.exec('UPDATE entries SET seq = 99999 WHERE seq = (SELECT min(seq) FROM entries)');
    db.close();
    const { journal, events } = open(folder);
    expect(journal.load()).toEqual(entries.slice(1));
    expect(events()).toContain('journal-entries-skipped');
  });

  it('a journal whose damage shows while the box runs is set aside too, and loses nothing that the box has in memory', async () => {
    const { folder, file, entries } = await filled();
    const clock = new VirtualClock(AT.wallMs);
    const { journal, events } = open(folder, undefined, clock);
    const bytes = readFileSync(file);
    bytes.fill(0x55, 4_096);
    writeFileSync(file, bytes);
    const more = Array.from({ length: 400 }, () => payment());
    let refused = 0;
    for (const entry of more) {
      await journal.append([entry]).catch(async () => {
        refused += 1;
        await clock.advance(1_000);
        await journal.append([entry]);
      });
    }
    journal.close();
    expect(refused + events().length, 'the damage was met').toBeGreaterThan(0);
    expect(open(folder).journal.load()).toEqual([...entries, ...more]);
  });

  it('AGT-11 a damaged journal marks this run and later ones as incomplete until a technician has removed it', async () => {
    const { folder, file } = await filled();
    truncateSync(file, 32_768 + 100);
    const { journal } = open(folder);
    expect(journal.status().complete).toBe(false);
    journal.close();
    await journal.append([payment()]);
    expect(journal.status()).toMatchObject({ ok: true, complete: false });
    journal.close();
    const later = open(folder).journal;
    expect(later.status()).toMatchObject({ ok: true, complete: false });
    later.close();
    for (const name of aside(folder)) rmSync(join(folder, name));
    expect(open(folder).journal.status()).toMatchObject({ ok: true, complete: true, setAside: [] });
  });

  it('the five newest damaged journals are kept for a technician', async () => {
    const folder = await temporaryFolder();
    const names = new Set<string>();
    for (let n = 0; n < 8; n += 1) {
      writeFileSync(join(folder, JOURNAL_FILE), `no database ${n}`);
      const { journal } = open(folder, undefined, new VirtualClock(AT.wallMs + Math.floor(n / 2)));
      for (const name of journal.status().setAside) names.add(name);
      journal.close();
    }
    const kept = aside(folder).map((name) => readFileSync(join(folder, name), 'utf8'));
    expect(kept.sort()).toEqual([3, 4, 5, 6, 7].map((n) => `no database ${n}`));
    expect(names.size).toBe(8);
    expect(open(folder).journal.status().setAside).toHaveLength(5);
  });
});

describe('whatever is found in its place, the box starts', () => {
  it.each([0, 1, 99, 100, 511, 4_095, 4_096, 4_097, 8_192, 12_000, 20_480])(
    'a box starts with a journal cut to %i bytes',
    async (size) => {
      const { folder, file, entries } = await filled();
      truncateSync(file, size);
      await expectToStart(folder, entries);
    },
  );

  it('a box starts with a folder in the place of its journal', async () => {
    const folder = await temporaryFolder();
    mkdirSync(join(folder, JOURNAL_FILE, 'deep'), { recursive: true });
    await expectToStart(folder, []);
    expect(aside(folder)).toHaveLength(1);
  });

  it.each(['garbage '.repeat(2_000), ''])(
    'a box starts with a write-ahead log of garbage in the place of its own (%#)',
    async (garbage) => {
      const { folder, file, entries } = await filled();
      writeFileSync(`${file}-wal`, garbage);
      expect(await expectToStart(folder, entries)).toBe(entries.length);
    },
  );
});
