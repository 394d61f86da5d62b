import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { makeFolder } from '../../lib/folders.ts';

const RESTORING = /^gateway\.restoring-(\w+)\.sqlite$/;

/**
 * Creates the folder of a gateway if it is missing, for its user alone. A gateway with PostgreSQL needs it too, for the
 * mark, the key of the registry and the evidence of a loss. Throws ConfigError when it cannot.
 */
export function makeDataDir(dataDir: string): void {
  try {
    makeFolder(dataDir, 0o700);
  } catch (error) {
    const fix = 'make this folder, and let the user that runs the gateway write there, or set dataDir to another one';
    throw new ConfigError(`dataDir: the folder ${dataDir} cannot be made: ${reasonOf(error)}`, fix);
  }
}

/** Returns the path of the SQLite store in a dataDir. */
export function storeFile(dataDir: string): string {
  return join(dataDir, 'gateway.sqlite');
}

/** Returns the path of the new store while a restore moves files. Their names contain the same `stamp`. */
export function restoringFile(dataDir: string, stamp: string): string {
  return join(dataDir, `gateway.restoring-${stamp}.sqlite`);
}

/** Returns the stamp of an interrupted restore in this folder. */
export function stampOfStoppedRestore(dataDir: string): string | undefined {
  if (!existsSync(dataDir)) return undefined;
  return readdirSync(dataDir).flatMap((name) => RESTORING.exec(name)?.[1] ?? [])[0];
}

/** Throws ConfigError after an interrupted restore, because the files in the folder may belong to different stores. */
export function refuseStoppedRestore(dataDir: string): void {
  const stamp = stampOfStoppedRestore(dataDir);
  if (stamp === undefined) return;
  throw new ConfigError(
    `dataDir: a restore was stopped midway: ${restoringFile(dataDir, stamp)} is not in its place yet`,
    `run paybox restore again, with --replace, to finish it; the earlier files are still there, or begin with gateway.before-${stamp}`,
  );
}
