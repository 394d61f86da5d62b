import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { readFileText } from '../../../lib/files.ts';
import type { Logger } from '../../../lib/log.ts';

/** Largest size of `paybox.yaml` on the boot partition. */
export const BOX_FILE_BYTES_MAX = 65_536;

const setupReport = z.object({
  /** The problem with the file on the boot partition, or with applying it; null if none. */
  problem: z.string().max(2_000).nullable(),
  /** Path of that file. */
  file: z.string().max(4_096),
});

/** The report that `paybox first-boot` writes for the agent. A restart of the machine removes it. */
export type SetupReport = z.infer<typeof setupReport>;

/** Reads the setup report. Returns undefined if there is none, and logs an unreadable one. */
export async function readSetupReport(path: string, log: Logger): Promise<SetupReport | undefined> {
  try {
    return setupReport.parse(JSON.parse(await readFileText(path)));
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') log.error('setup-report-unreadable', { path, reason: reasonOf(error) });
    return undefined;
  }
}

const SERIAL_FILES = ['proc/device-tree/serial-number', 'sys/firmware/devicetree/base/serial-number'];
const NETWORK = 'sys/class/net';
const SERIAL_CHARS_MAX = 32;

/**
 * Identifies this machine for people: the board's serial number, else the address of its first network device, else
 * part of a hash of its machine id, which itself is confidential (machine-id(5)). Undefined if `root` has none.
 */
export async function deviceSerial(root: string): Promise<string | undefined> {
  for (const file of SERIAL_FILES) {
    const serial = await lineOf(join(root, file));
    if (serial !== undefined && /[1-9a-f]/i.test(serial)) return serial.slice(0, SERIAL_CHARS_MAX);
  }
  for (const device of (await readdir(join(root, NETWORK)).catch(() => [])).toSorted()) {
    // The address of a virtual device such as lo identifies nothing.
    const hardware = await readdir(join(root, NETWORK, device, 'device')).catch(() => []);
    const address = hardware.length > 0 ? await lineOf(join(root, NETWORK, device, 'address')) : undefined;
    if (address !== undefined && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(address)) return address;
  }
  const machineId = await lineOf(join(root, 'etc/machine-id'));
  if (machineId === undefined) return undefined;
  return createHash('sha256').update(`paybox device ${machineId}`).digest('hex').slice(0, 12);
}

/** Returns a line of a file without its zero byte, with which texts of the device tree end. */
async function lineOf(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.replaceAll('\0', '').trim() || undefined;
}
