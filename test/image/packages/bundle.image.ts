import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { chmod, rename, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Target } from '../../../scripts/bundle-packages.ts';
import { ACCOUNT, getJson, PARTNER, walkTheLoop } from '../../e2e/walk.ts';
import { eventually, freePort, temporaryFolder } from '../../support/net.ts';
import { startPartnerServer } from '../../support/partner-server.ts';
import { readyFile, run } from '../../support/processes.ts';
import { without } from '../../support/programs.ts';
import { EMULATOR_PROGRAMS } from '../programs.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const BUILD_TIMEOUT_MS = 300_000;
/** Every instruction of the arm64 bundle is emulated. */
const WALK_TIMEOUT_MS = 240_000;
const CONFIRM_TIMEOUT_MS = 60_000;
const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };

const place = process.platform === 'linux' && process.arch === 'x64' ? '' : ' (needs Linux on x86-64)';
const emulator = Object.values(EMULATOR_PROGRAMS)
  .map(without)
  .find(({ missing }) => missing)?.note;
const note = place || (emulator ?? '');

/** Machine of an ELF file: EM_X86_64, EM_AARCH64. */
const MACHINES: Readonly<Record<Target, number>> = { 'linux-x64': 62, 'linux-arm64': 183 };
const TARGETS = Object.keys(MACHINES) as Target[];
const ARM64_LIBRARIES = '/usr/aarch64-linux-gnu';

/** No Node and nothing of the checkout on the way to a program. */
const BARE = { PATH: '/usr/bin:/bin', NODE_OPTIONS: '', NODE_PATH: '' };

const stage = mkdtempSync(join(tmpdir(), 'paybox-bundle-test-'));
const bundles: Readonly<Record<Target, string>> = {
  'linux-x64': join(stage, 'some where', 'x64'),
  'linux-arm64': join(stage, 'arm64'),
};

interface Status {
  state: string;
  online: boolean;
  display: { ok: boolean };
}

/** Files of a folder below it, sorted. */
function filesOf(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .sort();
}

/** Has `<bundle>/node` run in the emulator, also where the program starts itself again. */
async function emulate(bundle: string): Promise<NodeJS.ProcessEnv> {
  const [node, real, again] = [join(bundle, 'node'), join(bundle, 'node.arm64'), join(stage, 'again.cjs')];
  await rename(node, real);
  await writeFile(node, `#!/bin/sh\nexec qemu-aarch64-static -L ${ARM64_LIBRARIES} '${real}' "$@"\n`);
  await chmod(node, 0o755);
  await writeFile(again, `process.execPath = ${JSON.stringify(node)};\n`);
  return { ...BARE, NODE_OPTIONS: `--require ${again}` };
}

