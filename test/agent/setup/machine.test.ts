import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deviceSerial } from '../../../src/device/agent/setup/machine.ts';
import { temporaryFolder } from '../../support/net.ts';

async function machine(files: Record<string, string>): Promise<string> {
  const root = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), text);
  }
  return root;
}

const MACHINE_ID = { 'etc/machine-id': '0123456789abcdef0123456789abcdef\n' };
const NETWORK = {
  'sys/class/net/lo/address': '00:00:00:00:00:00\n',
  'sys/class/net/wlan0/address': 'dc:a6:32:00:00:02\n',
  'sys/class/net/wlan0/device/uevent': '',
  'sys/class/net/eth0/address': 'dc:a6:32:00:00:01\n',
  'sys/class/net/eth0/device/uevent': '',
};

describe('the serial number of a machine', () => {
  it('the serial number of a machine is that of its board', async () => {
    const board = { 'proc/device-tree/serial-number': '10000000abcdef01\0' };
    expect(await deviceSerial(await machine({ ...board, ...NETWORK, ...MACHINE_ID }))).toBe('10000000abcdef01');
  });

  it('the serial number of a machine without one on its board is the address of its first network device', async () => {
    const zeros = { 'proc/device-tree/serial-number': '0000000000000000\0' };
    expect(await deviceSerial(await machine({ ...zeros, ...NETWORK, ...MACHINE_ID }))).toBe('dc:a6:32:00:00:01');
  });

  it('the serial number of any other machine is always the same, and does not reveal the machine id', async () => {
    const serial = await deviceSerial(await machine(MACHINE_ID));
    expect(serial).toMatch(/^[0-9a-f]{12}$/);
    expect(await deviceSerial(await machine(MACHINE_ID))).toBe(serial);
    expect(MACHINE_ID['etc/machine-id']).not.toContain(serial);
    expect(await deviceSerial(await machine({}))).toBeUndefined();
  });
});
