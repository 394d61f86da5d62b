import { constants, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';

/**
 * Detaches the text console of Linux from the framebuffers, because its cursor and messages would draw over the screen.
 * Returns a function that attaches it again. A failure is only logged, because the screen still works.
 */
export async function detachConsole(root: string, log: Logger): Promise<() => Promise<void>> {
  const folder = join(root, 'sys/class/vtconsole');
  const detached: string[] = [];
  for (const entry of (await readdir(folder).catch(() => [])).toSorted()) {
    const bind = join(folder, entry, 'bind');
    try {
      const name = await readFile(join(folder, entry, 'name'), 'utf8');
      if (!name.includes('frame buffer') || (await readFile(bind, 'utf8')).trim() !== '1') continue;
      await writeFile(bind, '0', { flag: constants.O_WRONLY });
      detached.push(bind);
    } catch (error) {
      const fix = `run as root at each start: echo 0 > ${bind}; the Debian package does it (paybox-console-off)`;
      log.warn('console-not-detached', { reason: reasonOf(error), fix });
    }
  }
  return async () => {
    for (const bind of detached) {
      await writeFile(bind, '1', { flag: constants.O_WRONLY }).catch((error: unknown) => {
        log.warn('console-not-restored', { reason: reasonOf(error) });
      });
    }
  };
}
