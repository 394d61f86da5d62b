import { describe, expect, it } from 'vitest';
import { PANEL_NAMES } from '../../src/bench/panels/emulator.ts';
import { EMULATORS } from '../../src/bench/panels/panel.ts';
import { cleanText, withoutAccents } from '../../src/device/display/charset.ts';
import type { DisplayIo } from '../../src/device/display/contract.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import type { Scene } from '../../src/device/scene.ts';
import { temporaryFolder } from '../support/net.ts';
import { fc } from '../support/properties.ts';
import { Cable } from './emulators/cable.ts';
import { shownQr } from './emulators/hardware.ts';
import { testIo } from './io.ts';
import { openDriver } from './opened.ts';
import { anyScene, PAYMENT } from './scenes.ts';
import { DARK, TerminalEmulator } from './terminal-emulator.ts';

/** Devices that draw letters themselves. Each knows its own commands only, and complains of everything else. */
const DEVICES = PANEL_NAMES.filter((name) => name !== 'usb-bitmap');

/** Those that put the content of an order on the screen as text. */
const SAY_CONTENT = ['cd5220', 'matrix-orbital', 'openlcd', 'nextion', 'dwin'];

/** What devices and terminals take for commands, and what could end a text or a command. */
const COMMANDS = [
  ...Array.from({ length: 32 }, (_, code) => String.fromCharCode(code)),
  ...[
    '\x7f',
    '\x80',
    '\x85',
    '\x9b',
    '\x9d',
    '\xfe',
    '\xff',
    '\xff\xff\xff',
    '\x1b[2J',
    '\x1b]0;x\x07',
    '\x1bQA',
    '\x1d(k',
    '|-',
  ],
  ...[
    '"',
    '\\',
    "'",
    '|',
    '**',
    '\\r',
    '\u2028',
    '\u202e',
    '\ufeff',
    '\ud800',
    '＂',
    '％',
    '\u0300',
    'page 0',
    'dim=0',
    '50000',
  ],
];
const hostile = fc.string({
  unit: fc.oneof(fc.constantFrom(...COMMANDS), fc.constantFrom(...'aĐ1 ,;=')),
  maxLength: 40,
});

/** Nothing to write, where a device counts on something. */
const NAMELESS: Scene = { kind: 'enrol', code: '', url: 'A', minutesLeft: 1, terminalCode: '', serialNumber: '' };

/** A scene with commands in every text. */
const hostileScene: fc.Arbitrary<Scene> = fc.oneof(
  anyScene,
  fc
    .record({ content: hostile, userBankName: hostile, bankAccount: hostile, bankCode: hostile })
    .map(({ content, ...holder }): Scene => ({ ...PAYMENT, content, holder })),
  fc
    .record({ content: hostile, transactionId: hostile })
    .map((paid): Scene => ({ kind: 'paid', online: true, amount: 50_000, holder: null, ...paid })),
  fc.record({ code: hostile, action: hostile }).map((fault): Scene => ({ kind: 'fault', online: true, ...fault })),
);

async function openedIn(io: DisplayIo, name: string, options: object = {}) {
  const display = await openDriver(name, io, options);
  const renderer = await openRenderer(display.surface, io);
  return { display, show: (scene: Scene) => display.draw(renderer.render(scene), scene) };
}

class Recorder extends TerminalEmulator {
  wire = '';

  override _write(text: string, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.wire += text;
    super._write(text, encoding, done);
  }
}

/** Matches a text on a device that has other signs than letters and figures as it likes. */
function alike(content: string): RegExp {
  return new RegExp(withoutAccents(cleanText(content)).replaceAll(/[^A-Za-z0-9]/g, '.'));
}

describe('no text reaches a device as a command', () => {
  it.each(DEVICES)('THR-7 no text reaches %s as a command, whatever a partner or a payer typed', async (name) => {
    const cable = new Cable(EMULATORS[name]);
    const emulator = cable.panel;
    const io = { ...testIo(await temporaryFolder()), openSerial: () => cable.open() };
    const { show } = await openedIn(io, name);
    await fc.assert(
      fc.asyncProperty(hostileScene, async (scene) => {
        await show(scene);
        expect(emulator.violations).toEqual([]);
        const texts = emulator.shownTexts();
        expect(texts.filter((it) => /[\p{Cc}\p{Cf}\p{Cs}]/u.test(it))).toEqual([]);
        if (scene.kind !== 'payment') return;
        expect([undefined, scene.qrCode]).toContain(shownQr(emulator));
        // A command among the texts could wipe or replace what was written before it.
        const all = withoutAccents(texts.join(' '));
        if (scene.amount !== PAYMENT.amount || !SAY_CONTENT.includes(name)) return;
        expect(all).toMatch(/50\.?000/);
        if (cleanText(scene.content).length <= 5) expect(all).toMatch(alike(scene.content));
      }),
      { numRuns: 300, examples: [[NAMELESS]] },
    );
  });

  it('THR-7 no text reaches a terminal as a command: it gets colours, its own lines, and visible letters', async () => {
    const terminal = new Recorder(80, 24, DARK, 24);
    const io = testIo(await temporaryFolder(), terminal);
    const { display, show } = await openedIn(io, 'terminal', { graphics: 'blocks' });
    await fc.assert(
      fc.asyncProperty(hostileScene, async (scene) => {
        terminal.wire = '';
        await show(scene);
        // biome-ignore lint/suspicious/noControlCharactersInRegex: the driver's own commands
        const rest = terminal.wire.replaceAll(/\x1b\[(\?25[hl]|\d*[AKJ]|0m|[34]8;[25];[\d;]+m)|\r\n?/g, '');
        expect(rest).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}]/u);
      }),
      { numRuns: 300 },
    );
    await display.close();
  });
});
