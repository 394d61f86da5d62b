/** `npm run package` makes the npm package: one file that works where it is installed. */
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build, type Plugin } from 'esbuild';
import { z } from 'zod';
import { SUPPORTED_NODE } from '../src/lib/node-version.js';
import { argumentsOf } from './arguments.ts';
import { ASSETS, bundleCode, NATIVE_PACKAGES, OLDEST_NODE, packagesOf } from './bundle-code.ts';
import { papersOf } from './bundle-notices.ts';
import { keepAssets } from './bundle-packages.ts';

const ROOT = resolve(import.meta.dirname, '..');
const BYTES_MAX = 15_000_000;
/** The oldest Node that reads the launcher, so that the launcher can say which one is needed. */
const ANY_NODE = 'node12.22';
const LED_PANELS = 'rpi-led-matrix';
const SERIAL_PORTS = '@serialport/bindings-cpp';
const SERIAL_PORTS_FILE = 'serial-ports/dist/index.cjs';
/** The version of testcontainers for which the module `testcontainers` is made. */
const CONTAINERS = { testcontainers: '>=11' };
/** Two folders deep, as `src/lib`, whose code finds `package.json` and `cli.js` from there. */
const LIBRARY = 'lib/testing';
const CONTAINER_LIBRARY = `${LIBRARY}/container`;
const CONTAINER_NAMES = ['PayboxContainer', 'StartedPayboxContainer'];

const USAGE = `usage: npm run package [-- --out DIR]

Makes DIR/paybox-VERSION.tgz (out/ if left out) for "npm install": compiled JavaScript with types, the command paybox and
the library for tests. It depends on nothing but native parts, has no install script, and runs on the Node of its user.
LED panels (HUB75) need rpi-led-matrix beside it, which is compiled.
`;

const Manifest = z.object({
  name: z.string(),
  version: z.string(),
  description: z.string().default(''),
  keywords: z.array(z.string()).optional(),
  homepage: z.string().optional(),
  bugs: z.string().optional(),
  repository: z.looseObject({}).optional(),
  license: z.string(),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});

/**
 * Makes the package in the folder `out`. Returns its file. Throws if npm or a compiler fails, or the package is too
 * large.
 */
