import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { JOURNAL_FILE } from '../../../src/device/agent/journal/journal.ts';
import type { Entry } from '../../../src/device/box/entry.ts';
import { temporaryFolder } from '../../support/net.ts';
import { open, payment, push } from './support.ts';

/** Entries of `filled` that are in the main file. */
export const CHECKPOINTED = 80;

/** A journal of some pages; `keepLog` leaves the newest entries in its write-ahead log, as a power cut would. */
export async function filled({ keepLog = false } = {}) {
  const folder = await temporaryFolder();
  const entries = Array.from({ length: 50 }, (): Entry[] => [push(), payment()]).flat();
  for (const part of [entries.slice(0, CHECKPOINTED), entries.slice(CHECKPOINTED)]) {
    const { journal } = open(folder);
    for (const entry of part) await journal.append([entry]);
    const files = ['', '-wal'].map((it) => [it, readFileSync(join(folder, JOURNAL_FILE + it))] as const);
    journal.close();
    if (keepLog && part.at(-1) === entries.at(-1)) {
      for (const [it, bytes] of files) writeFileSync(join(folder, JOURNAL_FILE + it), bytes);
    }
  }
  return { folder, file: join(folder, JOURNAL_FILE), entries };
}

/** Entries of `found` are each one of `all`, and in their order but for so many that stand in another place. */
export function expectToBeAmong(found: readonly Entry[], all: readonly Entry[], displacedMax = 0): void {
  const places = found.map((entry) => all.findIndex((it) => isDeepStrictEqual(it, entry)));
  expect(places).not.toContain(-1);
  expect(new Set(places).size).toBe(found.length);
  const displaced = places.filter((place, index) => place < (places[index - 1] ?? -1));
  expect(displaced.length, places.join(' ')).toBeLessThanOrEqual(displacedMax);
}

/** Opens what is there, and expects a journal that works and has kept nothing but what was written. */
export async function expectToStart(folder: string, entries: readonly Entry[], displacedMax = 0): Promise<number> {
  const { journal } = open(folder);
  const found = [...journal.load()];
  expectToBeAmong(found, entries, displacedMax);
  const entry = payment();
  await journal.append([entry]);
  journal.close();
  const after = open(folder).journal;
  expect(after.load()).toEqual([...found, entry]);
  after.close();
  return found.length;
}
