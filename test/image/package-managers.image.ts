import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { packageName } from '../../src/lib/version.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const NAME = packageName();
const INSTALL_TIMEOUT_MS = 600_000;
const STEP_TIMEOUT_MS = 300_000;

/** The oldest Node that paybox takes, the pinned one, and a newer one. The oldest release for arm64 is another. */
const NODES = { node22: process.arch === 'x64' ? '22.19.0' : '22.20.0', node24: '', node26: '26.10.0' } as const;
const ARM = process.arch === 'arm64';
/** Package managers and Nodes, by the folder that they are installed in. Together they take 600 MB. */
const PROGRAMS = {
  npm10: 'npm@10.9.9',
  npm11: 'npm@11.21.2',
  npm12: 'npm@12.2.1',
  pnpm10: 'pnpm@10.34.9',
  pnpm12: 'pnpm@12.21.0',
  yarn1: 'yarn@1.22.22',
  yarn4: '@yarnpkg/cli-dist@4.18.1',
  bun: `@oven/bun-linux-${ARM ? 'aarch64' : 'x64'}@1.4.5`,
  deno: `@deno/linux-${process.arch}-glibc@2.9.6`,
  node22: `node-linux-${process.arch}@${NODES.node22}`,
  node26: `node-linux-${process.arch}@${NODES.node26}`,
} as const;
const TYPES = '@types/node@24.19.2';
const COMPILER = 'typescript@7.0.2';
/** Versions 7 do not know Plug'n'Play, which Yarn puts into older ones. */
const COMPILER_OF_YARN = 'typescript@6.0.3';
const VITEST = ['vite@8.3.8', 'vitest@5.1.1'];
const JEST = ['jest@30.5.2'];

const work = mkdtempSync(join(tmpdir(), 'paybox-package-managers-'));
const programs = join(work, 'programs/node_modules');
let file = '';

interface Row {
  manager: Exclude<keyof typeof PROGRAMS, `node${string}`>;
  node: keyof typeof NODES;
  runner: 'vitest' | 'jest' | 'node:test';
  resolution: 'nodenext' | 'bundler';
  linker?: 'pnp' | 'node-modules';
  /** How a program is run by an engine that is not Node; the tests run on it too. */
  engine?: string[];
}

/** Each manager, engine, runner and linker is in one of them at least, and so is each Node; not every pair of them is. */
const ROWS: readonly Row[] = [
  { manager: 'npm10', node: 'node22', runner: 'jest', resolution: 'nodenext' },
  { manager: 'npm11', node: 'node24', runner: 'node:test', resolution: 'bundler' },
  { manager: 'npm12', node: 'node26', runner: 'vitest', resolution: 'nodenext' },
  { manager: 'pnpm10', node: 'node26', runner: 'node:test', resolution: 'bundler' },
  { manager: 'pnpm12', node: 'node22', runner: 'vitest', resolution: 'bundler' },
  { manager: 'yarn1', node: 'node22', runner: 'node:test', resolution: 'nodenext' },
  { manager: 'yarn4', linker: 'pnp', node: 'node22', runner: 'jest', resolution: 'nodenext' },
  { manager: 'yarn4', linker: 'pnp', node: 'node26', runner: 'vitest', resolution: 'bundler' },
  { manager: 'yarn4', linker: 'node-modules', node: 'node26', runner: 'jest', resolution: 'bundler' },
  { manager: 'bun', node: 'node24', runner: 'vitest', resolution: 'nodenext', engine: ['bun', '--bun'] },
  { manager: 'deno', node: 'node24', runner: 'node:test', resolution: 'bundler', engine: ['deno', 'run', '-A'] },
];

/** What a person types with each: the package from a file, tools, a script, the command. */
const COMMANDS = {
  npm: { add: ['install', '-D'], script: ['run', '-s'], paybox: ['exec', '--no', '--', 'paybox'] },
  pnpm: { add: ['add', '-D'], script: ['run', '--silent'], paybox: ['exec', 'paybox'] },
  yarn1: { add: ['add', '-D'], script: ['-s', 'run'], paybox: ['-s', 'paybox'] },
  yarn4: { add: ['add', '-D'], script: ['run'], paybox: ['paybox'] },
  bun: { add: ['add', '-d'], script: ['run', '--silent'], paybox: ['x', '--no-install', 'paybox'] },
  deno: { add: ['add', '--dev', '--npm'], script: ['task', '--quiet'], paybox: [] },
} as const;

