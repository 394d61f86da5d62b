import { existsSync } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { idleAs } from './golden-fixture.ts';
import { runSteps, sharedTarget } from './setup.ts';

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
