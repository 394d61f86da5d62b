// Plain JavaScript, because it runs before the code that Node keeps compiled.
import { flushCompileCache, getCompileCacheDir } from 'node:module';
import { setFlagsFromString } from 'node:v8';

/**
 * Has V8 save memory in the program of this command, if that is an agent: it does little at a time, and the compilers
 * that make hot code fast take 12 MB. Call it before anything is compiled. V8 refuses code that was kept under other
 * flags: where several programs keep theirs in one folder (NODE_COMPILE_CACHE), nothing changes. The folder that systemd
 * makes (CACHE_DIRECTORY) is of one program.
 */
export function saveMemory(command) {
  const isShared = getCompileCacheDir() !== undefined && process.env.CACHE_DIRECTORY === undefined;
  if (command !== 'agent' || isShared) return;
  for (const flag of ['--no-opt', '--no-maglev', '--optimize-for-size']) setFlagsFromString(flag);
}

/** Has V8 make hot code fast: for loops over the pixels of a screen. */
export function optimizeHotCode() {
  // Kept now, under the flags that the next start begins with.
  flushCompileCache();
  for (const flag of ['--opt', '--maglev']) setFlagsFromString(flag);
}
