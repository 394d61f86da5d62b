import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { emulatedTarget } from '../../src/commands/actions/bench-emulated.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { ordersFaults, PASSED, scenarios, verdictOn } from './library.ts';
import { noLog, SEED } from './setup.ts';

const { missing, note } = without(PROGRAMS.socat);
const ON_A_LINE = 'serial-noise.yaml';

/** What goes wrong at the service, at the gateway's broker and at the box. */
const EACH_PLACE = `
  - fault: service-500
  - push: { amount: 59000, content: A, answer: E05 }
  - push: { amount: 59000, content: A }
  - fault: { inject: disk-full, for: 5min }
  - fault: { inject: broker-killed, for: 500ms }
  - pay: { amount: 59000, content: A }
  - expect: { online: true, announced: 1, report: { payment: "\${pay.transactionId}" }, within: 90s }
  - push: { amount: 60000, content: B, answer: STORAGE_FAULT }
  - fault: { end: disk-full }
  - expect: { status: { journal: { ok: true }, fault: null }, screen: idle, qr: none, within: 60s }
  - push: { amount: 29000, content: C }
  - expect: { state: showing, qr: "\${push.qrCode}" }
`;

describe('our box and gateway, when something goes wrong', () => {
  const here = scenarios().filter((name) => ordersFaults(name) && name !== ON_A_LINE);

  it.each(here)(
    'our box and gateway pass the fault scenario %s',
    async (name) => {
      expect(await verdictOn(name)).toEqual(PASSED);
    },
    240_000,
  );

  it.skipIf(missing)(`our box and gateway pass ${ON_A_LINE} where there is a line${note}`, async () => {
    const random = seededRandom(SEED);
    const kind = emulatedTarget({ transport: mqttTransport, probe: 'panel', panel: 'nextion', random, log: noLog });
    expect(await verdictOn(ON_A_LINE, { kind })).toEqual(PASSED);
  });

  it('our box and gateway pass fault scenarios as real programs too', async () => {
    const file = join(await temporaryFolder(), 'each-place.yaml');
    await writeFile(file, `name: Each place\nsteps:${EACH_PLACE}`);
    const { output } = await payboxToEnd('bench', 'run', file, '--target', 'process');
    expect(output).toContain('PAYBOX-BENCH END passed=1 failed=0 skipped=0 missing=0 exit=0');
  }, 240_000);
});
