// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { z } from 'zod';
import { readQr } from '../../../src/bench/engine/pictures.ts';
import type { Panel, Target, TargetKind } from '../../../src/bench/engine/target.ts';
import { PANEL_NAMES, type PanelName } from '../../../src/bench/panels/emulator.ts';
import { openPanel } from '../../../src/bench/panels/panel.ts';
import { emulatedTarget } from '../../../src/commands/actions/bench-emulated.ts';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { MissingPeerError } from '../../../src/lib/errors.ts';
import { seededRandom } from '../../../src/lib/random.ts';
import { temporaryFolder } from '../../support/net.ts';
import { payboxToEnd } from '../../support/processes.ts';
import { PROGRAMS, without } from '../../support/programs.ts';
import { noLog, runSteps, SEED, withoutClose } from '../setup.ts';

const { missing, note } = without(PROGRAMS.socat);

const SALE = `
  - push: { amount: 1000, content: CA PHE }
  - expect: { state: showing, qr: "\${push.qrCode}" }
  - pay: { amount: 1000, content: CA PHE }
  - expect: { state: paid, qr: none }
`;

function emulatedWith(panel: PanelName): TargetKind {
  return emulatedTarget({ transport: mqttTransport, probe: 'panel', panel, random: seededRandom(SEED), log: noLog });
}

/** A box that stays from one scenario to the next, and its panel. */
async function standingWith(name: PanelName) {
  const kind = emulatedWith(name);
  const target = await kind.open({ boxes: 1, enrolled: true });
  onTestFinished(() => target.close().then(() => target.time.close()));
  const [box] = target.boxes;
  const panel = target.panels?.get(box?.terminalCode ?? '');
  if (panel === undefined) throw new Error('no panel');
  const steps = (text: string) => runSteps(text, { kind: withoutClose(kind, target) });
  const passes = async (text: string) => expect((await steps(text)).reason).toBe('');
  return { target, panel, steps, passes };
}

/** The same, whose target is told of when it is open. */
function told(kind: TargetKind, onOpen: (target: Target) => void): TargetKind {
  return {
    ...kind,
    open: async (need) => {
      const target = await kind.open(need);
      onOpen(target);
      return target;
    },
  };
}

