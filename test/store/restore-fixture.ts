import { once } from 'node:events';
import { cp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { openStore } from '../../src/gateway/store/store.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import type { Interruption } from '../support/interrupted-restore.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { pay } from './rows.ts';

export const PROGRAM = join(import.meta.dirname, '../support/interrupted-restore.ts');
export const LONG_MS = 240_000;
export const OLD = ['a', 'b', 'c'];
export const NEW = ['a'];

/** A store that was killed, with payments in its log only, and a backup from before them. */
export async function oldStore(): Promise<{ old: string; file: string }> {
  const [dataDir, folder] = [await temporaryFolder(), await temporaryFolder()];
  const store = await openStore({ dataDir }, keptLog().log);
  await pay(store, 'a');
  const copy = await store.backup();
  await writeFile(join(folder, 'backup'), await copy.readFile());
  await copy.close();
  await pay(store, 'b');
  await pay(store, 'c');
  const old = join(folder, 'old');
  await cp(dataDir, old, { recursive: true });
  await store.close();
  return { old, file: join(folder, 'backup') };
}

/** The payments that a start finds here, or why it is refused. */
export async function start(dataDir: string): Promise<string[] | ConfigError> {
  try {
    const store = await openStore({ dataDir }, keptLog().log);
    const ids = (await store.payments.newest(10)).map((it) => it.id).toSorted();
    await store.close();
    return ids;
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
}

/** Runs restores that are interrupted. Returns how the program ended, and the error of each restore. */
export async function interrupted(interruption: Interruption) {
  const program = run(process.execPath, [PROGRAM, JSON.stringify(interruption)]);
  const [code, signal] = await once(program.child, 'close');
  expect([0, null], program.output()).toContain(code);
  const lines = program.output().trim().split('\n').filter(Boolean);
  return { signal, errors: lines.map((line) => JSON.parse(line) as string | null) };
}
