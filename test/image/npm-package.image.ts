import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/free-ports.ts';
import { packageName } from '../../src/lib/version.ts';
import { eventually } from '../support/net.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const INSTALL_TIMEOUT_MS = 600_000;
const RUN_TIMEOUT_MS = 240_000;
/** The programs of a project that uses the package; exact, as the project's own. */
const TOOLS = ['jest@30.5.2', 'vitest@5.1.1', 'typescript@7.0.2', '@types/node@24.19.2', 'publint@0.3.25'];
const STRICT = '--strict --noEmit --module nodenext --target es2022 --types node --ignoreConfig'.split(' ');
const TYPE_CHECKER = '@arethetypeswrong/cli@0.18.5';
const PACKED_BYTES_MAX = 15_000_000;
const NAME = packageName();
const INSTALLED = join('node_modules', NAME);

const project = mkdtempSync(join(tmpdir(), 'paybox-npm-test-'));
let file = '';

/** A program of the project, as its scripts call it: by the host's Node, with the project's programs in front. */
function inProject(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: project,
    encoding: 'utf8',
    timeout: RUN_TIMEOUT_MS,
    env: { ...process.env, PATH: `${join(project, 'node_modules/.bin')}:${hostPath()}`, ...env },
  });
  return { status, output: `${stdout}${stderr}` };
}

/** Without the folders of this project's programs: npm puts them in front. */
function hostPath(): string {
  const folders = (process.env.PATH ?? '').split(':');
  return folders
    .filter((folder) => !folder.endsWith('node_modules/.bin') && !folder.includes('/node-gyp-bin'))
    .join(':');
}

function write(name: string, text: string): void {
  mkdirSync(join(project, name, '..'), { recursive: true });
  writeFileSync(join(project, name), text);
}

/** The five lines of the manual, as the body of a test; `equal` compares two values. */
const STEPS = `
  const paybox = await openPaybox();
  await paybox.push({ amount: 50000, content: 'DH1' });
  await paybox.expect({ screen: 'payment', text: '50.000 ₫' });
  await paybox.pay({ amount: 50000, content: 'DH1' });
  await paybox.expect({ state: 'paid', callback: 'delivered' });
  await paybox.skip('5m');
  await paybox.expect({ state: 'idle' });
  equal((await paybox.screen()).subarray(1, 4).toString(), 'PNG');
  await paybox.close();`;

beforeAll(async () => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/package.ts'), '--out', project], { stdio: 'inherit' });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  file = join(project, `paybox-${version}.tgz`);
  write(
    'package.json',
    JSON.stringify({ name: 'shop', version: '1.0.0', private: true, scripts: { which: 'node -p process.version' } }),
  );
  const quiet = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
  const installed = inProject('npm', ['install', ...quiet, file]);
  expect(installed, installed.output).toMatchObject({ status: 0 });
  const tools = inProject('npm', ['install', '--save-dev', ...quiet, ...TOOLS, TYPE_CHECKER]);
  expect(tools, tools.output).toMatchObject({ status: 0 });
}, INSTALL_TIMEOUT_MS);

afterAll(() => rmSync(project, { recursive: true, force: true, maxRetries: 5 }));

