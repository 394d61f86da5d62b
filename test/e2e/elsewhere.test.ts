import { spawnSync } from 'node:child_process';
import { pbkdf2Sync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { HEALTH_PROGRAM } from '../../scripts/oci/root.ts';
import { mosquittoAcl } from '../../src/device/setup/brokers.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { CLI, payboxToEnd, run } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { ROOT, read } from './elsewhere-fixture.ts';

describe('scripts/compose.yaml', () => {
  const compose = parse(read('scripts/compose.yaml')) as {
    services: Record<
      'gateway' | 'database' | 'broker',
      { image: string; ports?: string[]; volumes: string[]; healthcheck?: { test: string[] } }
    >;
    volumes: Record<string, null>;
  };
  const gateway = parse(read('scripts/compose/gateway.yaml')) as {
    mqtt: { url: string; username: string; password: string };
    databaseUrl: string;
  };

  it('has services, volumes and folders that there are, and ports of this machine only', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(compose.services.gateway.image).toBe(`paybox:\${PAYBOX_VERSION:-${version}}`);
    for (const { volumes, ports = [] } of Object.values(compose.services)) {
      for (const from of volumes.map((volume) => volume.split(':')[0] ?? '')) {
        const isThere = from.startsWith('.') ? existsSync(join(ROOT, 'scripts', from)) : from in compose.volumes;
        expect({ from, isThere }).toEqual({ from, isThere: true });
      }
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
    for (const address of [gateway.mqtt.url, gateway.databaseUrl]) {
      expect(Object.keys(compose.services)).toContain(new URL(address).hostname);
    }
  });

  it('STO-7 asks the gateway whether it takes calls, as the image does', () => {
    expect(compose.services.gateway.healthcheck?.test).toEqual(['CMD', '/usr/lib/paybox/node', HEALTH_PROGRAM]);
    expect(read('scripts/oci/root.ts')).toContain("|| 'http://127.0.0.1:8800/readyz'");
  });

  it('mounts a gateway that is valid, and a broker with its login and the topic rights of today', async () => {
    const { code, output } = await payboxToEnd('config', 'check', join(ROOT, 'scripts/compose/gateway.yaml'));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(read('scripts/compose/acl')).toBe(mosquittoAcl());
    const { username, password } = gateway.mqtt;
    const [name, , , rounds, salt = '', hash = ''] = read('scripts/compose/passwords').trim().split(/[:$]/);
    const made = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(rounds), 64, 'sha512').toString('base64');
    expect([name, hash]).toEqual([username, made]);
  });
});

const { missing, note } = without(PROGRAMS.haproxy);

describe.skipIf(missing)(`scripts/haproxy.cfg${note}`, () => {
  it('is taken without a warning: every option is where it counts', () => {
    const args = ['-c', '-f', join(ROOT, 'scripts/haproxy.cfg')];
    const { status, stdout, stderr } = spawnSync(findProgram(PROGRAMS.haproxy) ?? '', args, { encoding: 'utf8' });
    expect(status).toBe(0);
    expect(`${stdout}${stderr}`).not.toMatch(/WARNING|ALERT/i);
    expect(read('scripts/haproxy.cfg').match(/^ +option http-no-delay/gm)).toHaveLength(3);
  });
});

describe('the GitHub action', () => {
  const file = '.github/actions/paybox/action.yml';
  const action = parse(read(file)) as {
    inputs: Record<string, { default: string }>;
    outputs: Record<string, { value: string }>;
    runs: { steps: { id: string; if?: string; env: Record<string, string>; run: string }[] };
  };

  /** Runs the steps one after the other, as a runner does, until one fails; returns outputs by `step.name`. */
  async function runSteps(given: Record<string, string>) {
    const folder = await temporaryFolder();
    const known = new Map(Object.entries(action.inputs).map(([name, it]) => [`inputs.${name}`, it.default]));
    for (const [name, value] of Object.entries(given)) known.set(`inputs.${name}`, value);
    const fill = (text: string) =>
      text.replaceAll(/\$\{\{ ([\w.-]+) \}\}/g, (_, name: string) => known.get(name) ?? '');
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

  async function options() {
    const [http, mqtt, box] = [await freePort(), await freePort(), await freePort()];
    return { program: CLI, 'http-port': `${http}`, 'mqtt-port': `${mqtt}`, 'box-port': `${box}` };
  }

  it('fails with the reason where paybox does not start', async () => {
    const { failed, told } = await runSteps({ ...(await options()), 'callback-url': 'no address' });
    expect({ failed, told }).toMatchObject({ failed: true });
    expect(told).toContain('::error::paybox up did not start: paybox: --callback-url no address: expected an http');
  });
});
