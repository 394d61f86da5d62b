import { randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { entriesToKeep, SETTLED_AGE_MAX_MS } from '../../../src/device/agent/journal/compaction.ts';
import { JOURNAL_FILE } from '../../../src/device/agent/journal/journal.ts';
import type { Entry } from '../../../src/device/box/entry.ts';
import { RECENT_MAX } from '../../../src/device/box/state.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { revived } from '../../box/support.ts';
import { temporaryFolder } from '../../support/net.ts';
import { fc } from '../../support/properties.ts';
import { AT, acked, ended, open, payment, push, shown } from './support.ts';

const DAY_MS = 86_400_000;

/** A history as a box writes it: pushes shown or not, ended, refused, paid, told, acknowledged, now and then lost. */
const history = fc
  .array(fc.record({ how: fc.nat(9), paid: fc.nat(3), acks: fc.nat(9), known: fc.boolean(), seen: fc.nat(9) }), {
    minLength: 0,
    maxLength: 2_500,
    size: 'max',
  })
  .map((steps) => {
    const entries: Entry[] = [];
    for (const { how, paid, acks, known, seen } of steps) {
      const one = push();
      const { pushId } = one.order;
      const reports: string[] = [];
      entries.push(one);
      if (how > 0) entries.push(shown(one));
      if (paid === 0) {
        const transactionId = randomUUID();
        entries.push(payment(transactionId, known && how !== 1 ? pushId : null));
        if (seen > 0) entries.push({ kind: 'payment-displayed', transactionId });
        reports.push(transactionId);
      }
      if (how > 3) {
        entries.push(ended(pushId));
        reports.push(pushId);
      } else if (how === 2) {
        entries.push({ kind: 'refused', pushId });
      }
      if (seen === 1)
        entries.push({ kind: 'account', account: one.order.holder, announcedAtMs: AT.wallMs + entries.length });
      if (acks > 1 && reports.length > 0) entries.push(acked(...reports));
    }
    return entries;
  });

describe('compaction', () => {
  it('AGT-5 a compacted journal restores the same box before, after and in the middle, whatever the history', () => {
    let shorter = 0;
    fc.assert(
      fc.property(history, fc.nat(100), (entries, percent) => {
        const kept = entriesToKeep(entries, AT.wallMs);
        if (kept.size < entries.length) shorter += 1;
        const doomed = entries.map((_, index) => index).filter((index) => !kept.has(index));
        const gone = new Set(doomed.slice(0, (doomed.length * percent) / 100));
        const states = [
          entries,
          entries.filter((_, index) => !gone.has(index)),
          entries.filter((_, index) => kept.has(index)),
        ].map((them) => revived(them, AT));
        return isDeepStrictEqual(states[1], states[0]) && isDeepStrictEqual(states[2], states[0]);
      }),
      { numRuns: 60, endOnFailure: true },
    );
    expect(shorter).toBeGreaterThan(0);
  });

  it('a compacted journal is bounded, even when nothing was ever acknowledged or ended', () => {
    const endless = Array.from({ length: 20_000 }, (_, index) => {
      const one = push();
      return index % 2 === 0 ? [one, shown(one)] : [payment(), ended(randomUUID())];
    }).flat();
    expect(entriesToKeep(endless, AT.wallMs).size).toBeLessThanOrEqual(6_000);
  });

  it('a compacted journal has the same bound when everything was seen and acknowledged one by one', () => {
    const busy = Array.from({ length: 10_000 }, () => {
      const one = push();
      const paid = payment();
      const { pushId } = one.order;
      const { transactionId } = paid.payment;
      const told: Entry = { kind: 'payment-displayed', transactionId };
      return [one, shown(one), paid, told, acked(transactionId), ended(pushId), acked(pushId)];
    }).flat();
    expect(entriesToKeep(busy, AT.wallMs).size).toBeLessThanOrEqual(6_000);
  });

  it('compaction drops what is settled and old by the time of the entries, and nothing that is unsent', () => {
    const aged = AT.wallMs - SETTLED_AGE_MAX_MS - 1;
    const [owed, unended, recent] = [payment(undefined, null, aged), push(undefined, aged), payment()];
    const settled = Array.from({ length: 10 }, () => payment(undefined, null, aged));
    const entries: Entry[] = [
      owed,
      unended,
      shown(unended),
      ...settled.flatMap((it) => [it, acked(it.payment.transactionId)]),
      recent,
      acked(recent.payment.transactionId),
    ];
    const left = (wallMs: number) => entries.filter((_, index) => entriesToKeep(entries, wallMs).has(index));
    expect(left(AT.wallMs), 'what is owed, and the payments that a person can look back on').toEqual([
      ...entries.slice(0, 3),
      ...entries.slice(-2 * RECENT_MAX),
    ]);
    for (const wallMs of [0, AT.wallMs - 2]) expect(left(wallMs), 'a clock in the past').toEqual(entries);
    const future = left(AT.wallMs * 10);
    expect(future).toContainEqual(owed);
    expect(future).toContainEqual(unended);
    expect(revived(future, AT).unsent).toEqual(revived(entries, AT).unsent);
  });

  it('compaction drops nothing by a calendar that is 31 days ahead', () => {
    const settled = Array.from({ length: 2 * RECENT_MAX }, () => payment(undefined, null, AT.wallMs - DAY_MS));
    const entries: Entry[] = settled.flatMap((it) => [it, acked(it.payment.transactionId)]);
    expect(entriesToKeep(entries, AT.wallMs + 31 * DAY_MS).size).toBe(entries.length);
  });

  it('AGT-10 compaction keeps the newest payments whose screen nobody saw, however old and settled they are', () => {
    const aged = AT.wallMs - SETTLED_AGE_MAX_MS - 1;
    const settled = (paidAtMs: number, isSeen: boolean): Entry[] => {
      const paid = payment(undefined, null, paidAtMs);
      const { transactionId } = paid.payment;
      return [paid, acked(transactionId), ...(isSeen ? [{ kind: 'payment-displayed' as const, transactionId }] : [])];
    };
    const unseen = Array.from({ length: RECENT_MAX + 1 }, () => settled(aged, false)).flat();
    const seen = Array.from({ length: RECENT_MAX }, () => settled(aged, true)).flat();
    const entries = [...unseen, ...seen, push()];
    const kept = entriesToKeep(entries, AT.wallMs);
    expect(entries.filter((_, index) => kept.has(index))).toEqual(entries.slice(2));
  });

  it('compaction runs when the journal is opened and keeps what is unsent and open, on the disk too', async () => {
    const folder = await temporaryFolder();
    const [owed, current] = [payment(), push()];
    const closed = Array.from({ length: 3_000 }, (): Entry[] => {
      const pushId = randomUUID();
      return [push(pushId), ended(pushId), acked(pushId)];
    }).flat();
    const entries: Entry[] = [owed, ...closed, current, shown(current)];
    const before = open(folder);
    await before.journal.append(entries);
    expect(before.journal.load()).toHaveLength(entries.length);
    before.journal.close();
    const { journal } = open(folder);
    expect(journal.load().length).toBeLessThan(2_200);
    journal.close();
    const after = open(folder).journal.load();
    expect(after).toEqual(journal.load());
    expect(isDeepStrictEqual(revived(after, AT), revived(entries, AT))).toBe(true);
  });

  it('AGT-13 compaction keeps the newest account that people were shown, also one that came back', async () => {
    const folder = await temporaryFolder();
    const [first, second] = ['0123456789', '9988776655'].map((bankAccount) => ({
      ...{ bankAccount, bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
    }));
    const links = [first, second, first].map((link, index): Entry => {
      if (link === undefined) throw new Error('no link');
      return { kind: 'account', account: link, announcedAtMs: AT.wallMs + index };
    });
    const { journal } = open(folder);
    for (const entry of links) await journal.append([entry]);
    journal.close();
    const after = open(folder).journal.load();
    expect(after).toEqual(links);
    expect(revived(after, AT).announcedAccount).toEqual(first);
    expect([...entriesToKeep(links, AT.wallMs)]).toEqual([2]);
  });

  it('compaction runs while the box runs, some entries with each append, and frees room', async () => {
    const folder = await temporaryFolder();
    const { journal } = open(folder);
    const sizes = () => ['', '-wal'].map((suffix) => statSync(join(folder, JOURNAL_FILE + suffix)).size);
    const counts: number[] = [];
    let largest = 0;
    for (let n = 0; n < 300; n += 1) {
      const some = Array.from({ length: 50 }, () => push()).map((one) => [one, ended(one.order.pushId)]);
      const ids = some.flat().flatMap((entry) => (entry.kind === 'push' ? [entry.order.pushId] : []));
      await journal.append([...some.flat(), acked(...ids)]);
      counts.push(journal.load().length);
      largest = Math.max(largest, ...sizes());
    }
    const drops = counts.slice(1).map((count, index) => (counts[index] ?? 0) + 101 - count);
    expect(Math.max(...counts)).toBeLessThan(13_000);
    expect(Math.max(...drops), 'removed at once').toBe(500);
    expect(counts.filter((count) => count < 4_000).length, 'the start, and after each compaction').toBeGreaterThan(60);
    const [size = 0, log = 0] = sizes();
    expect(size).toBeLessThan(largest);
    expect(log).toBeLessThan(2_000_000);
    journal.close();
    expect(statSync(join(folder, JOURNAL_FILE)).size).toBeLessThan(5_000_000);
  });

  it('compaction looks for old entries when the journal is opened, and once a day', async () => {
    const [folder, clock] = [await temporaryFolder(), new VirtualClock(AT.wallMs)];
    const { journal } = open(folder, undefined, clock);
    const settled = Array.from({ length: 10 }, () => payment()).flatMap((it) => [it, acked(it.payment.transactionId)]);
    await journal.append(settled);
    await clock.advance(SETTLED_AGE_MAX_MS);
    await journal.append([push(undefined, clock.wallMs() + 60_000)]);
    expect(journal.load()).toHaveLength(21);
    await clock.advance(DAY_MS);
    await journal.append([push()]);
    expect(journal.load()).toHaveLength(12);
  });
});
