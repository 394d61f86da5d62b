import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readConfigFile } from '../../src/lib/config-file.ts';

async function fileOf(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'paybox-config-file-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'x.yaml');
  await writeFile(file, text);
  return file;
}

const VALUE = { a: [1, '1', null, true, 1.5], b: { c: 'Trà sữa\n"', d: {} } };

it.each([
  ['JSON as a program writes it', JSON.stringify(VALUE)],
  ['JSON as a person writes it', `${JSON.stringify(VALUE, null, 2)}\n`],
  ['YAML', 'a: [1, "1", null, true, 1.5]\nb: { c: "Trà sữa\\n\\"", d: {} }\n'],
])('a configuration may be %s', async (_what, text) => {
  expect((await readConfigFile(await fileOf(text))).value).toEqual(VALUE);
});

it.each([
  ['with a key that is there twice', '{"a":1,"b":2,"a":3}', 'x.yaml:1:14: not valid YAML: a key is there twice'],
  ['that ends too early', '{"a":[1,2', /\/x\.yaml:1:10: not valid YAML: /],
  ['that is nested too deeply', `${'['.repeat(9_000)}${']'.repeat(9_000)}`, /it is nested too deeply$/],
])('JSON %s is refused as YAML is', async (_what, text, problem) => {
  await expect(readConfigFile(await fileOf(text))).rejects.toThrow(problem);
});
