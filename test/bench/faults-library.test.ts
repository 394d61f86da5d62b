import { describe, expect, it } from 'vitest';
import { mqttTransport } from '../../src/agent/transports/mqtt.ts';
import { emulatedTarget } from '../../src/commands/actions/bench-emulated.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { payboxToEnd } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { ordersFaults, scenarios, verdictOn } from './library.ts';
import { noLog, SEED } from './setup.ts';

const { missing, note } = without(PROGRAMS.socat);
const PASSED = { outcome: 'passed', reason: '', where: undefined };
const ON_A_LINE = 'serial-noise.yaml';

describe('our box and gateway, when something goes wrong', () => {
  const here = scenarios().filter((name) => ordersFaults(name) && name !== ON_A_LINE);

  it.each(here)('pass %s', async (name) => {
    expect(await verdictOn(name)).toEqual(PASSED);
  });

  it.skipIf(missing)(`pass ${ON_A_LINE} where there is a line${note}`, async () => {
    const random = seededRandom(SEED);
    const kind = emulatedTarget({ transport: mqttTransport, probe: 'panel', panel: 'nextion', random, log: noLog });
    expect(await verdictOn(ON_A_LINE, { kind })).toEqual(PASSED);
  });

  it('pass as programs of their own too', async () => {
    const names = ['broker-killed', 'disk-full', 'service-trouble'];
    const { output } = await payboxToEnd('bench', 'run', ...names, '--target', 'process');
    expect(output).toContain(`PAYBOX-BENCH END passed=${names.length} failed=0 skipped=0 missing=0 exit=0`);
  }, 240_000);
});
