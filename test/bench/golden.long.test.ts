import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { idleAs } from './golden-fixture.ts';
import { runSteps, sharedTarget } from './setup.ts';

it('golden pictures are written when the command is asked to, and compared with when not', async () => {
  const folder = await temporaryFolder();
  const scenario = join(folder, 'idle.yaml');
  await writeFile(scenario, `name: Golden\nsteps:\n${idleAs('idle.png')}`);
  expect((await payboxToEnd('bench', 'run', scenario, '--update-goldens')).code).toBe(0);
  const kind = await sharedTarget();
  expect(await runSteps(idleAs('idle.png'), { kind, folder })).toMatchObject({ outcome: 'passed', reason: '' });
  const other =
    '  - push: { amount: 1000, content: A }\n  - expect: { screen: payment, golden: idle.png, within: 1s }\n';
  const { where, reason, entries } = await runSteps(other, { kind, folder });
  expect({ where, reason }).toEqual({
    where: 'test.yaml:4',
    reason: expect.stringMatching(
      /^VVB000001: golden: \d+\.\d\d % of 800x480 differ from idle\.png, at most 0\.10 % may/,
    ),
  });
  expect(entries.map(({ title }) => title)).toContain('VVB000001, difference to idle.png');
});
