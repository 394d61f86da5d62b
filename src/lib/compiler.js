// This file is plain JavaScript, because it runs before the code that Node has compiled and stored.
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { setFlagsFromString } from 'node:v8';

/**
 * Makes V8 save memory if this command is an agent. An agent does little at a time, and the compilers that make hot
 * code fast need 12 MB. Call it before anything is compiled. V8 refuses code that was stored under other flags. So
 * nothing changes where several programs share one folder (NODE_COMPILE_CACHE); the folder that systemd makes
 * (CACHE_DIRECTORY) belongs to one program.
 */
export function saveMemory(command) {
  const isShared = getCompileCacheDir() !== undefined && process.env.CACHE_DIRECTORY === undefined;
  if (command !== 'agent' || isShared) return;
  for (const flag of ['--no-opt', '--no-maglev', '--optimize-for-size']) setFlagsFromString(flag);
}

/** Makes V8 optimize hot code, for loops over the pixels of a screen. */
export function optimizeHotCode() {
  // Node stores the code now, under the flags that the next start begins with.
  flushCompileCache();
  for (const flag of ['--opt', '--maglev']) setFlagsFromString(flag);
}
