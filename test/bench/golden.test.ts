import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { runSteps, sharedTarget } from './setup.ts';

const idleAs = (name: string) => `  - expect: { screen: idle, golden: ${name}, within: 100ms }\n`;

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

it('golden pictures are read and written in the folder of their scenario only', async () => {
  const outside = await temporaryFolder();
  const folder = join(outside, 'inner');
  const victim = join(outside, 'victim.png');
  await mkdir(folder);
  await writeFile(victim, 'not a picture');
  await symlink(join(outside, 'new.png'), join(folder, 'dangling.png'));
  await symlink('..', join(folder, 'up'));
  const kind = await sharedTarget();
  for (const updateGoldens of [false, true]) {
    for (const name of ['../new.png', victim, 'dangling.png', 'up/victim.png']) {
      const { reason } = await runSteps(idleAs(name), { kind, folder, updateGoldens });
      expect(reason).toContain(`golden: ${name} is not a file in the folder of the scenario`);
    }
  }
  expect(await readFile(victim, 'utf8')).toBe('not a picture');
  expect(existsSync(join(outside, 'new.png'))).toBe(false);
});
