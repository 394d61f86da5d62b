import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildWheel } from '../../scripts/wheel.ts';
import { packageName } from '../../src/lib/version.ts';
import { temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const { missing, note } = without(PROGRAMS.python);
/** What a person types to have the program that the wheel needs. */
const install = `npm install --save-dev ${packageName()}`;
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));

async function python(code: string, env: NodeJS.ProcessEnv) {
  const running = run('python3', ['-c', code], env);
  return { code: await running.ended, output: running.output() };
}

describe('what is published', () => {
  it('the package names one place for its source, its home and its problems', () => {
    const home = 'https://github.com/paybox-vn/paybox';
    expect(manifest.repository).toEqual({ type: 'git', url: `git+${home}.git` });
    expect(manifest.homepage).toBe(`${home}#readme`);
    expect(manifest.bugs).toBe(`${home}/issues`);
    expect(manifest.keywords).toContain('vietqr');
  });

  it.skipIf(missing)(`the wheel has a free name, and says that it needs the program${note}`, async () => {
    const wheel = await buildWheel(await temporaryFolder());
    expect(wheel).toContain(`/paybox_vn-${manifest.version}-py3-none-any.whl`);
    // As pip reads it.
    const code = [
      'import importlib.metadata as metadata, json, os',
      'found = next(iter(metadata.distributions(path=[os.environ["WHEEL"]])))',
      'fields = {name: found.metadata.get_all(name) for name in set(found.metadata.keys())}',
      'print(json.dumps({**fields, "about": found.metadata.get_payload(), "entries": [e.group for e in found.entry_points]}))',
    ].join('\n');
    const { output } = await python(code, { WHEEL: wheel });
    const told = JSON.parse(output);
    expect(told).toMatchObject({
      Name: ['paybox-vn'],
      Version: [manifest.version],
      Summary: [expect.stringContaining(`need the program: ${install}`)],
      Keywords: [manifest.keywords.join(',')],
      'Home-page': [manifest.homepage],
      'Project-URL': ['Source, https://github.com/paybox-vn/paybox.git', `Issues, ${manifest.bugs}`],
      'Requires-External': [`${manifest.name} (${manifest.version})`],
      Classifier: expect.arrayContaining(['Framework :: Pytest', 'Programming Language :: Python :: 3']),
      entries: ['pytest11'],
    });
    expect(told.about).toContain(`\n    ${install}\n`);
  });

  it.skipIf(missing).each([
    ['no program of the name', 'paybox-that-is-not-there', 'did not start: [Errno '],
    ['one that does not start', 'false', 'did not start; install it where the tests run'],
  ])(`the client in Python says in one line what to install: %s${note}`, async (_case, program, reason) => {
    const drive = join(ROOT, 'test/scenarios/drive');
    const code = 'import paybox_bench\nwith paybox_bench.serving(): pass';
    const { code: exit, output } = await python(code, { PYTHONPATH: drive, PAYBOX: program });
    expect(exit).toBe(1);
    const line = output.trim().split('\n').at(-1);
    expect(line).toContain(`paybox_bench.BenchError: ${program} bench serve`);
    expect(line).toContain(reason);
    expect(line).toContain('npm install --save-dev ');
  });
});
