import { randomUUID } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmdirSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Writable } from 'node:stream';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { JOURNAL_FILE, openJournal } from '../../src/agent/journal.ts';
import { entriesToKeep } from '../../src/agent/journal-compaction.ts';
import type { Entry } from '../../src/box/entry.ts';
import { restore } from '../../src/box/restore.ts';
import { UNSENT_MAX } from '../../src/box/state.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { temporaryFolder } from '../support/net.ts';

const CONFIG = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', version: '1', paidHoldMs: 1, endedHoldMs: 1 };
const AT = { monotonicMs: 1000, wallMs: 1_700_000_000_000 };

function open(folder: string, terminalCode = CONFIG.terminalCode) {
  const lines: string[] = [];
  const out = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  const journal = openJournal(folder, terminalCode, {
    clock: systemClock,
    log: createLogger(out, systemClock, 'json'),
  });
  onTestFinished(() => journal.close());
  return { journal, lines };
}

function push(pushId: string = randomUUID()): Entry & { kind: 'push' } {
  const holder = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
  const order = { pushId, orderId: 'DH1', amount: 50_000, content: 'Cà phê', qrCode: '000201', holder };
  return { kind: 'push', order: { ...order, expiresAtMs: AT.wallMs + 60_000, lifetimeMs: 60_000 } };
}

function payment(transactionId: string = randomUUID(), pushId: string | null = null): Entry {
  const paid = { transactionId, orderId: 'DH1', amount: 50_000, content: 'Cà phê', paidAtMs: AT.wallMs };
  return { kind: 'payment', payment: paid, pushId };
}

const ended = (pushId: string): Entry => ({ kind: 'ended', pushId, orderId: 'DH1', how: 'expired' });

