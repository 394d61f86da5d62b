import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const src = join(root, 'src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
  .map((file) => join(src, file));

/** Who may import whom; `main.ts` and commands/ are the composition roots. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  scene: [],
  protocol: ['lib'],
  box: ['scene', 'protocol'],
  display: ['scene', 'lib'],
  voice: ['scene', 'lib'],
  agent: ['box', 'display', 'voice', 'protocol', 'scene', 'lib'],
  gateway: ['protocol', 'lib'],
  bench: ['protocol', 'display', 'scene', 'lib'],
  provision: ['protocol', 'lib'],
  commands: ['lib', 'scene', 'protocol', 'box', 'display', 'voice', 'agent', 'gateway', 'bench', 'provision'],
  main: ['commands', 'lib'],
};

const roomOf = (file: string) => relative(src, file).split('/')[0]?.replace(/\.ts$/, '') ?? '';

function importsOf(file: string): { specifier: string; typeOnly: boolean }[] {
  const text = readFileSync(file, 'utf8');
  const found = [
    ...text.matchAll(
      /(import|export)(\s+type)?\b[^;'"]*?from\s+'([^']+)'|import\(\s*'([^']+)'\s*\)|import\s+'([^']+)'/g,
    ),
  ];
  return found.map((match) => ({
    specifier: match[3] ?? match[4] ?? match[5] ?? '',
    typeOnly: match[2] !== undefined,
  }));
}

const graph = new Map(
  files.map((file) => [
    file,
    importsOf(file)
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier }) => resolve(dirname(file), specifier)),
  ]),
);

describe('the house', () => {
  it('has every room in the import table', () => {
    expect([...new Set(files.map(roomOf))].filter((room) => MAY_IMPORT[room] === undefined)).toEqual([]);
    expect(files.length).toBeGreaterThan(20);
  });

  it('imports only along the table', () => {
    const broken = [...graph].flatMap(([file, targets]) =>
      targets
        .filter((target) => roomOf(target) !== roomOf(file) && !MAY_IMPORT[roomOf(file)]?.includes(roomOf(target)))
        .map((target) => `${relative(root, file)} imports ${relative(root, target)}`),
    );
    expect(broken).toEqual([]);
  });

  it('has no import cycle', () => {
    const done = new Set<string>();
    const path: string[] = [];
    const visit = (file: string): string[] | undefined => {
      if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
      if (done.has(file)) return undefined;
      path.push(file);
      for (const target of graph.get(file) ?? []) {
        const cycle = visit(target);
        if (cycle !== undefined) return cycle;
      }
      path.pop();
      done.add(file);
      return undefined;
    };
    const cycles = files.map(visit).find((cycle) => cycle !== undefined);
    expect(cycles?.map((file) => relative(root, file))).toBeUndefined();
  });

  it('keeps the box pure: no platform, no clock, no chance', () => {
    for (const file of files.filter((name) => roomOf(name) === 'box')) {
      expect(importsOf(file).filter(({ specifier }) => specifier.startsWith('node:'))).toEqual([]);
      expect(readFileSync(file, 'utf8')).not.toMatch(/\bprocess\.|\bBuffer\b|crypto/);
    }
  });

  it('lets only lib ask for the time and for chance', () => {
    const asks = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bset(Timeout|Interval)\(|\bMath\.random\(/;
    const offenders = files.filter((file) => roomOf(file) !== 'lib' && asks.test(readFileSync(file, 'utf8')));
    expect(offenders.map((file) => relative(root, file))).toEqual([]);
  });

  it('keeps files short', () => {
    const long = files.filter((file) => readFileSync(file, 'utf8').split('\n').length > 310);
    expect(long.map((file) => relative(root, file))).toEqual([]);
  });

  it('has the agreed top level', () => {
    const listed = spawnSync('git', ['ls-tree', '--name-only', 'HEAD'], { cwd: root, encoding: 'utf8' });
    const plain = listed.stdout.split('\n').filter((name) => name !== '' && !name.startsWith('.'));
    const agreed = ['LICENSE', 'README.md', 'device-config', 'package-lock.json', 'package.json', 'scripts', 'src'];
    expect(plain).toEqual([...agreed, 'systemd', 'test', 'tsconfig.json']);
  });

  it('names no host of a package registry in the lockfile', () => {
    expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved"/);
  });
});
