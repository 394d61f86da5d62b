import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';

/** Of the file on the boot partition. */
export const BOX_FILE_BYTES_MAX = 65_536;

const setupReport = z.object({
  /** What is wrong with the file on the boot partition, or with taking it over; null when nothing is. */
  problem: z.string().max(2_000).nullable(),
  /** Where that file is looked for. */
  file: z.string().max(4_096),
});

/** What `paybox first-boot` leaves for the agent, until the machine starts anew. */
export type SetupReport = z.infer<typeof setupReport>;

/** Undefined where there is none; one that cannot be read is logged. */
export async function readSetupReport(path: string, log: Logger): Promise<SetupReport | undefined> {
  try {
    return setupReport.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') log.error('setup-report-unreadable', { path, reason: reasonOf(error) });
    return undefined;
  }
}
