import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

const SERIAL_FILES = ['proc/device-tree/serial-number', 'sys/firmware/devicetree/base/serial-number'];
const NETWORK = 'sys/class/net';
const SERIAL_CHARS_MAX = 32;

/**
 * By what a person tells this machine from another one: the serial number of its board, else the address of its first
 * network device, else a part of a hash of its machine id, which itself is confidential (machine-id(5)). Undefined where
 * a machine has none of them below `root`.
 */
export async function deviceSerial(root: string): Promise<string | undefined> {
  for (const file of SERIAL_FILES) {
    const serial = await lineOf(join(root, file));
    if (serial !== undefined && /[1-9a-f]/i.test(serial)) return serial.slice(0, SERIAL_CHARS_MAX);
  }
  for (const device of (await readdir(join(root, NETWORK)).catch(() => [])).toSorted()) {
    // A device without hardware below it, as lo, has an address that says nothing.
    const hardware = await readdir(join(root, NETWORK, device, 'device')).catch(() => []);
    const address = hardware.length > 0 ? await lineOf(join(root, NETWORK, device, 'address')) : undefined;
    if (address !== undefined && /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/.test(address)) return address;
  }
  const machineId = await lineOf(join(root, 'etc/machine-id'));
  if (machineId === undefined) return undefined;
  return createHash('sha256').update(`paybox device ${machineId}`).digest('hex').slice(0, 12);
}

/** Text of the device tree ends with a zero. */
async function lineOf(path: string): Promise<string | undefined> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text.replaceAll('\0', '').trim() || undefined;
}