/** A project in a folder of its own, with one manager and one Node on its PATH. */
class Project {
  readonly folder: string;
  /** The folder of its programs. */
  readonly programs: string;
  readonly #home: string;

  constructor({ manager, linker, node }: Row) {
    // Plug'n'Play names files by NODE_OPTIONS, where a blank is another matter.
    this.folder = mkdtempSync(join(work, linker === 'pnp' ? 'my shop-' : `${manager}-`));
    this.#home = mkdtempSync(join(work, 'home-'));
    const bin = mkdtempSync(join(work, 'bin-'));
    this.programs = bin;
    symlinkSync(nodeOf(node), join(bin, 'node'));
    const name = nameOf(manager);
    if (manager === 'bun') symlinkSync(join(programs, 'bun/bin/bun'), join(bin, name));
    else if (manager === 'deno') symlinkSync(join(programs, 'deno/deno'), join(bin, name));
    else {
      const { bin: entries } = JSON.parse(readFileSync(join(programs, manager, 'package.json'), 'utf8')) as {
        bin: Record<string, string>;
      };
      const entry = join(programs, manager, manager === 'pnpm12' ? 'bin/pnpm.mjs' : (entries[name] ?? ''));
      writeFileSync(join(bin, name), `#!/bin/sh\nexec node ${entry} "$@"\n`);
      chmodSync(join(bin, name), 0o755);
    }
  }

  write(name: string, content: string | object): void {
    mkdirSync(dirname(join(this.folder, name)), { recursive: true });
    writeFileSync(join(this.folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }

  /** Runs one of its programs. Returns the exit code, and what it printed. */
  async program([command = '', ...args]: readonly string[], more: NodeJS.ProcessEnv = {}) {
    // Without what npm, Node and vitest say of their own to the programs that they start.
    const own = Object.entries(process.env).filter(
      ([name]) => name === 'NODE_EXTRA_CA_CERTS' || !/^(npm_|NODE_|VITEST|INIT_CWD)/i.test(name),
    );
    const child = spawn(command, args, {
      cwd: this.folder,
      timeout: STEP_TIMEOUT_MS,
      killSignal: 'SIGKILL',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...Object.fromEntries(own),
        PATH: `${this.programs}:/usr/local/bin:/usr/bin:/bin`,
        HOME: this.#home,
        ...SETTINGS,
        ...more,
      },
    });
    const printed = { stdout: '', output: '' };
    child.stdout.on('data', (chunk: Buffer) => {
      printed.stdout += chunk;
    });
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        printed.output += chunk;
      });
    const [status, signal] = await once(child, 'close');
    return { ...printed, status: status ?? signal };
  }

  /** Runs it and returns what it printed. Fails with all of it unless it exits with 0. */
  async done(command: readonly string[], more?: NodeJS.ProcessEnv): Promise<string> {
    const { status, stdout, output } = await this.program(command, more);
    expect(status, `${command.join(' ')}\n${output}`).toBe(0);
    return stdout.trim();
  }
}

/** For all managers: where npm of this machine has packages from, and to ask and to tell nobody anything. */
const SETTINGS: NodeJS.ProcessEnv = {
  CI: 'true',
  NO_COLOR: '1',
  ...Object.fromEntries(
    ['npm_config_registry', 'NPM_CONFIG_REGISTRY', 'YARN_REGISTRY', 'YARN_NPM_REGISTRY_SERVER'].map((name) => [
      name,
      execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim(),
    ]),
  ),
};

/** What the project's programs meet when they run: a proxy that answers nobody. */
const PROXY = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: 'http://127.0.0.1:9', http_proxy: 'http://127.0.0.1:9' };

function nodeOf(node: keyof typeof NODES): string {
  return node === 'node24' ? process.execPath : join(programs, node, 'bin/node');
}

function nameOf(manager: Row['manager']): 'npm' | 'pnpm' | 'yarn' | 'bun' | 'deno' {
  return manager.replace(/\d+$/, '') as ReturnType<typeof nameOf>;
}

function commandsOf(manager: Row['manager']): (typeof COMMANDS)[keyof typeof COMMANDS] {
  return manager === 'yarn1' || manager === 'yarn4' ? COMMANDS[manager] : COMMANDS[nameOf(manager) as 'npm'];
}

