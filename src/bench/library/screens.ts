import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** One process writes at most this many screens, so that a test in a loop does not fill the disk. */
const SCREENS_KEPT_MAX = 200;
const NAME_CHARS_MAX = 60;

let kept = 0;

/** A written screen, or the reason why it was not written. It has neither when enough are written. */
export interface KeptScreen {
  file?: string;
  problem?: string;
}

/**
 * Writes the PNG into `folder`. It creates a missing folder and excludes it from the project's Git. `about` becomes a
 * part of the file's name. Never throws, because the failure of the test matters more.
 */
export function keepScreen(folder: string, about: string, png: Uint8Array): KeptScreen {
  if (kept >= SCREENS_KEPT_MAX) return {};
  kept += 1;
  const words = about.replace(/[^A-Za-z0-9]+/g, '-').slice(0, NAME_CHARS_MAX);
  try {
    const file = join(resolve(folder), `${process.pid}-${kept}-${words}.png`);
    const isNew = mkdirSync(resolve(folder), { recursive: true }) !== undefined;
    // An existing folder has rules of its own.
    if (isNew) writeFileSync(join(resolve(folder), '.gitignore'), '*\n');
    writeFileSync(file, png);
    return { file };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}
