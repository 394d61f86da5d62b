import { expect, onTestFinished } from 'vitest';
import { readQr } from '../../../src/bench/engine/pictures.ts';
import { runScenario } from '../../../src/bench/engine/run/run.ts';
import { parseScenario } from '../../../src/bench/scenarios/scenario.ts';
import { emulatedTarget } from '../../../src/commands/actions/bench-emulated.ts';
import { mqttTransport } from '../../../src/device/agent/transports/mqtt.ts';
import { seededRandom } from '../../../src/lib/random.ts';
import { noLog, withoutClose } from '../setup.ts';

const PUSHES = 3;

/** One order while bytes on the wire are others now and then. The last step waits for a display that failed. */
const order = (chance: number) => `
  - fault: { inject: serial-noise, for: 2s, chance: ${chance} }
  - push: { amount: 61000, content: "SN\${unique}", answer: [SUCCESS, DISPLAY_FAULT, BOX_TIMEOUT, BOX_OFFLINE] }
`;
const PAUSE = '\n  - wait: 2s\n  - expect: { status: { display: { ok: true } }, within: 60s }\n';

/** Has no push answered SUCCESS whose QR is not on the panel, while its wire is noisy by this seed. */
export async function expectNoWrongSuccess(panel: 'nextion' | 'dwin', seed: number): Promise<void> {
  const kind = emulatedTarget({
    transport: mqttTransport,
    probe: 'panel',
    panel,
    random: seededRandom(seed),
    log: noLog,
  });
  const target = await kind.open({ boxes: 1, enrolled: true });
  onTestFinished(() => target.close().then(() => target.time.close()));
  const [device] = target.panels?.values() ?? [];
  if (device === undefined) throw new Error('no panel');
  const open = withoutClose(kind, target);
  // Another seed is other noise.
  const run = (steps: string, noise: number) =>
    runScenario(parseScenario(`name: noise\nsteps:${steps}`, 'noise.yaml'), open, {
      seed: noise,
      updateGoldens: false,
      signal: new AbortController().signal,
      onStep: () => undefined,
    });
  let shown = 0;
  for (let count = 0; count < PUSHES; count += 1) {
    const { reason, entries } = await run(order(0.3), 100 * seed + count);
    expect(reason).toBe('');
    const pushed = entries.findLast(({ title }) => title.startsWith('send-qr'));
    if (pushed === undefined) throw new Error('nothing was pushed');
    const { request, answer } = pushed.detail as { request: { qrCode: string }; answer: { status: string } };
    if (answer.status === 'SUCCESS') {
      expect(await readQr(device.picture())).toBe(request.qrCode);
      shown += 1;
    }
    expect((await run(PAUSE, count)).reason).toBe('');
  }
  // That something was shown at all.
  expect(shown).toBeGreaterThan(0);
}