/** A shop with its own server for callbacks; `equal` compares two values. */
const SELL = `
  const received = [];
  const shop = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk) => { body += chunk; });
    request.on('end', () => {
      received.push(JSON.parse(body));
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: 'A1' } }));
    });
  });
  await new Promise((listening) => shop.listen(0, '127.0.0.1', listening));
  shop.unref();
  const paybox = await openPaybox({ callbackUrl: 'http://127.0.0.1:' + shop.address().port + '/sync' });
  await paybox.push({ amount: 50000, content: 'DH1' });
  await paybox.expect({ screen: 'payment', text: '50.000 ₫' });
  await paybox.pay({ amount: 50000, content: 'DH1' });
  await paybox.expect({ state: 'paid', callback: 'delivered' });
  equal((await paybox.screen()).subarray(1, 4).toString(), 'PNG');
  equal(received.map(({ amount, content }) => amount + ' ' + content).join(), '50000 DH1');
  await paybox.close();
  shop.close();`;
const IMPORTS = `import { createServer } from 'node:http';\nimport { openPaybox } from '${NAME}';\n`;
const REQUIRES = `const { createServer } = require('node:http');\nconst { openPaybox } = require('${NAME}');\n`;
const OF_EXPECT = 'const equal = (a, b) => expect(a).toBe(b);';

/** The test of each runner: its file, and the command of the project's script. */
const RUNNERS = {
  vitest: {
    packages: VITEST,
    file: 'test/shop.test.mjs',
    code: `import { expect, it } from 'vitest';\n${IMPORTS}${OF_EXPECT}\nit('sells', async () => {${SELL}\n}, 120_000);`,
    script: 'vitest run test',
  },
  jest: {
    packages: JEST,
    file: 'test/shop.test.cjs',
    code: `${REQUIRES}${OF_EXPECT}\ntest('sells', async () => {${SELL}\n}, 120_000);`,
    script: 'jest --testMatch "**/*.test.cjs"',
  },
  'node:test': {
    packages: [],
    file: 'test/shop.test.mjs',
    code: `import { equal } from 'node:assert';\nimport { test } from 'node:test';\n${IMPORTS}test('sells', async () => {${SELL}\n});`,
    script: 'node --test test/shop.test.mjs',
  },
} as const;

const TYPED = `import { openPaybox, type Paybox } from '${NAME}';
export async function sell(): Promise<string> {
  const paybox: Paybox = await openPaybox({ boxes: 2 });
  // @ts-expect-error: there is no such condition
  await paybox.expect({ stat: 'paid' });
  return (await paybox.pay({ amount: 1, content: 'A' })).transactionId + (await paybox.screen()).length;
}
`;

function compilerOptions(resolution: Row['resolution']): object {
  const module = { nodenext: 'nodenext', bundler: 'esnext' }[resolution];
  const base = { strict: true, noEmit: true, target: 'es2022', types: ['node'], skipLibCheck: false };
  return { compilerOptions: { ...base, module, moduleResolution: resolution }, files: ['shop.mts', 'shop.ts'] };
}

/** Writes all of the project but its packages. */
function fill(project: Project, { manager, linker, runner, resolution }: Row): void {
  const { file: test, code, script } = RUNNERS[runner];
  const scripts = { which: 'node -p process.execPath', sell: script, types: 'tsc -p types' };
  project.write('package.json', { name: 'shop', version: '1.0.0', private: true, scripts });
  project.write(test, code);
  project.write('sell.mjs', `import { equal } from 'node:assert';\n${IMPORTS}${SELL}\nconsole.log('sold');`);
  project.write('types/tsconfig.json', compilerOptions(resolution));
  for (const name of ['shop.mts', 'shop.ts']) project.write(`types/${name}`, TYPED);
  if (runner === 'jest') project.write('jest.config.json', { transform: {} });
  if (manager !== 'yarn4') return;
  project.write('yarn.lock', '');
  project.write('.yarnrc.yml', `nodeLinker: ${linker}\nenableTelemetry: false\nenableImmutableInstalls: false\n`);
}

/** A registry with this package alone, for its scope: Deno takes no file. */
async function registryOf(archive: string): Promise<{ server: Server; url: string }> {
  const content = readFileSync(archive);
  const text = execFileSync('tar', ['xzOf', archive, 'package/package.json'], { encoding: 'utf8' });
  const manifest = JSON.parse(text) as { name: string; version: string };
  const integrity = `sha512-${createHash('sha512').update(content).digest('base64')}`;
  const server = createServer((request, response) => {
    if (request.url?.endsWith('.tgz')) {
      response.end(content);
      return;
    }
    const { name, version } = manifest;
    const dist = { tarball: `${url}paybox.tgz`, integrity };
    const time = { [version]: '2025-01-01T00:00:00.000Z' };
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ name, 'dist-tags': { latest: version }, versions: { [version]: { ...manifest, dist } }, time }),
    );
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { server, url };
}

