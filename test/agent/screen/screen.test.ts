import { PassThrough } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';

import {
  type ConfiguredDisplay,
  displayIo,
  Screen,
  type ScreenOutcome,
} from '../../../src/device/agent/screen/screen.ts';
import type { CharacterSurface, Display, DisplayIo, Frame } from '../../../src/device/display/contract.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { STOP_BUDGET_MS } from '../../../src/lib/shutdown.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { PAYMENT } from '../../display/scenes.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';

const SURFACE: CharacterSurface = { kind: 'characters', columns: 60, rows: 30, halfBlocks: true };

const idle: Scene = {
  kind: 'idle',
  terminalCode: 'VVB000001',
  holder: { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
  online: true,
  plainLink: false,
};
const paid = (amount: number): Scene => ({
  kind: 'paid',
  transactionId: `t${amount}`,
  amount,
  content: 'DH1',
  holder: null,
  online: true,
});

/** A display that is stricter than a device: it throws on overlapping frames, a wrong size, and any use after its end. */
class StrictDisplay implements Display {
  surface = SURFACE;
  readonly drawn: Scene[] = [];
  #busy = false;
  #closed = false;
  next: () => Promise<void> = () => Promise.resolve();

  async draw(frame: Frame, scene: Scene): Promise<void> {
    if (this.#busy || this.#closed) throw new Error('drawn on while busy or closed');
    if (frame.kind !== 'characters' || frame.columns > this.surface.columns) throw new Error('a frame of another size');
    this.#busy = true;
    try {
      await this.next();
      this.drawn.push(scene);
    } finally {
      this.#busy = false;
    }
  }

  close(): Promise<void> {
    this.#closed = true;
    return Promise.resolve();
  }
}

async function screenOf(open: ConfiguredDisplay['open'], clock: Clock = systemClock) {
  const outcomes: ScreenOutcome[] = [];
  const logged = new PassThrough();
  const log = createLogger(logged, systemClock, 'text');
  const io = {
    ...displayIo({ clock: systemClock, log, terminal: undefined, terminalInput: undefined }),
    cacheDir: await temporaryFolder(),
  };
  const deps = { clock, log, io, onOutcome: (outcome: ScreenOutcome) => outcomes.push(outcome) };
  const screen = new Screen({ driver: 'strict', open }, deps);
  onTestFinished(() => screen.close('blank', STOP_BUDGET_MS));
  return { screen, outcomes, logged };
}

describe('a screen', () => {
  it('AGT-2 a screen confirms a scene only after the display has drawn it', async () => {
    const display = new StrictDisplay();
    const gate = Promise.withResolvers<void>();
    display.next = () => gate.promise;
    const { screen, outcomes } = await screenOf(async () => display);
    await screen.start();
    screen.present(idle);
    await Promise.resolve();
    expect(outcomes).toEqual([]);
    expect(screen.frame()).toBeUndefined();
    gate.resolve();
    await eventually('drawn', () => outcomes.length === 1);
    expect(outcomes).toEqual([{ ok: true, scene: idle }]);
    expect(screen.frame()).toMatchObject({ kind: 'characters' });
    expect(screen.status()).toMatchObject({ driver: 'strict', ok: true, surface: '60×30 characters' });
  });

  it('a slow screen draws only the newest scene, but never leaves a paid one out', async () => {
    const display = new StrictDisplay();
    const gate = Promise.withResolvers<void>();
    display.next = () => gate.promise;
    const { screen } = await screenOf(async () => display);
    screen.present(idle);
    await screen.start();
    for (const scene of [paid(1), idle, paid(2), paid(3), { ...idle, online: false }, idle]) screen.present(scene);
    gate.resolve();
    await eventually('all drawn', () => display.drawn.at(-1) === idle && display.drawn.length > 1);
    expect(display.drawn.slice(-4)).toEqual([paid(1), paid(2), paid(3), idle]);
  });

  it('AGT-2 a screen names a failure, opens the display anew and draws what is due', async () => {
    const displays: StrictDisplay[] = [];
    const { screen, outcomes } = await screenOf(async () => {
      const display = new StrictDisplay();
      if (displays.length === 0) display.next = () => Promise.reject(new Error('cable out'));
      displays.push(display);
      return display;
    });
    screen.present(idle);
    await screen.start();
    await eventually('failed', () => outcomes.some((outcome) => !outcome.ok));
    expect(outcomes).toEqual([{ ok: false, scene: idle, reason: 'cable out' }]);
    expect(screen.status()).toMatchObject({ ok: false, reason: 'cable out' });
    await eventually('drawn again', () => displays[1]?.drawn.length === 1);
    expect(screen.status().ok).toBe(true);
    expect(displays[0]?.drawn).toEqual([]);
  });

  it('a screen has no frame while its display has failed', async () => {
    const displays: StrictDisplay[] = [];
    const plugged = Promise.withResolvers<void>();
    const { screen, outcomes } = await screenOf(async () => {
      if (displays.length > 0) await plugged.promise;
      const display = new StrictDisplay();
      displays.push(display);
      return display;
    });
    screen.present(idle);
    await screen.start();
    await eventually('drawn', () => screen.frame() !== undefined);
    if (displays[0] !== undefined) displays[0].next = () => Promise.reject(new Error('cable out'));
    screen.present(paid(1));
    await eventually('failed', () => outcomes.some((outcome) => !outcome.ok));
    expect(screen.frame()).toBeUndefined();
    plugged.resolve();
    await eventually('drawn again', () => screen.frame() !== undefined);
    expect(displays[1]?.drawn).toEqual([paid(1)]);
  });

  it('a screen says why its display cannot be opened and keeps trying', async () => {
    let tries = 0;
    const { screen, logged } = await screenOf(async () => {
      tries += 1;
      throw new Error('no such device');
    });
    await screen.start();
    expect(screen.status()).toMatchObject({ ok: false, reason: 'no such device' });
    await eventually('a second try', () => tries > 1);
    expect(String(logged.read()).match(/no such device/g)).toHaveLength(1);
  });

  it('a screen lays the scene out anew when the surface changes its size', async () => {
    const display = new StrictDisplay();
    let resize = () => {};
    const { screen } = await screenOf(async (io: DisplayIo) => {
      resize = io.requestDraw;
      return display;
    });
    screen.present(idle);
    await screen.start();
    await eventually('drawn', () => display.drawn.length === 1);
    display.surface = { ...SURFACE, columns: 40 };
    resize();
    await eventually('drawn smaller', () => display.drawn.length === 2);
    expect(screen.frame()).toMatchObject({ columns: 40 });
  });

  it('AGT-9 a screen says when a scene is drawn but its QR is not', async () => {
    const display = new StrictDisplay();
    display.surface = { ...SURFACE, columns: 20, rows: 4 };
    const { screen, outcomes } = await screenOf(async () => display);
    await screen.start();
    screen.present(PAYMENT);
    await eventually('drawn', () => outcomes.length > 0);
    expect(outcomes).toEqual([{ ok: true, scene: PAYMENT, unreadable: expect.stringMatching(/modules/) }]);
    expect(screen.status()).toMatchObject({ ok: true, qr: null });
  });

  it('a screen is not healthy before something is drawn, and can be closed while its opening hangs', async () => {
    const { screen } = await screenOf(() => new Promise(() => {}));
    void screen.start();
    expect(screen.status()).toMatchObject({ ok: false, reason: 'not opened yet' });
    expect(screen.checkQr(PAYMENT.qrCode)).toBeUndefined();
    await screen.close('blank', STOP_BUDGET_MS);
    const opened = await screenOf(async () => new StrictDisplay());
    await opened.screen.start();
    expect(opened.screen.status().ok).toBe(false);
  });
});

const BLANK: Scene = { kind: 'blank' };

describe('a screen whose display asks to be refreshed', () => {
  const EVERY_MS = 5_000;

  /** A display that is refreshed, in a time of its own; `refreshed` are the scenes with which it was. */
  async function refreshing(refresh: () => Promise<void> = async () => {}) {
    const clock = new VirtualClock();
    const displays: (StrictDisplay & Pick<Display, 'refresh'>)[] = [];
    const refreshed: Scene[] = [];
    const { screen, outcomes } = await screenOf(async () => {
      let isBusy = false;
      const display = Object.assign(new StrictDisplay(), {
        refresh: {
          everyMs: EVERY_MS,
          run: async (frame: Frame, scene: Scene) => {
            expect(frame).toBe(screen.frame());
            refreshed.push(scene);
            isBusy = true;
            await refresh().finally(() => {
              isBusy = false;
            });
          },
        },
      });
      display.next = async () => {
        if (isBusy) throw new Error('drawn on while it is refreshed');
      };
      displays.push(display);
      return display;
    }, clock);
    await screen.start();
    const show = async (scene: Scene) => {
      const before = outcomes.length;
      screen.present(scene);
      await eventually('drawn', () => outcomes.length > before);
    };
    onTestFinished(() => void clock.advance(STOP_BUDGET_MS));
    return { clock, screen, outcomes, displays, refreshed, show };
  }

  it('a display that asks for refreshes gets what it shows again, from the first scene on', async () => {
    const { clock, outcomes, refreshed, show } = await refreshing();
    await clock.advance(3 * EVERY_MS);
    expect(refreshed).toEqual([]);
    await show(idle);
    await clock.advance(EVERY_MS - 1);
    expect(refreshed).toEqual([]);
    await clock.advance(1);
    expect(refreshed).toEqual([idle]);
    await show(paid(1));
    await clock.advance(2 * EVERY_MS);
    expect(refreshed).toEqual([idle, paid(1), paid(1)]);
    expect(outcomes, 'a refresh is no news').toHaveLength(2);
  });

  it('a refresh of a display is not delayed by a countdown, and never happens during a drawing', async () => {
    const gate = Promise.withResolvers<void>();
    const { clock, outcomes, refreshed, displays, show } = await refreshing(() => gate.promise);
    for (let left = 100; left > 95; left -= 1) {
      await show({ ...PAYMENT, secondsLeft: left });
      await clock.advance(1_000);
    }
    expect(refreshed).toEqual([{ ...PAYMENT, secondsLeft: 96 }]);
    const shown = show({ ...PAYMENT, secondsLeft: 95 });
    await clock.advance(500);
    expect(displays[0]?.drawn).toHaveLength(5);
    gate.resolve();
    await shown;
    expect(outcomes.every(({ ok }) => ok)).toBe(true);
    expect(displays[0]?.drawn).toHaveLength(6);
  });

  it('a blank display is not refreshed', async () => {
    const { clock, refreshed, show } = await refreshing();
    await show(idle);
    await show(BLANK);
    await clock.advance(3 * EVERY_MS);
    expect(refreshed).toEqual([]);
  });

  it.each([
    ['fails', 0, () => Promise.reject(new Error('no power')), 'no power'],
    ['does not end', 5_000, () => new Promise<void>(() => {}), 'did not tell what it shows in time'],
  ])('AGT-2 says so when it %s, after %i ms, and draws again what is due', async (_, afterMs, refresh, reason) => {
    const { clock, screen, outcomes, displays, show } = await refreshing(refresh);
    await show(PAYMENT);
    await clock.advance(EVERY_MS + afterMs);
    expect(outcomes[1]).toMatchObject({ ok: false, scene: PAYMENT, reason: expect.stringContaining(reason) });
    expect(screen.frame()).toBeUndefined();
    await clock.advance(1_000);
    await eventually('drawn again', () => displays[1]?.drawn.length === 1);
    expect(displays[1]?.drawn).toEqual([PAYMENT]);
    expect(screen.status().ok).toBe(true);
  });
});

/** Has the display draw until `end`; settles once it has begun. */
function drawingUntil(display: StrictDisplay, end: Promise<void>): Promise<void> {
  return new Promise((begun) => {
    display.next = () => {
      begun();
      return end;
    };
  });
}

describe('a screen that is closed', () => {
  it.each([
    ['blank', idle, [idle, BLANK]],
    ['blank', PAYMENT, [PAYMENT, BLANK]],
    ['leave', idle, [idle]],
    ['leave', paid(1), [paid(1)]],
    ['leave', PAYMENT, [PAYMENT, BLANK]],
  ] as const)('told to %s after %o ends with the right picture', async (onStop, scene, drawn) => {
    const display = new StrictDisplay();
    const { screen, outcomes } = await screenOf(async () => display);
    await screen.start();
    screen.present(scene);
    await eventually('drawn', () => outcomes.length === 1);
    await screen.close(onStop, STOP_BUDGET_MS);
    expect(display.drawn).toEqual(drawn);
    expect(outcomes, 'a goodbye is no news').toHaveLength(1);
    await expect(display.draw({} as Frame, idle)).rejects.toThrow('closed');
  });

  it('a closed screen finishes the drawing in hand first, ignores what comes meanwhile, and reports its outcome', async () => {
    const display = new StrictDisplay();
    const gate = Promise.withResolvers<void>();
    const begun = drawingUntil(display, gate.promise);
    const { screen, outcomes } = await screenOf(async () => display);
    await screen.start();
    screen.present(paid(1));
    await begun;
    const closed = screen.close('leave', STOP_BUDGET_MS);
    screen.present(PAYMENT);
    gate.resolve();
    await closed;
    expect(display.drawn).toEqual([paid(1)]);
    expect(outcomes).toEqual([{ ok: true, scene: paid(1) }]);
  });

  it.each(['blank', 'leave'] as const)('told to %s, gives back a display whose drawing never ends', async (onStop) => {
    const display = new StrictDisplay();
    const begun = drawingUntil(display, new Promise(() => {}));
    let given = false;
    display.close = async () => {
      given = true;
    };
    const { screen } = await screenOf(async () => display);
    await screen.start();
    screen.present(PAYMENT);
    await begun;
    await screen.close(onStop, STOP_BUDGET_MS);
    expect(given).toBe(true);
    expect(screen.status()).toMatchObject({ ok: false, reason: expect.stringContaining('did not take a frame') });
  });

  /** A screen that has shown `scene`; its display fails at the next one, and is not back yet. */
  async function failedAfter(scene: Scene) {
    const glass: Scene[] = [];
    const state = { fails: false, open: async () => display() };
    const display = () => {
      const strict = new StrictDisplay();
      const { draw } = strict;
      strict.next = async () => {
        if (state.fails) throw new Error('cable out');
      };
      strict.draw = async (frame, drawn) => {
        await draw.call(strict, frame, drawn);
        glass.push(drawn);
      };
      return strict;
    };
    const { screen, outcomes, logged } = await screenOf((_, signal) => {
      signal.throwIfAborted();
      return state.open();
    });
    await screen.start();
    screen.present(scene);
    await eventually('drawn', () => outcomes.length === 1);
    state.fails = true;
    screen.present(idle);
    await eventually('failed', () => outcomes.length > 1);
    return { screen, glass, state, display, logged };
  }

  it.each([
    ['blank', PAYMENT, [PAYMENT, BLANK]],
    ['leave', PAYMENT, [PAYMENT, BLANK]],
    ['blank', paid(1), [paid(1), BLANK]],
    ['leave', paid(1), [paid(1)]],
  ] as const)('told to %s after %o, opens a display that has failed once more for it', async (onStop, scene, drawn) => {
    const { screen, glass, state } = await failedAfter(scene);
    state.fails = false;
    await screen.close(onStop, STOP_BUDGET_MS);
    expect(glass).toEqual(drawn);
  });

  it.each([PAYMENT, idle])(
    'a closed screen opens its display once more when the goodbye fails after %o',
    async (scene) => {
      const displays: StrictDisplay[] = [];
      const { screen, outcomes } = await screenOf(async () => {
        displays.push(new StrictDisplay());
        return displays.at(-1) as StrictDisplay;
      });
      await screen.start();
      screen.present(scene);
      await eventually('drawn', () => outcomes.length === 1);
      for (const display of displays) display.next = () => Promise.reject(new Error('cable out'));
      await screen.close('blank', STOP_BUDGET_MS);
      expect(displays.map((it) => it.drawn)).toEqual([[scene], [BLANK]]);
    },
  );

  it.each([
    ['does not open', async () => Promise.reject(new Error('no such device'))],
    ['never opens', () => new Promise<StrictDisplay>(() => {})],
    ['takes no frame', undefined],
  ])('says that the QR may still be there when its display %s', async (_, open) => {
    const { screen, glass, state, display, logged } = await failedAfter(PAYMENT);
    state.open = open ?? (async () => display());
    await screen.close('blank', STOP_BUDGET_MS);
    expect(glass).toEqual([PAYMENT]);
    expect(String(logged.read())).toMatch(/display-not-blanked.*payment/);
  });

  it('a closed screen releases a display that opens only now', async () => {
    const opening = Promise.withResolvers<Display>();
    const display = new StrictDisplay();
    const { screen } = await screenOf(() => opening.promise);
    void screen.start();
    const closed = screen.close('blank', STOP_BUDGET_MS);
    opening.resolve(display);
    await closed;
    await expect(display.draw({} as Frame, idle)).rejects.toThrow('closed');
  });
});
