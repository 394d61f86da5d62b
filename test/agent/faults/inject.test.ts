import { describe, expect, it } from 'vitest';
import { injectFaults } from '../../../src/device/agent/faults/inject.ts';
import type { ConfiguredDisplay } from '../../../src/device/agent/screen/screen.ts';
import type { DisplayIo, Frame, SerialLine } from '../../../src/device/display/contract.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { quietLog } from '../../support/kept-log.ts';

const SURFACE = { kind: 'characters', columns: 1, rows: 1, halfBlocks: false } as const;
const FRAME: Frame = { kind: 'characters', columns: 1, rows: 1, cells: [] };
const SCENE: Scene = { kind: 'blank' };

/** What faults wrap of a box with two displays; the first is on a serial line. */
async function injected() {
  const clock = new VirtualClock();
  const log = quietLog(clock);
  const drawn: string[] = [];
  const sent: Uint8Array[] = [];
  let hear: (bytes: Uint8Array) => void = () => undefined;
  const wire: SerialLine = {
    write: async (bytes) => void sent.push(bytes),
    onData: (listener) => {
      hear = listener;
      return () => undefined;
    },
    lost: new Promise(() => undefined),
    close: async () => undefined,
  };
  const line: { it?: SerialLine } = {};
  const displayOf = (driver: string): ConfiguredDisplay => ({
    driver,
    open: async (io, signal) => {
      line.it ??= await io.openSerial({ path: '/dev/null', baudRate: 9600 }, signal);
      return { surface: SURFACE, draw: async () => void drawn.push(driver), close: async () => undefined };
    },
  });
  const setup = { displays: [displayOf('first'), displayOf('second')] as const };
  const at = injectFaults(setup, { clock, random: systemRandom, log });
  const io = {
    clock,
    log,
    terminal: undefined,
    terminalInput: undefined,
    openSerial: async () => wire,
    cacheDir: '',
    requestDraw: () => undefined,
  } satisfies DisplayIo;
  const open = (which: 0 | 1) => at.setup.displays[which].open(io, new AbortController().signal);
  return { ...at, clock, drawn, sent, hear: (bytes: Uint8Array) => hear(bytes), line, open };
}

function noiseOrdered(it: Awaited<ReturnType<typeof injected>>, how: object = {}) {
  it.faults.order({ fault: 'serial-noise', seconds: 60, seed: 7, ...how });
  return it.faults;
}

describe('injected faults of a box', () => {
  it('the fault slow display delays each picture by a second, and nothing else', async () => {
    const { open, faults, clock, drawn } = await injected();
    const [first, second] = [await open(0), await open(1)];
    faults.order({ fault: 'display-slow', seconds: 10 });
    const slow = first.draw(FRAME, SCENE);
    await second.draw(FRAME, SCENE);
    await clock.advance(999);
    expect(drawn).toEqual(['second']);
    await clock.advance(1);
    await slow;
    expect(drawn).toEqual(['second', 'first']);
    await clock.advance(9_000);
    expect(faults.listed()).toEqual([]);
    await first.draw(FRAME, SCENE);
    expect(drawn).toHaveLength(3);
  });

  it('the fault noisy wire changes one byte in a hundred, the same ones for the same seed, in each direction', async () => {
    const plain = new Uint8Array(60_000).map((_, index) => index);
    const run = async (how: object, sends = plain) => {
      const it = await injected();
      await it.open(0);
      const heard: Uint8Array[][] = [[], []];
      const stops = heard.map((into) => it.line.it?.onData((bytes) => into.push(bytes)));
      const faults = noiseOrdered(it, how);
      await it.line.it?.write(sends, 1_000);
      it.hear(plain);
      const [standing] = faults.listed();
      faults.endAll();
      await it.line.it?.write(plain, 1_000);
      for (const stop of stops) stop?.();
      it.hear(plain);
      return { sent: it.sent, heard, happened: standing?.happened };
    };
    const wrongIn = (bytes: Uint8Array | undefined) => plain.filter((byte, index) => byte !== bytes?.[index]).length;
    const { sent, heard, happened } = await run({});
    const [away, back] = [wrongIn(sent[0]), wrongIn(heard[0]?.[0])];
    for (const wrong of [away, back]) expect(Math.abs(wrong - 600)).toBeLessThan(200);
    expect(happened).toBe(away + back);
    expect(sent[0]).not.toEqual(heard[0]?.[0]);
    expect(heard[0]).toEqual(heard[1]);
    expect(heard[0]).toHaveLength(1);
    expect(sent[1]).toEqual(plain);
    expect(await run({})).toEqual({ sent, heard, happened });
    expect((await run({}, new Uint8Array(7))).heard).toEqual(heard);
    expect((await run({ seed: 8 })).sent).not.toEqual(sent);
    expect(wrongIn((await run({ chance: 0.1 })).sent[0])).toBeLessThan(away / 3);
    expect(wrongIn((await run({ times: 5 })).sent[0])).toBe(5);
  });

  it('the fault clock jump moves the calendar and back, and changes no duration', async () => {
    const { deps, clock, faults } = await injected();
    const wallMs = () => deps.clock.wallMs() - clock.wallMs();
    const ordered = faults.order({ fault: 'box-clock', seconds: 60 });
    expect(wallMs()).toBe(7_200_000);
    expect(deps.clock.monotonicMs()).toBe(clock.monotonicMs());
    await clock.advance(59_999);
    expect(wallMs()).toBe(7_200_000);
    expect(faults.listed()).toEqual([{ ...ordered, happened: 1 }]);
    await clock.advance(1);
    expect(wallMs()).toBe(0);
    faults.order({ fault: 'box-clock', chance: 0 });
    expect(wallMs()).toBe(0);
  });

  it('an injected fault ends after its time, after its count, or by the rule of its kind', async () => {
    const { deps, clock, faults } = await injected();
    const standing = () => faults.listed().map((it) => [it.fault, it.happened]);
    faults.order({ fault: 'display-slow', times: 2 });
    faults.order({ fault: 'disk-full' });
    faults.order({ fault: 'box-clock', seconds: 3 });
    expect(deps.clock.wallMs()).toBeGreaterThan(clock.wallMs());
    expect(faults.happens('display-slow')).toBeDefined();
    await clock.advance(3_000);
    expect(standing()).toEqual([
      ['display-slow', 1],
      ['disk-full', 0],
    ]);
    await clock.advance(7_000);
    expect(standing()).toEqual([['display-slow', 1]]);
    await clock.advance(600_000);
    expect(faults.happens('display-slow')).toBeDefined();
    expect(standing()).toEqual([]);
    expect(faults.happens('display-slow')).toBeUndefined();
  });
});