describe('the journal on disk', () => {
  it('MSG-6 gives back every entry in the order in which it was written', async () => {
    const folder = join(await temporaryFolder(), 'not', 'there', 'yet');
    const first = push();
    const entries = [first, { kind: 'shown', pushId: first.order.pushId } as const, payment()];
    const before = open(folder);
    await before.journal.append(entries.slice(0, 2));
    await before.journal.append(entries.slice(2));
    before.journal.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual(entries);
    expect(lines).toEqual([]);
  });

  it('AGT-8 has an append on the disk before it settles: a copy of the files at that moment has it', async () => {
    const folder = await temporaryFolder();
    const copy = await temporaryFolder();
    const entries = [push(), payment()];
    await open(folder).journal.append(entries);
    for (const file of readdirSync(folder)) {
      if (!file.endsWith('-shm')) copyFileSync(join(folder, file), join(copy, file));
    }
    expect(open(copy).journal.load()).toEqual(entries);
  });

  it('keeps all entries of an append or none', async () => {
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
    expect(open(folder).journal.load()).toEqual([]);
  });

  it('skips an entry that does not decode, and names its number', async () => {
    const folder = await temporaryFolder();
    const before = open(folder);
    const entries = [push(), payment(), push()];
    await before.journal.append(entries);
    before.journal.close();
    const db = new DatabaseSync(join(folder, JOURNAL_FILE));
    db.exec(
      `UPDATE entries SET json = '{"kind":"payment"' WHERE seq = 1; UPDATE entries SET json = '{"kind":"tea"}' WHERE seq = 3`,
    );
    db.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual([entries[1]]);
    expect(lines.map((line) => JSON.parse(line).seq)).toEqual([1, 3]);
    expect(lines.join('')).toContain('not JSON');
  });

  it('STORAGE_FAULT tells of another program that has it open, and the next append works once that has ended', async () => {
    const folder = await temporaryFolder();
    const theirs = push();
    const first = open(folder).journal;
    await first.append([theirs]);
    const { journal, lines } = open(folder);
    expect(lines.map((line) => JSON.parse(line).event)).toEqual(['journal-unavailable']);
    expect(journal.load()).toEqual([]);
    const refused = journal.append([payment()]);
    await expect(refused).rejects.toMatchObject({ code: 'STORAGE_FAULT', severity: 'retryable' });
    await expect(refused).rejects.toThrow(/another program has the journal open/);
    await expect(refused).rejects.toHaveProperty('fix', expect.stringContaining('end the other program'));
    const more = payment();
    await first.append([more]);
    first.close();
    const last = payment();
    await journal.append([last]);
    expect(journal.load()).toEqual([theirs, more, last]);
  });

  it("is one box's only: that of another terminalCode is set aside as it is, and a fresh one begins", async () => {
    const folder = await temporaryFolder();
    const theirs = [push(), payment()];
    const before = open(folder, 'VVB000002');
    await before.journal.append(theirs);
    before.journal.close();
    const { journal, lines } = open(folder);
    expect(journal.load()).toEqual([]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { event: 'journal-of-another-box', terminalCode: 'VVB000002' },
    ]);
    const mine = push();
    await journal.append([mine]);
    journal.close();
    const [aside, ...more] = readdirSync(folder).filter((it) => /\.another-box-[\dTZ-]+$/.test(it));
    expect(more).toEqual([]);
    const elsewhere = await temporaryFolder();
    copyFileSync(join(folder, String(aside)), join(elsewhere, JOURNAL_FILE));
    expect(open(elsewhere, 'VVB000002').journal.load()).toEqual(theirs);
    expect(open(folder).journal.load()).toEqual([mine]);
  });

  it('STORAGE_FAULT tells of a file that cannot be opened, again and again, until it can be', async () => {
    const folder = await temporaryFolder();
    mkdirSync(join(folder, JOURNAL_FILE));
    const { journal, lines } = open(folder);
    expect(lines.join('')).toContain('journal-unavailable');
    expect(journal.load()).toEqual([]);
    for (const _ of [1, 2]) {
      await expect(journal.append([push()])).rejects.toMatchObject({ code: 'STORAGE_FAULT' });
    }
    rmdirSync(join(folder, JOURNAL_FILE));
    const first = push();
    await journal.append([first]);
    expect(journal.load()).toEqual([first]);
  });

  it('leaves a journal of a newer program alone', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, JOURNAL_FILE);
    const db = new DatabaseSync(file);
    db.exec('PRAGMA user_version = 2');
    db.close();
    const { journal } = open(folder);
    await expect(journal.append([push()])).rejects.toThrow(/version 2/);
    expect(readdirSync(folder).filter((name) => name.includes('damaged'))).toEqual([]);
  });
});

describe('a damaged journal', () => {
  async function filled(): Promise<{ folder: string; file: string }> {
    const folder = await temporaryFolder();
    const { journal } = open(folder);
    for (let index = 0; index < 40; index += 1) await journal.append([push(), payment()]);
    journal.close();
    return { folder, file: join(folder, JOURNAL_FILE) };
  }

  const damages: [string, (file: string) => void][] = [
    ['is no database', (file) => writeFileSync(file, 'the dog ate it '.repeat(100))],
    ['ends in the middle', (file) => truncateSync(file, 8_192 + 100)],
    [
      'has zeros where pages were',
      (file) => {
        const bytes = readFileSync(file);
        bytes.fill(0, 4_096, 12_288);
        writeFileSync(file, bytes);
      },
    ],
    [
      'has a torn header',
      (file) => {
        const bytes = readFileSync(file);
        bytes.fill(0xff, 16, 100);
        writeFileSync(file, bytes);
      },
    ],
  ];
  for (const [name, damage] of damages) {
    it(`that ${name} is set aside as it is, and a fresh one begins`, async () => {
      const { folder, file } = await filled();
      damage(file);
      const bytes = readFileSync(file);
      const { journal, lines } = open(folder);
      expect(journal.load()).toEqual([]);
      const [aside, ...more] = readdirSync(folder).filter((it) => /\.damaged-[\dTZ-]+$/.test(it));
      expect(more).toEqual([]);
      expect(readFileSync(join(folder, String(aside)))).toEqual(bytes);
      expect(lines.map((line) => JSON.parse(line).event)).toEqual(['journal-damaged']);
      const entry = push();
      await journal.append([entry]);
      expect(journal.load()).toEqual([entry]);
    });
  }
});

