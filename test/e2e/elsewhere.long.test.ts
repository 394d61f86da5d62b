import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { options, runSteps } from './elsewhere-fixture.ts';

describe('the GitHub action', () => {
  it('the GitHub action starts paybox, runs scenarios at it, and says where service and report are', async () => {
    const given = await options();
    const { folder, failed, told, outputs } = await runSteps({ ...given, scenarios: 'happy-path' });
    expect({ failed, told }).toMatchObject({ failed: false });
    expect(outputs).toEqual({
      'service-url': `http://127.0.0.1:${given['http-port']}/vqr`,
      'box-url': `http://127.0.0.1:${given['box-port']}`,
      'console-url': `http://127.0.0.1:${given['http-port']}/`,
      report: 'paybox-report',
    });
    expect(await readFile(join(folder, 'paybox-report/junit.xml'), 'utf8')).toContain('failures="0"');
    for (const name of ['index.html', 'paybox.log', 'up.txt']) {
      expect({ name, there: existsSync(join(folder, 'paybox-report', name)) }).toEqual({ name, there: true });
    }
  });
});