beforeAll(async () => {
  execFileSync(process.execPath, [join(ROOT, 'scripts/package.ts'), '--out', work], { stdio: 'inherit' });
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  file = join(work, `paybox-${version}.tgz`);
  const wanted = Object.entries(PROGRAMS).map(([folder, program]) => `${folder}@npm:${program}`);
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--prefer-offline', '--loglevel=error'];
  const fetched = spawnSync('npm', ['install', '--prefix', join(work, 'programs'), ...quiet, ...wanted], {
    encoding: 'utf8',
  });
  expect(fetched.status, `package managers: ${fetched.stdout}${fetched.stderr}`).toBe(0);
}, INSTALL_TIMEOUT_MS);

afterAll(() => rmSync(work, { recursive: true, force: true, maxRetries: 5 }), INSTALL_TIMEOUT_MS);

describe('the npm package', () => {
  it.each(
    ROWS.map((row) => ({
      ...row,
      title: [row.manager, row.linker, row.node, row.runner, row.resolution].filter(Boolean).join(', '),
    })),
  )(
    'installs, runs and compiles without a warning of its own: $title',
    async (row) => {
      const project = new Project(row);
      onTestFinished(() => rmSync(project.folder, { recursive: true, force: true, maxRetries: 5 }));
      fill(project, row);
      const name = nameOf(row.manager);
      const { add, script, paybox } = commandsOf(row.manager);
      await addPackage(project, row, [name, ...add]);
      const compiler = row.linker === 'pnp' ? COMPILER_OF_YARN : COMPILER;
      const tools = [compiler, TYPES, ...RUNNERS[row.runner].packages];
      // Their own scripts are another matter: pnpm 12 exits with 1 for one of vite's.
      const scripts = row.manager === 'pnpm12' ? ['--ignore-scripts'] : [];
      await project.done([name, ...add, ...scripts, ...tools]);
      expect(realpathSync(await project.done([name, ...script, 'which']))).toBe(realpathSync(nodeOf(row.node)));
      const command = paybox.length === 0 ? ['node', 'node_modules/.bin/paybox'] : [name, ...paybox];
      expect(await project.done([...command, '--version'], PROXY)).toMatch(/^\d+\.\d+\.\d+$/);
      await project.done([name, ...script, 'sell'], PROXY);
      await project.done([name, ...script, 'types']);
      if (row.engine !== undefined) await tryEngine(project, row.engine);
    },
    STEP_TIMEOUT_MS * 2,
  );
});

/** Installs the package as a person does, and returns once no script of it waits for an approval. */
async function addPackage(project: Project, { manager }: Row, add: readonly string[]): Promise<void> {
  if (manager === 'deno') {
    const { server, url } = await registryOf(file);
    onTestFinished(() => void server.close());
    project.write('.npmrc', `${NAME.split('/')[0]}:registry=${url}\n`);
    await project.done([...add, NAME]);
    return;
  }
  const said = await project.program([...add, file]);
  expect(said.status, said.output).toBe(0);
  // No dependency has a build script that a manager would hold back.
  expect(said.output).not.toMatch(/(ignored|blocked|lists) (build|install|\d+ postinstall)/i);
}

/** The library runs paybox by the Node on the PATH. Without one, and for the command, one line says what is needed. */
async function tryEngine(project: Project, engine: readonly string[]): Promise<void> {
  expect(await project.done([...engine, 'sell.mjs'], PROXY)).toBe('sold');
  const command = await project.program([...engine, `node_modules/${NAME}/bin/paybox.cjs`, '--version']);
  expect(command).toMatchObject({ status: 3 });
  expect(command.output).toMatch(
    /^paybox needs Node [\d.]+, [\d.]+ or newer, and this is (Bun|Deno) [\d.]+\n {2}run it by Node: /,
  );
  const [name = '', ...args] = engine;
  const alone = await project.program([join(project.programs, name), ...args, 'sell.mjs'], { PATH: work });
  expect(alone.status).not.toBe(0);
  expect(alone.output).toMatch(
    /PayboxRefusal: paybox needs Node .* on the PATH beside (Bun|Deno) [^;\n]+; install one/,
  );
}
