import { describe, expect, it } from 'vitest';
import { payboxToEnd } from '../support/processes.ts';
import { ordersFaults, scenarios, verdictOn } from './library.ts';

/** Held where boxes have a panel on a serial line. */
const ON_A_LINE = 'serial-noise.yaml';

describe('our box and gateway, when something goes wrong', () => {
  const here = scenarios().filter((name) => ordersFaults(name) && name !== ON_A_LINE);

  it.each(here)('pass %s', async (name) => {
    expect(await verdictOn(name)).toEqual({ outcome: 'passed', reason: '', where: undefined });
  });

  it('pass as programs of their own too', async () => {
    const names = ['broker-killed', 'disk-full', 'service-trouble'];
    const { output } = await payboxToEnd('bench', 'run', ...names, '--target', 'process');
    expect(output).toContain(`PAYBOX-BENCH END passed=${names.length} failed=0 skipped=0 missing=0 exit=0`);
  }, 240_000);
});
