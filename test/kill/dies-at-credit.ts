import { rmSync } from 'node:fs';

/**
 * Loaded into a gateway before its own code: once there is a file `.die` beside its configuration, it kills itself as it
 * logs that a credit is stored, which nobody outside could time: the source has no answer, and nobody has been told.
 */
const file = `${process.argv.at(-1)}.die`;
const write = process.stderr.write.bind(process.stderr) as (...args: unknown[]) => boolean;

process.stderr.write = (...args: unknown[]): boolean => {
  const written = write(...args);
  if (String(args[0]).includes('"event":"credit-received"') && isOrdered()) process.kill(process.pid, 'SIGKILL');
  return written;
};

/** Whether the order was there; it is for one life. */
function isOrdered(): boolean {
  try {
    rmSync(file);
    return true;
  } catch {
    return false;
  }
}
