// Plain JavaScript, because it is what spares the compiler of TypeScript.
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { enableCompileCache, getCompileCacheDir } from 'node:module';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

const STICKY = 0o1000;
const WRITABLE_BY_OTHERS = 0o022;

/**
 * Has Node keep what it compiled in the caller's own cache folder. Whoever writes there decides what runs, because Node
 * looks at no more than checksums (THR-28): a folder that another user could have made or could change is not used, and
 * nothing is kept then. A folder that the environment names (NODE_COMPILE_CACHE) has been taken by Node before.
 */
export function keepCompiled() {
  if (getCompileCacheDir() !== undefined) return;
  const folder = cacheFolder('node');
  if (folder !== undefined) enableCompileCache(folder);
}

/**
 * A folder of this name in the caller's cache that only the caller can change, made where it is missing; undefined
 * where there can be none.
 */
export function cacheFolder(name) {
  try {
    return ownFolder(name);
  } catch {
    // No home, or no room there.
    return undefined;
  }
}

function ownFolder(name) {
  const uid = process.getuid?.();
  if (uid === undefined) return undefined;
  // Empty or relative means unset (XDG Base Directory Specification).
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

/** Whether it is a folder of this user, no link, in which nobody else can write. */
function isOwn(folder, uid) {
  const stats = lstatSync(folder);
  return stats.isDirectory() && stats.uid === uid && (stats.mode & WRITABLE_BY_OTHERS) === 0;
}

/** Whether nobody but this user and root can put another folder in the place of what is in this one. */
function isLeftAlone(folder, uid) {
  const stats = lstatSync(folder);
  const isSafe = (stats.mode & WRITABLE_BY_OTHERS) === 0 || (stats.mode & STICKY) !== 0;
  if (!stats.isDirectory() || ![0, uid].includes(stats.uid) || !isSafe) return false;
  return folder === dirname(folder) || isLeftAlone(dirname(folder), uid);
}
