// This file is plain JavaScript, because it avoids compiling TypeScript.
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Makes Node store compiled code in the caller's own cache folder. Node checks only checksums, so whoever writes there
 * decides what runs (THR-28). A folder that another user could have made or could change is not used, and Node then
 * stores nothing. Node itself already uses a folder that the environment names (NODE_COMPILE_CACHE).
 */
export function keepCompiled() {
  if (getCompileCacheDir() !== undefined) return;
  const folder = cacheFolder('node');
  if (folder !== undefined) enableCompileCache(folder);
}

/**
 * Returns a folder of this name in the caller's cache that only the caller can change, and makes it if missing;
 * undefined where there can be none.
 */
export function cacheFolder(name) {
  try {
    return ownFolder(name);
  } catch {
    // The caller has no home folder, or the disk is full.
    return undefined;
  }
}

function ownFolder(name) {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  // An empty or relative value counts as unset (XDG Base Directory Specification).
  const given = process.env.XDG_CACHE_HOME ?? '';
  const [base, names] = isAbsolute(given)
    ? [given, ['paybox', name]]
    : [process.env.HOME || userInfo().homedir, ['.cache', 'paybox', name]];
  let folder = realpathSync(base);
  if (!isOwn(folder, uid) || !isLeftAlone(dirname(folder), uid)) return undefined;
  for (const name of names) {
    folder = join(folder, name);
    mkdirSync(folder, { mode: 0o700, recursive: true });
    if (!isOwn(folder, uid)) return undefined;
  }
  return folder;
}

/** Returns whether it is this user's own folder, not a link, and closed to writes of others. */
function isOwn(folder, uid) {
  const stats = lstatSync(folder);
  return stats.isDirectory() && stats.uid === uid && (stats.mode & WRITABLE_BY_OTHERS) === 0;
}

/** Returns whether only this user and root can replace entries of this folder. */
function isLeftAlone(folder, uid) {
  const stats = lstatSync(folder);
  const isSafe = (stats.mode & WRITABLE_BY_OTHERS) === 0 || (stats.mode & STICKY) !== 0;
  if (!stats.isDirectory() || ![0, uid].includes(stats.uid) || !isSafe) return false;
  return folder === dirname(folder) || isLeftAlone(dirname(folder), uid);
}