describe('the npm package, installed in a project elsewhere', () => {
  it('is small, and leaves the project its own Node', () => {
    expect(statSync(file).size).toBeLessThan(PACKED_BYTES_MAX);
    const host = spawnSync('node', ['-p', 'process.version'], {
      env: { ...process.env, PATH: hostPath() },
      encoding: 'utf8',
    });
    expect(inProject('npm', ['run', '-s', 'which']).output).toContain(host.stdout.trim());
  });

  it('has no devDependency, exact versions, and types that every kind of project finds', () => {
    const manifest = JSON.parse(readFileSync(join(project, INSTALLED, 'package.json'), 'utf8'));
    expect(manifest).not.toHaveProperty('devDependencies');
    const all = Object.values<string>({ ...manifest.dependencies, ...manifest.optionalDependencies });
    expect(all.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    expect(inProject('publint', [INSTALLED, '--strict'])).toMatchObject({
      status: 0,
      output: expect.stringContaining('All good!'),
    });
    expect(inProject('attw', [file])).toMatchObject({
      status: 0,
      output: expect.stringContaining('No problems found'),
    });
  });

  it('runs paybox up, which answers', async () => {
    const [http, mqtt, box] = await freePorts(3);
    const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`, '--box-port', `${box}`];
    const data = ['--no-open', '--data', join(project, 'data')];
    const env = { ...process.env, PATH: hostPath() };
    const up = spawn('npx', ['--no', '--', 'paybox', 'up', ...data, ...ports, '--ready-file', join(project, 'ready')], {
      cwd: project,
      env,
      detached: true,
    });
    onTestFinished(() => void process.kill(-(up.pid ?? 0), 'SIGKILL'));
    const gateway = `http://127.0.0.1:${http}`;
    await eventually('it answers', async () => (await fetch(`${gateway}/healthz`).catch(() => undefined))?.ok);
    await eventually('all of it', () => spawnSync('test', ['-f', join(project, 'ready')]).status === 0);
    const pushed = inProject('paybox', ['push', '--gateway', gateway, '--amount', '50000', '--content', 'DH1']);
    expect(pushed).toMatchObject({ status: 0, output: expect.stringContaining('shows the QR') });
    expect((await fetch(`${gateway}/docs`)).status).toBe(200);
  });

  it('passes in vitest', () => {
    const head = `import { expect, it } from 'vitest';\nimport { openPaybox } from '${NAME}';\nconst equal = (a, b) => expect(a).toBe(b);`;
    write(
      'vitest/shop.test.js',
      `${head}\nit.concurrent.each([1, 2, 3])('sells %i', async () => {${STEPS}\n}, 60_000);`,
    );
    const { status, output } = inProject('vitest', ['run', '--root', 'vitest']);
    expect(status, output).toBe(0);
    expect(output).toMatch(/3 passed/);
  });

  it.each([
    ['CommonJS', 'cjs', `const { openPaybox } = require('${NAME}');`, {}],
    ['ES modules', 'mjs', `import { openPaybox } from '${NAME}';`, { NODE_OPTIONS: '--experimental-vm-modules' }],
  ])('passes in jest with %s', (_name, kind, head, env) => {
    const test = `test('sells', async () => {${STEPS}\n}, 60_000);`;
    const ownGlobals = 'const equal = (a, b) => expect(a).toBe(b);';
    write(`jest-${kind}/shop.test.${kind}`, `${head}\n${ownGlobals}\n${test}`);
    write(`jest-${kind}/package.json`, JSON.stringify({ jest: { testMatch: [`**/*.test.${kind}`], transform: {} } }));
    const { status, output } = inProject('jest', ['--rootDir', `jest-${kind}`], env);
    expect(status, output).toBe(0);
    expect(output).toMatch(/1 passed/);
  });

  it('passes in node:test of the host', () => {
    const head = `import { test } from 'node:test';\nimport { equal } from 'node:assert';\nimport { openPaybox } from '${NAME}';`;
    write('node/shop.test.mjs', `${head}\ntest('sells', async () => {${STEPS}\n});`);
    const { status, output } = inProject('node', ['--test', 'node/shop.test.mjs']);
    expect(status, output).toBe(0);
    expect(output).toMatch(/pass 1/);
  });

  it.each([
    ['commonjs', 'cts'],
    ['module', 'mts'],
  ])('compiles under strict in a project of type %s', (_type, extension) => {
    const code = [
      `import { type ExpectWords, NotAsExpected, openPaybox, type Paybox } from '${NAME}';`,
      'export async function sell(): Promise<string> {',
      `  const paybox: Paybox = await openPaybox({ callbackUrl: 'http://127.0.0.1:1/sync', boxes: 2 });`,
      `  const paid: ExpectWords = { state: 'paid', callback: 'delivered', within: '5s' };`,
      '  try { await paybox.expect(paid, { box: 2 }); } catch (error) { if (error instanceof NotAsExpected) return error.screen ?? error.message; }',
      `  await paybox.fault({ inject: 'push-lost', times: 2 });`,
      `  // @ts-expect-error: there is no such fault`,
      `  await paybox.fault('push-losst');`,
      `  // @ts-expect-error: there is no such condition`,
      `  await paybox.expect({ stat: 'paid' });`,
      '  return (await paybox.pay({ amount: 1, content: "A" })).transactionId + (await paybox.screen()).length;',
      '}',
    ];
    write(`types/shop.${extension}`, code.join('\n'));
    const { status, output } = inProject('tsc', [...STRICT, '--exactOptionalPropertyTypes', `types/shop.${extension}`]);
    expect(status, output).toBe(0);
  });

  it('has types of its module testcontainers, which says what is missing where testcontainers is not installed', () => {
    expect(inProject('node', ['--eval', `require('${NAME}/testcontainers')`]).output).toContain(
      "Cannot find module 'testcontainers'",
    );
    expect(inProject('node', ['--input-type=module', '--eval', `import '${NAME}/testcontainers'`]).output).toContain(
      "Cannot find module 'testcontainers'",
    );
    const code = [
      `import { PayboxContainer, type StartedPayboxContainer } from '${NAME}/testcontainers';`,
      'export async function pay(): Promise<string> {',
      '  const paybox: StartedPayboxContainer = await new PayboxContainer().withExposedPorts(1).start();',
      `  await paybox.expect({ state: 'paid' });`,
      '  // @ts-expect-error: there is no such condition',
      `  await paybox.expect({ stat: 'paid' });`,
      `  return (await paybox.pay({ amount: 1, content: 'A' })).transactionId;`,
      '}',
    ];
    write('types/testcontainers.d.ts', readFileSync(join(ROOT, 'src/testing/testcontainers.d.ts'), 'utf8'));
    for (const extension of ['cts', 'mts']) {
      write(`types/container.${extension}`, code.join('\n'));
      const files = ['types/testcontainers.d.ts', `types/container.${extension}`];
      const { status, output } = inProject('tsc', [...STRICT, ...files]);
      expect(status, output).toBe(0);
    }
  });

  it('says which Node is needed where its own is missing', () => {
    const node = join(project, 'node_modules', `node-${process.platform}-${process.arch}`);
    const aside = join(project, 'aside');
    spawnSync('mv', [node, aside]);
    onTestFinished(() => void spawnSync('mv', [aside, node]));
    // A Node that is too old, as far as the program can tell.
    write(
      'old.cjs',
      `Object.defineProperty(process, 'version', { value: 'v18.0.0' }); Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.0.0' } });`,
    );
    const env = { NODE_OPTIONS: `--require ${join(project, 'old.cjs')}` };
    const { status, output } = inProject('paybox', ['--version'], env);
    expect([status, output]).toEqual([
      3,
      expect.stringMatching(
        /^paybox needs Node 24, this is v18\.0\.0: no Node of its own is installed for linux (x64|arm64)\n {2}on Linux/m,
      ),
    ]);
    write(
      'open.mjs',
      `import { openPaybox } from '${NAME}';\nawait openPaybox().catch((error) => console.log(String(error)));`,
    );
    expect(inProject('node', ['open.mjs'], env).output).toMatch(
      /^PayboxRefusal: paybox needs Node 24, this is v18\.0\.0, and no Node of its own/m,
    );
  });
});