/** A history as a box writes it: pushes shown or not, ended, refused, paid, acknowledged, now and then lost. */
const history = fc
  .array(fc.record({ how: fc.nat(9), paid: fc.nat(3), acked: fc.nat(9), known: fc.boolean() }), {
    minLength: 0,
    maxLength: 2_500,
    size: 'max',
  })
  .map((steps) => {
    const entries: Entry[] = [];
    for (const { how, paid, acked, known } of steps) {
      const one = push();
      const { pushId } = one.order;
      const reports: string[] = [];
      entries.push(one);
      if (how > 0) entries.push({ kind: 'shown', pushId });
      if (paid === 0) {
        const transactionId = randomUUID();
        entries.push(payment(transactionId, known && how !== 1 ? pushId : null));
        reports.push(transactionId);
      }
      if (how > 3) {
        entries.push(ended(pushId));
        reports.push(pushId);
      } else if (how === 2) {
        entries.push({ kind: 'refused', pushId });
      }
      if (acked > 1 && reports.length > 0) entries.push({ kind: 'acked', ids: reports });
    }
    return entries;
  });

describe('compaction', () => {
  it('AGT-5 restores the same box before and after, whatever the history', () => {
    let shorter = 0;
    fc.assert(
      fc.property(history, (entries) => {
        const kept = entriesToKeep(entries);
        if (kept.size < entries.length) shorter += 1;
        const compacted = entries.filter((_, index) => kept.has(index));
        const [before, after] = [restore(CONFIG, entries, AT), restore(CONFIG, compacted, AT)];
        fc.pre(before.unsent.length <= UNSENT_MAX);
        return isDeepStrictEqual(after, before);
      }),
      { numRuns: 60, endOnFailure: true },
    );
    expect(shorter).toBeGreaterThan(0);
  });

  it('has a bound, even when nothing was ever acknowledged or ended', () => {
    const endless = Array.from({ length: 20_000 }, (_, index) => {
      const one = push();
      const shown: Entry = { kind: 'shown', pushId: one.order.pushId };
      return index % 2 === 0 ? [one, shown] : [payment(), ended(randomUUID())];
    }).flat();
    expect(entriesToKeep(endless).size).toBeLessThan(5_000);
  });

  it('runs on load and keeps what is owed and open, on the disk too', async () => {
    const folder = await temporaryFolder();
    const [owed, current] = [payment(), push()];
    const closed = Array.from({ length: 3_000 }, (): Entry[] => {
      const pushId = randomUUID();
      return [push(pushId), ended(pushId), { kind: 'acked', ids: [pushId] }];
    }).flat();
    const entries: Entry[] = [owed, ...closed, current, { kind: 'shown', pushId: current.order.pushId }];
    const before = open(folder);
    for (let start = 0; start < 6_000; start += 1_000) await before.journal.append(entries.slice(start, start + 1_000));
    before.journal.load();
    await before.journal.append(entries.slice(6_000));
    expect(before.journal.load().length).toBeGreaterThan(4_000);
    before.journal.close();
    const { journal } = open(folder);
    expect(journal.load().length).toBeLessThan(2_200);
    expect(isDeepStrictEqual(restore(CONFIG, journal.load(), AT), restore(CONFIG, entries, AT))).toBe(true);
  });

  it('runs while the box runs too', async () => {
    const { journal } = open(await temporaryFolder());
    const pushId = randomUUID();
    const many = Array.from({ length: 8_001 }, (): Entry => ({ kind: 'acked', ids: [pushId] }));
    await journal.append(many);
    expect(journal.load()).toEqual([]);
  });
});
