import { describe, expect, it, vi } from 'vitest';
import type { SerialLine } from '../../../src/device/display/contract.ts';
import { Dialogue } from '../../../src/device/display/io/answers.ts';
import { systemClock } from '../../../src/lib/clock.ts';

const ANSWER_TIMEOUT_MS = 20_000;
const QUESTION = Uint8Array.of(0x3f);

/** A line whose device answers each byte with itself until it is mute, and a dialogue on it. */
function dialogue() {
  const ending = Promise.withResolvers<string>();
  let told = (_bytes: Uint8Array) => {};
  const device = { mute: false };
  let looks = 0;
  const line: SerialLine = {
    get lost() {
      looks += 1;
      return ending.promise;
    },
    onData: (listener) => {
      told = listener;
      return () => {};
    },
    write: async (bytes) => {
      if (!device.mute) told(bytes);
    },
    close: async () => {},
  };
  const cut = (bytes: Uint8Array) => (bytes.length > 0 ? { answer: bytes.slice(0, 1), length: 1 } : undefined);
  const onUnasked = vi.fn();
  const deps = { line, path: '/dev/ttyUSB0', baudRate: 9_600, clock: systemClock, cut, onUnasked };
  const asking = new Dialogue(deps);
  asking.limit(ANSWER_TIMEOUT_MS);
  return { asking, device, lose: ending.resolve, looks: () => looks, onUnasked };
}

describe('a dialogue with a panel', () => {
  it('a dialogue with a panel waits for the end of the line once, however much is asked', async () => {
    const { asking, looks } = dialogue();
    for (let count = 0; count < 5; count += 1) {
      expect(await asking.ask(QUESTION, (answer) => answer[0])).toBe(0x3f);
    }
    expect(looks()).toBe(1);
  });

  it('a dialogue with a panel names the loss of the line amid a question', async () => {
    const { asking, device, lose } = dialogue();
    device.mute = true;
    const refused = expect(asking.ask(QUESTION, (answer) => answer[0])).rejects.toMatchObject({
      code: 'DISPLAY_FAULT',
      message: '/dev/ttyUSB0 is lost: unplugged',
    });
    lose('unplugged');
    await refused;
  });
});