describe.skipIf(missing)(`a box of the bench with a serial panel${note}`, () => {
  it.each(['nextion', 'dwin', 'dqr', 'usb-bitmap'] as const)(
    'shows an order on a %s, whose QR is read from what the panel draws, and takes it away when it is paid',
    async (name) => {
      const panels: Panel[] = [];
      const kind = told(emulatedWith(name), (target) => panels.push(...(target.panels?.values() ?? [])));
      const { outcome, reason } = await runSteps(SALE, { kind });
      expect({ outcome, reason }).toEqual({ outcome: 'passed', reason: '' });
      expect(panels.flatMap((panel) => panel.violations())).toEqual([]);
    },
  );

  it('a box with a serial panel runs as a real program, too', async () => {
    const file = join(await temporaryFolder(), 'sale.yaml');
    await writeFile(file, `name: A sale\nsteps:${SALE}`);
    const { code, output } = await payboxToEnd('bench', 'run', file, '--target', 'process', '--panel', 'dwin');
    expect(output).toContain('PAYBOX-BENCH RESULT outcome=passed');
    expect(code).toBe(0);
  });

  it('a panel counts the time down while the bench skips it, and no answer counts as late', async () => {
    const steps =
      '  - push: { amount: 1000, content: A }\n  - wait: 2min\n  - expect: { state: showing, qr: "${push.qrCode}" }\n';
    const { reason, entries } = await runSteps(steps, { kind: emulatedWith('nextion') });
    expect(reason).toBe('');
    expect(JSON.stringify(entries)).not.toContain('DISPLAY_FAULT');
  });

  it('a panel shows orders again by itself after noise on the wire', async () => {
    const noisy =
      '  - push: { amount: 1000, content: NOISE, answer: [SUCCESS, DISPLAY_FAULT, BOX_TIMEOUT] }\n  - wait: 2s\n';
    const steps = `
  - fault: { inject: serial-noise, for: 10s }
${noisy.repeat(3)}  - wait: 10s
  - expect: { status: { display: { ok: true } }, within: 60s }${SALE}`;
    const panels: Panel[] = [];
    const kind = told(emulatedWith('nextion'), (target) => panels.push(...(target.panels?.values() ?? [])));
    const { outcome, reason, entries } = await runSteps(steps, { kind });
    expect({ outcome, reason }).toEqual({ outcome: 'passed', reason: '' });
    const problems = entries.filter(({ kind: it }) => it === 'problem').map(({ title }) => title);
    expect(problems).toEqual(['VVB000001: nextion received data that it garbles']);
    // That there was noise at all.
    expect(panels.flatMap((panel) => panel.violations())).not.toEqual([]);
  });

  it('the bench says why a panel without a QR has none', async () => {
    const { outcome, reason } = await runSteps('  - expect: { qr: "000201", within: 1s }\n', {
      kind: emulatedWith('cd5220'),
    });
    expect(outcome).toBe('failed');
    expect(reason).toContain('cd5220 shows no QR: expect text or state of this box');
  });

  it('AGT-2 AGT-5 a box refuses pushes while its panel is unplugged, accepts payments, and shows orders on it again', async () => {
    const { target, panel, steps, passes } = await standingWith('nextion');
    await passes('  - push: { amount: 1000, content: A }\n  - expect: { qr: "${push.qrCode}" }\n');
    await target.time.inRealTime(() => panel.unplug());
    const unseen = await steps('  - expect: { qr: "000201", within: 1s }\n');
    expect(unseen.reason).toContain('none is read on the screen');
    await passes('  - expect: { state: fault, status: { fault: { code: DISPLAY_FAULT } }, within: 20s }\n');
    await passes('  - push: { amount: 2000, content: B, answer: DISPLAY_FAULT }\n');
    await passes(
      '  - pay: { amount: 1000, content: A }\n  - expect: { report: { payment: "${pay.transactionId}" } }\n',
    );
    await target.time.inRealTime(() => panel.plug());
    await passes('  - expect: { status: { display: { ok: true } }, within: 60s }\n');
    await passes(SALE);
    expect(panel.violations()).toEqual([]);
  });

  it.each(['nextion', 'dwin'] as const)(
    'AGT-2 shows an order again on a %s that was without power, and says meanwhile that its display has failed',
    async (name) => {
      const { target, panel, passes } = await standingWith(name);
      await passes('  - push: { amount: 1000, content: A }\n  - expect: { qr: "${push.qrCode}" }\n');
      const qrCode = await readQr(panel.picture());
      await target.time.inRealTime(() => panel.cutPower());
      expect(await readQr(panel.picture())).toBeUndefined();
      await passes('  - expect: { state: fault, status: { display: { ok: false } }, within: 30s }\n');
      await passes('  - push: { amount: 2000, content: B, answer: DISPLAY_FAULT }\n');
      await target.time.inRealTime(() => panel.restorePower());
      await passes(`  - expect: { qr: "${qrCode}", status: { display: { ok: true } }, within: 60s }\n`);
      expect(panel.violations()).toEqual([]);
    },
  );
});

describe.skipIf(missing)(`an emulated panel${note}`, () => {
  it.each(PANEL_NAMES)('%s is dark without its cable or its power, and starts anew with it', async (name) => {
    const panel = await openPanel(name);
    onTestFinished(() => panel.close());
    const isDark = () => panel.picture().data.every((value, index) => value === (index % 4 === 3 ? 255 : 0));
    const isDarkAtFirst = isDark();
    await panel.unplug();
    expect([isDark(), panel.texts()]).toEqual([true, []]);
    await panel.plug();
    expect(isDark()).toBe(isDarkAtFirst);
    await panel.cutPower();
    expect([isDark(), panel.texts()]).toEqual([true, []]);
    await panel.restorePower();
    expect(isDark()).toBe(isDarkAtFirst);
  });

  it.each(PANEL_NAMES)('%s keeps its port without power, unless the power comes through it', async (name) => {
    const panel = await openPanel(name);
    onTestFinished(() => panel.close());
    const { path } = z.object({ path: z.string() }).parse(panel.display);
    const hasPort = async () => (await stat(path).catch(() => undefined)) !== undefined;
    await panel.cutPower();
    expect(await hasPort()).toBe(name !== 'usb-bitmap');
    await panel.restorePower();
    expect(await hasPort()).toBe(true);
  });

  it('the bench says what to install where there is no socat', async () => {
    const { PATH } = process.env;
    onTestFinished(() => {
      process.env.PATH = PATH;
    });
    process.env.PATH = dirname(process.execPath);
    const error = await openPanel('nextion').catch((it: unknown) => it);
    expect(error).toBeInstanceOf(MissingPeerError);
    expect(error).toMatchObject({ fix: expect.stringContaining('install socat') });
  });
});