/** Starts a gateway and a box from bundles, both on files of their own, and walks the whole loop. */
async function walk(agentBundle: string, agentEnv: NodeJS.ProcessEnv): Promise<void> {
  const folder = await temporaryFolder();
  const partner = await startPartnerServer();
  const [httpPort, mqttPort, boxPort] = [await freePort(), await freePort(), await freePort()];
  const start = async <T>(bundle: string, command: string, config: object, env: NodeJS.ProcessEnv) => {
    const [file, ready] = [join(folder, `${command}.yaml`), join(folder, `${command}.json`)];
    await writeFile(file, JSON.stringify(config));
    const running = run(join(bundle, 'bin/paybox'), [command, '--config', file, '--ready-file', ready], {
      ...env,
      NODE_COMPILE_CACHE: join(folder, 'cache'),
    });
    return { running, ready: await readyFile<T>(ready, running) };
  };
  const gateway = await start<{ baseUrl: string; consoleUrl: string }>(
    bundles['linux-x64'],
    'gateway',
    {
      http: { port: httpPort },
      mqtt: { embedded: { port: mqttPort } },
      dataDir: 'gateway',
      confirmTimeoutMs: CONFIRM_TIMEOUT_MS,
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: partner.url } }],
      accounts: [ACCOUNT],
      boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
    },
    BARE,
  );
  const link = { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqttPort}`, connectTimeoutMs: 30_000 };
  const displays = [{ driver: 'png', path: 'screen.png' }];
  const config = { box: BOX, link, displays, http: { port: boxPort }, dataDir: 'box' };
  const agent = await start<{ boxUrl: string }>(agentBundle, 'agent', config, agentEnv);
  const isIdle = async () => {
    const { state, online, display } = await getJson<Status>(`${agent.ready.boxUrl}/status`);
    return state === 'idle' && online && display.ok && existsSync(join(folder, 'screen.png'));
  };
  await eventually('a box that is idle and says so on its screen', isIdle, WALK_TIMEOUT_MS / 2).catch(
    (error: unknown) => {
      throw new Error(`${error}\n${agent.running.output()}\n${gateway.running.output()}`);
    },
  );
  await walkTheLoop({ ...gateway.ready, ...agent.ready }, partner.received).catch((error: unknown) => {
    throw new Error(agent.running.output(), { cause: error });
  });
  expect(agent.running.output()).not.toMatch(/Warning|"level":"error"/);
  for (const path of ['', 'docs', 'docs/swagger-ui.css', 'docs/swagger-ui-bundle.js', 'console.js', 'console.css']) {
    expect((await fetch(`${gateway.ready.consoleUrl}${path}`)).status, path).toBe(200);
  }
  expect(await agent.running.stop()).toBe(0);
}

describe.skipIf(note !== '')(`the bundle${note}`, () => {
  beforeAll(() => {
    for (const target of TARGETS) {
      const args = [join(ROOT, 'scripts/bundle.ts'), '--target', target, '--out', bundles[target]];
      const built = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: BUILD_TIMEOUT_MS });
      if (built.status !== 0) throw new Error(`${target}: ${built.error} ${built.stderr}`);
    }
  }, BUILD_TIMEOUT_MS * 2);
  afterAll(() => rmSync(stage, { recursive: true, force: true }));

  it('has the same code, byte for byte, whatever it is built for and wherever', () => {
    const [one, other] = [join(bundles['linux-x64'], 'lib'), join(bundles['linux-arm64'], 'lib')];
    expect(filesOf(one)).toEqual(filesOf(other));
    for (const file of filesOf(one)) {
      const bytes = readFileSync(join(one, file));
      expect(bytes.equals(readFileSync(join(other, file))), file).toBe(true);
      expect(bytes.includes(ROOT), `${file} names the checkout`).toBe(false);
      expect(bytes.includes('paybox-bundle-'), `${file} names the folder it was built in`).toBe(false);
    }
  });

  it.each(TARGETS)('%s has native parts for this target and no other, and no sources', (target) => {
    const files = filesOf(bundles[target]);
    const native = files.filter((file) => /\.node$|\.so[.\d]*$|^node$/.test(file));
    expect(native).toHaveLength(4);
    for (const file of native) {
      const bytes = readFileSync(join(bundles[target], file));
      expect(bytes.subarray(1, 4).toString(), file).toBe('ELF');
      expect(bytes.readUInt16LE(18), file).toBe(MACHINES[target]);
    }
    expect(files.filter((file) => /\.(ts|cc|h|map)$|binding\.gyp$/.test(file))).toEqual([]);
  });

  it.each(TARGETS)('%s says what is in it, under which licence', (target) => {
    const read = (name: string) => readFileSync(join(bundles[target], name), 'utf8');
    const { components } = JSON.parse(read('sbom.json')) as { components: { name: string; version: string }[] };
    const names = components.map(({ name }) => name);
    const arch = target.slice('linux-'.length);
    expect(names).toEqual(
      expect.arrayContaining([`node-${target}`, `@img/sharp-linux-${arch}`, 'zod', 'mqtt', 'fastify']),
    );
    expect(names).not.toEqual(expect.arrayContaining([expect.stringMatching(/esbuild|vitest|rpi-led-matrix/)]));
    expect(names.filter((name) => /linux/.test(name))).toHaveLength(3);
    const licenses = read('LICENSES.txt');
    for (const { name, version } of components) expect(licenses).toContain(`\n${name} ${version}\n`);
    expect(licenses).toContain('Permission is hereby granted');
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(read('VERSION')).toBe(`${manifest.version}\n`);
  });

  it('starts through symbolic links, in a folder whose name has a blank', async () => {
    const link = join(await temporaryFolder(), 'paybox');
    await symlink(join(bundles['linux-x64'], 'bin/paybox'), link);
    const running = run(link, ['config', 'check', join(bundles['linux-x64'], 'device-config/laptop.yaml')], BARE);
    const ended = await new Promise((done) => running.child.once('close', done));
    expect({ ended, output: running.output() }).toMatchObject({ ended: 0 });
  });

  it('linux-x64: a box registers, shows a QR, is paid and reports it', { timeout: WALK_TIMEOUT_MS }, async () => {
    await walk(bundles['linux-x64'], BARE);
  });

  it('linux-arm64: the same in an emulator', { timeout: WALK_TIMEOUT_MS }, async () => {
    const env = await emulate(bundles['linux-arm64']);
    const natives = ['sharp', '@serialport/bindings-cpp'].map((name) => `require('${name}');`).join(' ');
    const loads = run(join(bundles['linux-arm64'], 'node'), ['-e', natives], {
      ...env,
      NODE_PATH: join(bundles['linux-arm64'], 'node_modules'),
    });
    const ended = await new Promise((done) => loads.child.once('close', done));
    expect({ ended, output: loads.output() }).toEqual({ ended: 0, output: '' });
    await walk(bundles['linux-arm64'], env);
  });
});
