import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openPty, type Pty } from '../../../src/bench/panels/pty.ts';
import type { SerialLine } from '../../../src/device/display/contract.ts';
import { openSerial } from '../../../src/device/display/io/serial.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';

const { missing, note } = without(PROGRAMS.socat);
const never = new AbortController().signal;
const WRITE_TIMEOUT_MS = 20_000;
/** What a frozen pty takes is less: its own buffers hold about 64 KiB. */
const MORE_THAN_A_PORT_HOLDS = 1_000_000;

async function cable(): Promise<{ pty: Pty; received: () => Buffer }> {
  const chunks: Uint8Array[] = [];
  const pty = await openPty((bytes) => chunks.push(bytes));
  onTestFinished(() => pty.close());
  return { pty, received: () => Buffer.concat(chunks) };
}

async function opened(pty: Pty): Promise<SerialLine> {
  const line = await openSerial({ path: pty.path, baudRate: 115_200 }, never, systemClock);
  onTestFinished(() => line.close());
  return line;
}

describe.skipIf(missing)(`a serial port${note}`, () => {
  it('a serial port carries all bytes both ways, unchanged', async () => {
    const { pty, received } = await cable();
    const line = await opened(pty);
    const got: number[] = [];
    line.onData((bytes) => got.push(...bytes));
    const all = Uint8Array.from({ length: 256 }, (_, value) => value);
    await line.write(all, WRITE_TIMEOUT_MS);
    await eventually('the device has them', () => received().length === 256);
    expect([...received()]).toEqual([...all]);
    pty.send(all);
    await eventually('the driver has them', () => got.length === 256);
    expect(got).toEqual([...all]);
  });

  it('a serial port keeps nothing of a write that is over, however long the line lives', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    const reactions = vi.spyOn(line.lost, 'then');
    for (let count = 0; count < 5; count += 1) await line.write(Uint8Array.of(1), WRITE_TIMEOUT_MS);
    expect(reactions).not.toHaveBeenCalled();
  });

  it('a serial port notices an unplug while idle', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    await pty.unplug();
    expect(await line.lost).not.toBe('');
    await expect(line.write(Uint8Array.of(1), WRITE_TIMEOUT_MS)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: expect.stringContaining(pty.path),
      fix: expect.stringContaining('plug'),
    });
  });

  it('a serial port notices an unplug amid a flood of bytes from the device', async () => {
    for (let round = 0; round < 10; round += 1) {
      const { pty } = await cable();
      const line = await opened(pty);
      let count = 0;
      line.onData((bytes) => {
        count += bytes.length;
      });
      pty.send(new Uint8Array(60_000));
      await eventually('the flood has begun', () => count > 4_000);
      await pty.unplug();
      await line.lost;
    }
  });

  it('a serial port notices an unplug amid a write', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    pty.freeze();
    const writing = line.write(new Uint8Array(MORE_THAN_A_PORT_HOLDS), WRITE_TIMEOUT_MS);
    const refused = expect(writing).rejects.toMatchObject({ message: expect.stringContaining('is lost') });
    await pty.unplug();
    await refused;
  });

  it('a serial port gives up on a device that reads nothing, and can be closed', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    pty.freeze();
    await expect(line.write(new Uint8Array(MORE_THAN_A_PORT_HOLDS), 50)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: `${pty.path} did not take ${MORE_THAN_A_PORT_HOLDS} bytes within 50 ms`,
      fix: expect.stringContaining('power'),
    });
    await line.close();
    expect(await line.lost).toBe('closed');
    pty.thaw();
    const again = await opened(pty);
    await again.write(Uint8Array.of(1), WRITE_TIMEOUT_MS);
  });

  it('a serial port closes twice, and writes no more', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    await Promise.all([line.close(), line.close()]);
    await line.close();
    expect(await line.lost).toBe('closed');
    await expect(line.write(Uint8Array.of(1), WRITE_TIMEOUT_MS)).rejects.toMatchObject({ code: 'DISPLAY_FAULT' });
  });

  it('a serial port closes after an unplug', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    await pty.unplug();
    await line.lost;
    await line.close();
  });

  it('a serial port opens again, as a new line, once the device is back', async () => {
    const { pty, received } = await cable();
    const line = await opened(pty);
    await pty.unplug();
    await line.lost;
    await line.close();
    await expect(opened(pty)).rejects.toMatchObject({ fix: expect.stringContaining('plug the device in') });
    await pty.plug();
    const again = await opened(pty);
    await again.write(Uint8Array.of(7), WRITE_TIMEOUT_MS);
    await eventually('the device has it', () => received().includes(7));
  });

  it('a serial port calls its listener no more once it is removed', async () => {
    const { pty } = await cable();
    const line = await opened(pty);
    let first = 0;
    let second = 0;
    const off = line.onData((bytes) => {
      first += bytes.length;
    });
    line.onData((bytes) => {
      second += bytes.length;
    });
    off();
    pty.send(Uint8Array.of(1, 2, 3));
    await eventually('the other listener hears', () => second === 3);
    expect(first).toBe(0);
  });

  it('a serial port that another program has open is named', async () => {
    const { pty } = await cable();
    await opened(pty);
    await expect(opened(pty)).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: expect.stringContaining(`${pty.path} cannot be opened`),
      fix: 'another program has it open: stop that one',
    });
  });
});

describe('a serial port that cannot be opened', () => {
  const open = (path: string, signal = never) => openSerial({ path, baudRate: 9600 }, signal, systemClock);

  it('a serial port that is absent is named', async () => {
    await expect(open('/dev/serial/by-id/none')).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      severity: 'retryable',
      message: '/dev/serial/by-id/none cannot be opened: No such file or directory',
      fix: expect.stringContaining('plug the device in'),
    });
  });

  it('a file that is no serial port is named', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'file'), '');
    for (const path of [folder, join(folder, 'file')]) {
      await expect(open(path)).rejects.toMatchObject({ fix: 'it is not a serial port: correct path' });
    }
  });

  it('a serial port is not opened for someone who has given up', async () => {
    await expect(open('/dev/serial/by-id/none', AbortSignal.abort(new Error('stopped')))).rejects.toThrow('stopped');
  });
});
