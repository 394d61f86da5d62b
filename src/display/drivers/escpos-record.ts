import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { reasonOf } from '../../lib/errors.ts';
import type { DisplayIo } from '../contract.ts';

const record = z.object({
  /** The push whose slip was printed last. */
  pushId: z.string().nullable(),
  /** The transactionId of the payment whose receipt was printed last. */
  receipt: z.string().nullable(),
});

/** What has been printed: paper cannot be taken back, so that a restart must not print it again. */
export type Printed = z.infer<typeof record>;

export const NOTHING_PRINTED: Printed = { pushId: null, receipt: null };

/** One file a printer; its port, made a file name, tells printers apart. */
export function recordPath(cacheDir: string, port: string): string {
  return join(cacheDir, `escpos-${port.replaceAll(/[^A-Za-z0-9]+/g, '-')}.json`);
}

/** What the file says; nothing printed when there is none, or none that can be read. */
export async function readPrinted(path: string): Promise<Printed> {
  try {
    return record.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch {
    return NOTHING_PRINTED;
  }
}

/** A file that cannot be written is logged and nothing more: the slip is out, and the payment must go on. */
export async function writePrinted(path: string, printed: Printed, log: DisplayIo['log']): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(`${path}.tmp`, JSON.stringify(printed));
    await rename(`${path}.tmp`, path);
  } catch (error) {
    log.warn('printed-not-recorded', { path, reason: reasonOf(error) });
  }
}