export async function makePackage(out: string, progress: (text: string) => void): Promise<string> {
  // The modes of its files must not depend on the person who builds it.
  process.umask(0o022);
  const folder = await mkdtemp(join(tmpdir(), 'paybox-package-'));
  try {
    progress('code');
    const bundled = await bundleCode(ROOT, join(folder, 'lib'), { [SERIAL_PORTS]: SERIAL_PORTS_FILE });
    bundled.push(...(await makeSerialPorts(join(folder, 'lib'))));
    await makePrograms(folder);
    progress('types');
    await makeTypes(folder);
    progress('files, licences and bill of materials');
    await addFiles(folder);
    const { sbom, licenses } = await papersOf(ROOT, [...new Set([...bundled, ...assetFolders()])].sort());
    await writeFile(join(folder, 'LICENSES.txt'), `${await readFile(join(ROOT, 'LICENSE'), 'utf8')}\n${licenses}`);
    await writeFile(join(folder, 'sbom.json'), `${JSON.stringify(sbom, null, 2)}\n`);
    await writeFile(join(folder, 'package.json'), `${JSON.stringify(await manifest(), null, 2)}\n`);
    progress('archive');
    return await pack(folder, out);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const FOR_HOSTS = {
  absWorkingDir: ROOT,
  bundle: true,
  format: 'cjs',
  platform: 'node',
  legalComments: 'none',
  define: { 'import.meta.url': '__file' },
  logLevel: 'warning',
} as const;
const HERE = "const __file = require('url').pathToFileURL(__filename).href;";

/** Makes the launcher, which any Node of a host can read, and the library. */
async function makePrograms(folder: string): Promise<void> {
  const launcher = join(folder, 'bin/paybox.cjs');
  const entry = { entryPoints: ['scripts/npm/launcher.ts'], outfile: launcher };
  await build({ ...FOR_HOSTS, target: ANY_NODE, ...entry, banner: { js: '#!/usr/bin/env node' } });
  await chmod(launcher, 0o755);
  await makeLibrary(join(folder, LIBRARY));
}

/**
 * Adds the native part for serial ports, for all systems, as files of this package. Its own package has an install
 * script, which only compiles where no ready file fits, and at which pnpm ends with an error. Returns the folders of
 * its packages.
 */
async function makeSerialPorts(lib: string): Promise<string[]> {
  const from = join(ROOT, 'node_modules', SERIAL_PORTS);
  const outfile = join(lib, SERIAL_PORTS_FILE);
  // It looks for the ready files relative to its own file.
  const { define: _, ...options } = FOR_HOSTS;
  const { metafile } = await build({ ...options, target: OLDEST_NODE, entryPoints: [from], outfile, metafile: true });
  await cp(join(from, 'prebuilds'), join(dirname(outfile), '../prebuilds'), { recursive: true });
  return packagesOf(Object.keys(metafile.inputs));
}

/** Makes the code of the library and of the module for testcontainers. */
export async function makeLibrary(library: string): Promise<void> {
  const options = { ...FOR_HOSTS, target: OLDEST_NODE, banner: { js: HERE } };
  const entry = { entryPoints: ['src/bench/library/index.ts'], outfile: join(library, 'index.cjs') };
  await build({ ...options, ...entry });
  // Errors are of one class, even if either of the two modules throws them.
  const shared: Plugin = {
    name: 'shared library',
    setup: ({ onResolve }) => onResolve({ filter: /^\.\/index\.ts$/ }, () => ({ path: './index.cjs', external: true })),
  };
  const container = { entryPoints: ['src/bench/library/container.ts'], outfile: join(library, 'container.cjs') };
  await build({ ...options, ...container, external: Object.keys(CONTAINERS), plugins: [shared] });
  // One module serves both systems of modules, so that the tests of a process share one program.
  await writeModule(library, 'index', Object.keys(await import('../src/bench/library/index.ts')));
  // The script has a list of these names, because loading the module needs testcontainers.
  await writeModule(library, 'container', CONTAINER_NAMES);
}

async function writeModule(library: string, module: string, names: readonly string[]): Promise<void> {
  const lines = [
    `import library from './${module}.cjs';`,
    `export const { ${names.toSorted().join(', ')} } = library;`,
  ];
  await writeFile(join(library, `${module}.js`), `${lines.join('\n')}\n`);
}

/** Makes the types of the library, once for each system of modules. */
async function makeTypes(folder: string): Promise<void> {
  const library = join(folder, LIBRARY);
  const made = join(folder, 'types');
  const options = ['--noEmit', 'false', '--declaration', '--emitDeclarationOnly', '--outDir', made];
  const compiler = ['module', 'target', 'lib', 'types'].flatMap((name) => [`--${name}`, COMPILER[name] ?? '']);
  const flags = ['--strict', '--allowImportingTsExtensions', '--skipLibCheck', '--ignoreConfig', '--rootDir', 'src'];
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
  const sources = ['index.ts', 'container.ts', 'testcontainers.d.ts'].map((name) => `src/bench/library/${name}`);
  await promisify(execFile)(process.execPath, [tsc, ...options, ...compiler, ...flags, ...sources], { cwd: ROOT });
  for (const name of ['index', 'container', 'paybox', 'errors', 'words']) {
    const text = await readFile(join(made, `bench/library/${name}.d.ts`), 'utf8');
    for (const [types, code] of [
      ['.d.ts', '.js'],
      ['.d.cts', '.cjs'],
    ] as const) {
      await writeFile(join(library, `${name}${types}`), text.replaceAll(/(from '\.\/\w+)\.ts'/g, `$1${code}'`));
    }
  }
  await rm(made, { recursive: true });
}

const COMPILER: Readonly<Record<string, string>> = {
  module: 'nodenext',
  target: 'es2024',
  lib: 'esnext',
  types: 'node',
};

function assetFolders(): string[] {
  return Object.keys(ASSETS).map((name) => `node_modules/${name}`);
}

async function addFiles(folder: string): Promise<void> {
  await keepAssets(ROOT, join(folder, 'lib'));
  await cp(join(ROOT, 'device-config'), join(folder, 'device-config'), { recursive: true });
  // The bench's code looks for them here, relative to its place in `src`.
  await cp(join(ROOT, 'test/scenarios'), join(folder, 'lib/test/scenarios'), {
    recursive: true,
    filter: (path) => !/\/(__pycache__|\.pytest_cache)$/.test(path),
  });
  await cp(join(ROOT, 'src/bench/library/README.md'), join(folder, 'README.md'));
  await cp(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  // Compilers and tools that do not read `exports` look for a folder of this name.
  const place = { main: `../${CONTAINER_LIBRARY}.cjs`, types: `../${CONTAINER_LIBRARY}.d.cts` };
  await mkdir(join(folder, 'testcontainers'));
  await writeFile(join(folder, 'testcontainers/package.json'), `${JSON.stringify(place, null, 2)}\n`);
  const { name, version } = await manifestOf('.');
  // This file marks the code as ES modules, and contains its name and version.
  await writeFile(join(folder, 'lib/package.json'), `${JSON.stringify({ name, version, type: 'module' }, null, 2)}\n`);
}

async function manifestOf(folder: string): Promise<z.output<typeof Manifest>> {
  return Manifest.parse(JSON.parse(await readFile(join(ROOT, folder, 'package.json'), 'utf8')));
}

async function versionsOf(names: readonly string[]): Promise<Record<string, string>> {
  const of = async (name: string) => [name, (await manifestOf(`node_modules/${name}`)).version] as const;
  return Object.fromEntries(await Promise.all(names.map(of)));
}

async function manifest(): Promise<object> {
  const { optionalDependencies, bugs, ...own } = await manifestOf('.');
  const typed = (library: string) => ({
    import: { types: `${library}.d.ts`, default: `${library}.js` },
    require: { types: `${library}.d.cts`, default: `${library}.cjs` },
  });
  const library = typed(`./${LIBRARY}/index`);
  return {
    ...own,
    // This is the form that npm writes.
    bugs: { url: bugs },
    type: 'module',
    // A package with a scope is private unless it says otherwise.
    publishConfig: { access: 'public' },
    bin: { paybox: 'bin/paybox.cjs' },
    main: library.require.default,
    types: library.require.types,
    exports: {
      '.': library,
      './testcontainers': typed(`./${CONTAINER_LIBRARY}`),
      './package.json': './package.json',
    },
    engines: { node: SUPPORTED_NODE },
    dependencies: await versionsOf(NATIVE_PACKAGES.filter((native) => native !== SERIAL_PORTS)),
    // Yarn with Plug'n'Play keeps packages in archives, and the program is a process of its own.
    preferUnplugged: true,
    // These are for users of panels, whose addon is compiled at its installation and under another licence, or of
    // containers.
    peerDependencies: { [LED_PANELS]: optionalDependencies[LED_PANELS], ...CONTAINERS },
    peerDependenciesMeta: { [LED_PANELS]: { optional: true }, testcontainers: { optional: true } },
  };
}

async function pack(folder: string, out: string): Promise<string> {
  await mkdir(out, { recursive: true });
  const quiet = ['--ignore-scripts', '--loglevel=error'];
  await promisify(execFile)('npm', ['pack', ...quiet, '--pack-destination', folder], { cwd: folder });
  const name = (await readdir(folder)).find((file) => file.endsWith('.tgz')) ?? '';
  const { size } = await stat(join(folder, name));
  if (size > BYTES_MAX) throw new Error(`${name} has ${size} bytes, more than ${BYTES_MAX}`);
  // The file that npm makes has the scope in its name, so the script renames it.
  const file = join(out, `paybox-${(await manifestOf('.')).version}.tgz`);
  await cp(join(folder, name), `${file}.partial`);
  await rename(`${file}.partial`, file);
  return file;
}

if (import.meta.main) {
  const { values } = argumentsOf(USAGE, {
    options: { out: { type: 'string', default: 'out' }, help: { type: 'boolean' } },
  });
  if (values.help === true) process.stdout.write(USAGE);
  else
    process.stdout.write(`${await makePackage(resolve(values.out), (text) => process.stderr.write(`… ${text}\n`))}\n`);
}
