import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { SUPPORTED_NODE } from '../../src/lib/node-version.js';
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
const QUIET = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
const NAME = packageName();
const INSTALLED = join('node_modules', NAME);

const project = mkdtempSync(join(tmpdir(), 'paybox-npm-test-'));
let file = '';

/** A program of the project, as its scripts call it: by the user's Node, with the project's programs in front. */
function inProject(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: project,
    encoding: 'utf8',
    timeout: RUN_TIMEOUT_MS,
    env: { ...process.env, PATH: `${join(project, 'node_modules/.bin')}:${hostPath()}`, ...env },
  });
  return { status, output: `${stdout}${stderr}` };
}

/** The Node of the user, and the rest without the folders of this project's programs, which npm puts in front. */
function hostPath(): string {
  const folders = (process.env.PATH ?? '').split(':');
  const others = folders.filter((it) => !it.endsWith('node_modules/.bin') && !it.includes('/node-gyp-bin'));
  return [dirname(process.execPath), ...others].join(':');
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
  write('package.json', JSON.stringify({ name: 'shop', version: '1.0.0', private: true }));
  const installed = inProject('npm', ['install', ...QUIET, file]);
  expect(installed, installed.output).toMatchObject({ status: 0 });
  const tools = inProject('npm', ['install', '--save-dev', ...QUIET, ...TOOLS, TYPE_CHECKER]);
  expect(tools, tools.output).toMatchObject({ status: 0 });
}, INSTALL_TIMEOUT_MS);

afterAll(() => rmSync(project, { recursive: true, force: true, maxRetries: 5 }));

describe('the npm package, installed in a project elsewhere', () => {
  it('is small', () => {
    expect(statSync(file).size).toBeLessThan(PACKED_BYTES_MAX);
  });

  it.each(['--ignore-scripts', '--no-ignore-scripts'])(
    'brings no Node and no install script: the scripts of the project have its own by %s',
    (scripts) => {
      const folder = join(project, `own${scripts}`);
      const which = 'node -p "JSON.stringify([process.execPath, process.versions.node])"';
      const manifest = { name: 'own', version: '1.0.0', private: true, scripts: { which } };
      write(`own${scripts}/package.json`, JSON.stringify(manifest));
      const installed = inProject('npm', ['install', '--prefix', folder, scripts, ...QUIET, file]);
      expect(installed, installed.output).toMatchObject({ status: 0 });
      expect(readdirSync(join(folder, 'node_modules/.bin'))).not.toContain('node');
      const { output } = inProject('npm', ['run', '-s', '--prefix', folder, 'which']);
      expect(JSON.parse(output)).toEqual([process.execPath, process.versions.node]);
      const version = inProject('npm', ['exec', '--prefix', folder, '--no', '--', 'paybox', '--version']);
      expect(version).toMatchObject({ status: 0, output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
    },
  );

  it('has no devDependency, exact versions, and types that every kind of project finds', () => {
    const manifest = JSON.parse(readFileSync(join(project, INSTALLED, 'package.json'), 'utf8'));
    for (const none of ['devDependencies', 'optionalDependencies', 'bundleDependencies', 'scripts', 'private'])
      expect(manifest).not.toHaveProperty(none);
    // Which has no build script: a manager that holds those back has none to ask for.
    expect(Object.keys(manifest.dependencies)).toEqual(['sharp']);
    expect(manifest.engines).toEqual({ node: SUPPORTED_NODE });
    expect(Object.keys(manifest.dependencies).filter((name) => name.startsWith('node-'))).toEqual([]);
    const all = Object.values<string>(manifest.dependencies);
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

  it('has the native part for serial ports among its files', () => {
    const open = `open({ path: '/nothing', baudRate: 9600 }).catch((error) => console.log(error.message))`;
    const code = `require('./${INSTALLED}/lib/serial-ports/dist/index.cjs').autoDetect().${open}`;
    expect(inProject('node', ['--eval', code]).output).toMatch(/cannot open \/nothing/);
    const program = readdirSync(join(project, INSTALLED, 'lib')).filter((name) => name.endsWith('.js'));
    const text = program.map((name) => readFileSync(join(project, INSTALLED, 'lib', name), 'utf8')).join('');
    expect(text).toContain('"./serial-ports/dist/index.cjs"');
  });

  it('is ready to be published', () => {
    const { repository, homepage, bugs, keywords } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const manifest = JSON.parse(readFileSync(join(project, INSTALLED, 'package.json'), 'utf8'));
    const expected = { repository, homepage, bugs: { url: bugs }, keywords, publishConfig: { access: 'public' } };
    expect(manifest).toMatchObject(expected);
    const { status, output } = inProject('npm', ['publish', '--dry-run', file]);
    expect(status, output).toBe(0);
    expect(output).toContain(`+ ${NAME}@${manifest.version}`);
    const warnings = output.split('\n').filter((line) => /^npm warn/i.test(line) && !/Unknown|logged in/.test(line));
    expect(warnings).toEqual([]);
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
    write('types/testcontainers.d.ts', readFileSync(join(ROOT, 'src/bench/library/testcontainers.d.ts'), 'utf8'));
    for (const extension of ['cts', 'mts']) {
      write(`types/container.${extension}`, code.join('\n'));
      const files = ['types/testcontainers.d.ts', `types/container.${extension}`];
      const { status, output } = inProject('tsc', [...STRICT, ...files]);
      expect(status, output).toBe(0);
    }
  });

  it('says which Node is needed where that of the user is too old', () => {
    // A Node that is too old, as far as the program can tell.
    write(
      'old.cjs',
      `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`,
    );
    const env = { NODE_OPTIONS: `--require ${join(project, 'old.cjs')}` };
    const { status, output } = inProject('paybox', ['--version'], env);
    const needed = 'paybox needs Node 22.19, 24.5 or newer, and this is Node 20.20.2';
    expect([status, output]).toEqual([3, `${needed}\n  install one: https://nodejs.org\n`]);
    write(
      'open.mjs',
      `import { openPaybox } from '${NAME}';\nawait openPaybox().catch((error) => console.log(String(error)));`,
    );
    expect(inProject('node', ['open.mjs'], env).output).toContain(`PayboxRefusal: ${needed}`);
  });
});
