import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { freePort, temporaryFolder } from '../support/net.ts';
import { CLI, run } from '../support/processes.ts';

export const ROOT = resolve(import.meta.dirname, '../..');
export const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

const file = '.github/actions/paybox/action.yml';
const action = parse(read(file)) as {
  inputs: Record<string, { default: string }>;
  outputs: Record<string, { value: string }>;
  runs: { steps: { id: string; if?: string; env: Record<string, string>; run: string }[] };
};

/** Runs the steps one after the other, as a runner does, until one fails; returns outputs by `step.name`. */
export async function runSteps(given: Record<string, string>) {
  const folder = await temporaryFolder();
  const known = new Map(Object.entries(action.inputs).map(([name, it]) => [`inputs.${name}`, it.default]));
  for (const [name, value] of Object.entries(given)) known.set(`inputs.${name}`, value);
  const fill = (text: string) => text.replaceAll(/\$\{\{ ([\w.-]+) \}\}/g, (_, name: string) => known.get(name) ?? '');
  const told: string[] = [];
  let failed = false;
  for (const { id, if: when, env, run: script } of action.runs.steps) {
    if (when === "inputs.scenarios != ''" && known.get('inputs.scenarios') === '') continue;
    if (failed && when !== 'always()') continue;
    const output = join(folder, `${id}.output`);
    await writeFile(output, '');
    const filled = Object.entries(env).map(([name, value]) => [name, fill(value)]);
    const step = run('bash', ['--noprofile', '--norc', '-e', '-o', 'pipefail', '-c', `cd ${folder}; ${script}`], {
      ...Object.fromEntries(filled),
      RUNNER_TEMP: folder,
      GITHUB_OUTPUT: output,
    });
    const code = await new Promise((done) => step.child.once('exit', done));
    failed ||= code !== 0;
    told.push(step.output());
    for (const line of (await readFile(output, 'utf8')).split('\n')) {
      const [, name, value = ''] = /^([\w-]+)=(.*)$/.exec(line) ?? [];
      if (name !== undefined) known.set(`steps.${id}.outputs.${name}`, value);
    }
  }
  const pid = Number(known.get('steps.up.outputs.pid'));
  // A runner ends what a job leaves.
  onTestFinished(() => void (pid > 0 && process.kill(pid, 'SIGTERM')));
  const outputs = Object.entries(action.outputs).map(([name, { value }]) => [name, fill(value)]);
  return { folder, failed, told: told.join(''), outputs: Object.fromEntries(outputs) as Record<string, string> };
}

/** Returns inputs of the action: the program of this checkout, at free ports. */
export async function options() {
  const [http, mqtt, box] = [await freePort(), await freePort(), await freePort()];
  return { program: CLI, 'http-port': `${http}`, 'mqtt-port': `${mqtt}`, 'box-port': `${box}` };
}
