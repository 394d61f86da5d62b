import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startChild } from '../../../src/device/display/io/child.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { temporaryFolder } from '../../support/net.ts';

const ANSWER_TIMEOUT_MS = 20_000;
/** Answers each message of one byte, and ends at the byte 0. */
const ECHO = `
import { writeSync } from 'node:fs';
let rest = Buffer.alloc(0);
for await (const chunk of process.stdin) {
  for (rest = Buffer.concat([rest, chunk]); rest.length >= 5; rest = rest.subarray(5)) {
    if (rest[4] === 0) process.exit(3);
    writeSync(3, 'heard ' + rest[4] + '\\n');
  }
}`;

async function child() {
  const file = join(await temporaryFolder(), 'echo.mjs');
  await writeFile(file, ECHO);
  const started = startChild(file, systemClock);
  onTestFinished(() => started.close());
  return started;
}

describe('a program in a process of its own', () => {
  it('a program in a process of its own keeps nothing of a question that is answered', async () => {
    const asked = await child();
    const reactions = vi.spyOn(asked.ended, 'then');
    for (let byte = 1; byte < 6; byte += 1) {
      expect(await asked.ask(Uint8Array.of(byte), ANSWER_TIMEOUT_MS)).toBe(`heard ${byte}`);
    }
    expect(reactions).not.toHaveBeenCalled();
  });

  it('a program in a process of its own says how it ended, amid a question and ever after', async () => {
    const asked = await child();
    await expect(asked.ask(Uint8Array.of(0), ANSWER_TIMEOUT_MS)).rejects.toThrow('ended with exit code 3');
    await expect(asked.ask(Uint8Array.of(1), ANSWER_TIMEOUT_MS)).rejects.toThrow('ended with exit code 3');
  });
});
