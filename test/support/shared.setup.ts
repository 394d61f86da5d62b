import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { memoryFolder } from '../../src/bench/engine/work-folder.ts';
import { makeProgramCode } from './program-code.ts';

/** Room for the files of all tests that run at the same time. */
const FILES_BYTES = 2_000_000_000;

/**
 * Gives all programs of a test run their code in few files, two caches (the glyphs of box screens, and Node's compile cache), and a
 * temporary folder.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  if (process.env.PAYBOX_TEST_CODE !== undefined) return undefined;
  const code = await makeProgramCode();
  process.env.PAYBOX_TEST_CODE = code.folder;
  process.env.NODE_COMPILE_CACHE = join(code.folder, 'compiled');
  const files = await filesFolder();
  process.env.TMPDIR = files;
  const glyphs = join(files, 'glyphs');
  mkdirSync(glyphs);
  process.env.PAYBOX_GLYPH_CACHE = glyphs;
  return async () => {
    rmSync(files, { recursive: true, force: true, maxRetries: 5 });
    await code.end();
  };
}

/**
 * A folder for the files of all tests, in memory where that is possible: tests never cut the power, so that nothing need reach a
 * disk, which is slow when many programs write to it.
 */
async function filesFolder(): Promise<string> {
  // Short, because the address of a socket in it has 107 bytes at most.
  let folder = mkdtempSync(join(await memoryFolder(FILES_BYTES), 'paybox-'));
  if (!canStartPrograms(folder)) {
    rmSync(folder, { recursive: true });
    folder = mkdtempSync(join(tmpdir(), 'paybox-'));
  }
  // Some tests start programs as another user.
  chmodSync(folder, 0o1777);
  return folder;
}

/** Some tests write a program and start it; a file system in memory may forbid that. */
function canStartPrograms(folder: string): boolean {
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}
