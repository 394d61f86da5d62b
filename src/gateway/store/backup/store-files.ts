import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ConfigError } from '../../../lib/errors.ts';

const RESTORING = /^gateway\.restoring-(\w+)\.sqlite$/;

/** The SQLite file of a gateway with this dataDir. */
export function storeFile(dataDir: string): string {
  return join(dataDir, 'gateway.sqlite');
}

/**
 * The store of a restore that has begun to move files, and has not ended while it has this name. The stamp is that of the
 * names of what is moved aside.
 */
export function restoringFile(dataDir: string, stamp: string): string {
  return join(dataDir, `gateway.restoring-${stamp}.sqlite`);
}

/** The stamp of a restore that was stopped midway in this folder. */
export function stampOfStoppedRestore(dataDir: string): string | undefined {
  if (!existsSync(dataDir)) return undefined;
  return readdirSync(dataDir).flatMap((name) => RESTORING.exec(name)?.[1] ?? [])[0];
}

/** Throws ConfigError where a restore was stopped midway: the files that are there may be of two stores, or of none. */
export function refuseStoppedRestore(dataDir: string): void {
  const stamp = stampOfStoppedRestore(dataDir);
  if (stamp === undefined) return;
  throw new ConfigError(
    `dataDir: a restore was stopped midway: ${restoringFile(dataDir, stamp)} is not in its place yet`,
    `run paybox restore again, with --replace, to finish it; what was there before is there, or begins with gateway.before-${stamp}`,
  );
}
