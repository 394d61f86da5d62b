import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { TRANSPORTS } from '../src/device/agent/transports/registry.ts';
import { FAULT_NAMES } from '../src/protocol/faults.ts';

const root = resolve(import.meta.dirname, '..');
const src = join(root, 'src');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
  .map((file) => join(src, file));

/** Who may import whom; `main.ts` and commands/ are the composition roots. A room is the longest of these paths that a file is in. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  lib: [],
  protocol: ['lib'],
  'device/scene': [],
  'device/box': ['device/scene', 'protocol'],
  'device/display': ['device/scene', 'lib'],
  'device/voice': ['device/scene', 'lib'],
  'device/agent': ['device/box', 'device/display', 'device/voice', 'device/scene', 'protocol', 'lib'],
  'device/setup': ['protocol', 'lib'],
  'device/doctor': ['device/agent', 'device/display', 'device/voice', 'device/scene', 'protocol', 'lib'],
  'gateway/store': ['protocol', 'lib'],
  'gateway/money/sources': ['protocol', 'lib'],
  'gateway/config': ['gateway/money/sources', 'protocol', 'lib'],
  'gateway/common': ['gateway/config', 'gateway/store', 'protocol', 'lib'],
  'gateway/cluster': ['gateway/common', 'gateway/config', 'gateway/store', 'protocol', 'lib'],
  gateway: [
    ...['gateway/cluster', 'gateway/common', 'gateway/config', 'gateway/money/sources', 'gateway/store'],
    ...['protocol', 'lib'],
  ],
  bench: ['protocol', 'device/display', 'device/scene', 'lib'],
  'bench/judges': ['bench', 'protocol', 'lib'],
  'bench/library': ['lib'],
  commands: [
    ...[
      'lib',
      'protocol',
      'gateway',
      'gateway/store',
      'gateway/money/sources',
      'gateway/config',
      'gateway/common',
      'bench',
      'bench/judges',
    ],
    ...[
      'device/scene',
      'device/box',
      'device/display',
      'device/voice',
      'device/agent',
      'device/setup',
      'device/doctor',
    ],
  ],
  main: ['commands', 'lib'],
};

/**
 * The inner plan of each room of more than 15 files, from the ground floor up: folders, or files by name; `.` is
 * whatever is not named. A file imports from its own entry and from lower floors only.
 */
const FLOORS: Record<string, readonly (readonly string[])[]> = {
  'device/agent': [
    ['contract.ts'],
    ['journal', 'pages', 'peripherals', 'screen', 'transports'],
    ['config.ts', 'enrolment', 'faults'],
    ['link', 'setup'],
    ['.'],
    ['stages'],
    ['agent.ts'],
  ],
  bench: [
    ['scenarios', 'engine/clients', 'engine/test-time.ts', 'engine/pictures.ts', 'engine/work-folder.ts'],
    ['engine/target.ts', 'engine/reports'],
    ['panels', 'engine/probes.ts', 'engine/steps'],
    ['engine/targets', 'engine/run', 'fleet'],
    ['serve'],
  ],
  'device/display': [['.'], ['io', 'layout'], ['pixels'], ['drivers', 'render.ts'], ['registry.ts']],
  protocol: [
    ['.'],
    ['codec.ts', 'enrolment.ts', 'faults.ts', 'http-api.ts', 'jws.ts', 'vietqr.ts', 'webhook.ts'],
    ['dialect.ts', 'seal.ts'],
  ],
  gateway: [
    ['registry'],
    ['money'],
    ['access', 'partner'],
    ['boxes'],
    ['faults'],
    ['stages'],
    ['doors'],
    ['stages/doors.ts', 'stages/hearing.ts'],
    ['gateway.ts'],
  ],
  'gateway/common': [
    ['changes.ts', 'result.ts', 'row-cache.ts', 'login-budgets.ts', 'open-parts.ts'],
    ['place.ts', 'traffic-log.ts'],
    ['world.ts'],
    ['.'],
  ],
  'gateway/cluster': [
    ['tables.ts', 'said.ts', 'gather.ts', 'known-holders.ts', 'database-session.ts'],
    ['gateway-rows.ts'],
    ['.'],
    ['cluster-place.ts'],
    ['cluster.ts'],
  ],
  commands: [['shared'], ['actions'], ['.']],
  'bench/judges': [['.'], ['service', 'box/gateway'], ['box', 'service/checks'], ['box/checks', 'dialect']],
  'gateway/store': [
    ['schema/registry-rows.ts'],
    ['schema/tables.ts', 'store-files.ts', 'retention.ts', 'engines/store-sharing.ts'],
    ['integrity', 'transact.ts'],
    ['engines', 'repositories'],
    ['schema', 'startup'],
    ['backup', '.'],
  ],
  lib: [['clock.ts', 'errors.ts', 'http.ts', 'random.ts', 'text.ts'], ['.']],
};
/** Each transport's own files on the device and at the gateway, its options there, provisioning, and the judges. */
const MAY_NAME_TRANSPORTS = [
  'device/agent/transports',
  ...['gateway/boxes/broker-client.ts', 'gateway/boxes/broker.ts', 'gateway/doors/box-routes.ts'],
  ...['gateway/config/listeners-config.ts', 'gateway/config/mode.ts', 'gateway/faults/link-faults.ts'],
  'device/setup/configs.ts',
  'bench/judges',
];
/** Doors: which page and list of the console has them. */
const MAY_NAME_FAULTS = ['gateway/doors/page-files.ts', 'gateway/common/changes.ts'];
/** The agent's composition roots: its option for faults, and who puts them, or none, around the parts. */
const MAY_INJECT = ['agent.ts', 'config.ts', 'setup.ts', 'setup/setup-screen.ts', 'world.ts'];
const FLOORS_MAX = 12;
const FILES_WITHOUT_FLOORS_MAX = 15;
const LINES_MAX = 300;
const SHARE_MAX = 0.2;

const ROOMS = Object.keys(MAY_IMPORT).toSorted((a, b) => b.length - a.length);

const roomOf = (file: string) => {
  const path = relative(src, file);
  return ROOMS.find((room) => path === `${room}.ts` || path.startsWith(`${room}/`)) ?? path;
};

/** The entry of its room's inner plan that a file belongs to, and its floor. */
function placeOf(file: string): { entry: string; floor: number } {
  const floors = FLOORS[roomOf(file)] ?? [];
  const inRoom = relative(join(src, roomOf(file)), file);
  const named = floors.flat().filter((entry) => inRoom === entry || inRoom.startsWith(`${entry}/`));
  const entry = named.toSorted((a, b) => b.length - a.length)[0] ?? '.';
  return { entry, floor: floors.findIndex((entries) => entries.includes(entry)) };
}

/** What a file loads when it is loaded itself. */
function staticImportsOf(file: string): string[] {
  const found = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)\b(?!\s+type\b)[^;'"]*?(?:from\s+)?['"](\.[^'"]+)['"]/gm,
  );
  return [...found].map(([, specifier = '']) => resolve(dirname(file), specifier));
}

function importsOf(file: string): { specifier: string; typeOnly: boolean }[] {
  const text = readFileSync(file, 'utf8');
  const found = [
    ...text.matchAll(
      /(import|export)(\s+type)?\b[^;'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"`]([^'"`]+)['"`]|import\s+['"]([^'"]+)['"]/g,
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

  it('lets nothing but the stages of the gateway import its faults', () => {
    const faults = join(src, 'gateway', 'faults');
    const importers = [...graph].filter(
      ([file, targets]) => !file.startsWith(faults) && targets.some((target) => target.startsWith(faults)),
    );
    const stages = ['boxes', 'doors', 'hearing', 'money', 'open-gateway', 'world'].map(
      (it) => `gateway/stages/${it}.ts`,
    );
    expect(importers.map(([file]) => relative(src, file)).toSorted()).toEqual(stages);
    // Their code is loaded only in a sandbox.
    const loading = importers.filter(([file]) => staticImportsOf(file).some((target) => target.startsWith(faults)));
    expect(loading).toEqual([]);
  });

  it('has no word of faults in the core of the gateway, in its store, and in its cluster', () => {
    // `_FAULT` is a code of a broken disk.
    const named = /(?<!de|pre|_)fault/i;
    const isCore = (file: string) => /^gateway\//.test(file) && !/^gateway\/(faults|stages)\//.test(file);
    const core = files.filter((file) => isCore(relative(src, file)));
    const naming = core.filter((file) => named.test(readFileSync(file, 'utf8'))).map((file) => relative(src, file));
    expect(naming.toSorted()).toEqual(MAY_NAME_FAULTS.toSorted());
  });

  it('has no word of injected faults in the loop, link, journal, pages and screen of a box', () => {
    // The state of a box has faults too: those of its own display and disk.
    const named = /(?<!state\.)\bfaults\b|inject|faulty|_mock/i;
    const isCore = (file: string) => /^device\/agent\/(?!faults\/)/.test(file);
    const core = files.filter((file) => isCore(relative(src, file)));
    const naming = core.filter((file) => named.test(readFileSync(file, 'utf8'))).map((file) => relative(src, file));
    expect(naming.toSorted()).toEqual(MAY_INJECT.map((file) => `device/agent/${file}`));
  });

  it('names single faults only where they are made, and in the test bench', () => {
    const schema = join(src, 'protocol', 'faults.ts');
    // A log event may have the name of a fault.
    const names = new RegExp(`(?<!log\\.\\w+\\()['"](${FAULT_NAMES.join('|')})['"]`);
    const naming = [...graph]
      .filter(([file, targets]) => targets.includes(schema) || names.test(readFileSync(file, 'utf8')))
      .map(([file]) => relative(src, file));
    expect(naming.length).toBeGreaterThan(20);
    const home = /^(bench|commands)\/|^(gateway|device\/agent)\/faults\/|^protocol\/faults\.ts$/;
    expect(naming.filter((file) => !home.test(file))).toEqual([]);
  });

  it('has an inner plan for every large room, of few floors', () => {
    const large = [...new Set(files.map(roomOf))].filter(
      (room) => files.filter((file) => roomOf(file) === room).length > FILES_WITHOUT_FLOORS_MAX,
    );
    expect(large.filter((room) => FLOORS[room] === undefined)).toEqual([]);
    expect(Object.entries(FLOORS).filter(([, floors]) => floors.length > FLOORS_MAX)).toEqual([]);
  });

  it('imports inside a room only from lower floors', () => {
    const broken = [...graph].flatMap(([file, targets]) =>
      targets
        .filter((target) => roomOf(target) === roomOf(file) && FLOORS[roomOf(file)] !== undefined)
        .filter((target) => {
          const [from, to] = [placeOf(file), placeOf(target)];
          return from.entry !== to.entry && from.floor <= to.floor;
        })
        .map((target) => `${relative(root, file)} imports ${relative(root, target)}`),
    );
    expect(broken).toEqual([]);
  });

  it('has no entry in an inner plan that names nothing', () => {
    const used = new Set(files.map((file) => `${roomOf(file)}/${placeOf(file).entry}`));
    const named = Object.entries(FLOORS).flatMap(([room, floors]) => floors.flat().map((entry) => `${room}/${entry}`));
    expect(named.filter((entry) => !used.has(entry))).toEqual([]);
  });

  it('loads the faults of a box only where it makes them', () => {
    const reached = new Set([join(src, 'device/agent/agent.ts')]);
    for (const file of reached) for (const target of staticImportsOf(file)) reached.add(target);
    expect(reached.size).toBeGreaterThan(20);
    expect([...reached].filter((file) => file.startsWith(join(src, 'device/agent/faults')))).toEqual([]);
  });

  it('names a transport only in its own file, and where its other side is', () => {
    // Every file may speak of HTTP without a transport. `vietqr` is also a dialect, a kind of source, and a prefix.
    const all = [...TRANSPORTS.keys()];
    const own = all.filter((name) => name !== 'http' && name !== 'vietqr').join('|');
    // A path of an option and the name of a library stand in quotes too.
    const names = [
      `(?<!from |import\\(|\\[)['"](${own})['"]`,
      `(${own})s?://`,
      `transport\\b.{0,12}['"](${all.join('|')})['"]`,
    ];
    const naming = new RegExp(names.join('|'));
    const found = files.filter((file) => naming.test(readFileSync(file, 'utf8'))).map((file) => relative(src, file));
    expect(found.filter((file) => !MAY_NAME_TRANSPORTS.some((it) => file === it || file.startsWith(`${it}/`)))).toEqual(
      [],
    );
    expect(MAY_NAME_TRANSPORTS.filter((it) => !found.some((file) => file === it || file.startsWith(`${it}/`)))).toEqual(
      [],
    );
  });

  it('has no room over a fifth of the source', () => {
    const linesOf = (file: string) => readFileSync(file, 'utf8').split('\n').length;
    const total = files.reduce((sum, file) => sum + linesOf(file), 0);
    const shares = Map.groupBy(files, roomOf)
      .entries()
      .map(([room, own]) => ({ room, share: own.reduce((sum, file) => sum + linesOf(file), 0) / total }));
    expect([...shares].filter(({ share }) => share > SHARE_MAX)).toEqual([]);
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
    for (const file of files.filter((name) => roomOf(name) === 'device/box')) {
      expect(importsOf(file).filter(({ specifier }) => specifier.startsWith('node:'))).toEqual([]);
      expect(readFileSync(file, 'utf8')).not.toMatch(/\bprocess\.|\bBuffer\b|crypto/);
    }
  });

  it('lets only lib ask for the time and for chance', () => {
    const asks = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(|\bset(Timeout|Interval)\(|\bMath\.random\(/;
    const offenders = files.filter((file) => roomOf(file) !== 'lib' && asks.test(readFileSync(file, 'utf8')));
    expect(offenders.map((file) => relative(root, file))).toEqual([]);
  });

  it('creates every HTTP server with the limits of lib/http-server.ts', () => {
    const creates =
      /import[^;]*\bcreateServer\b[^;]*from '[^']*(?:node:http|node:https|\/http\.ts)'|[Ff]astify\((?![\s\S]*serverFactory)/;
    const found = files.filter((file) => creates.test(readFileSync(file, 'utf8'))).map((file) => relative(src, file));
    expect(found).toEqual(['lib/http-server.ts']);
  });

  it('keeps files short', () => {
    const long = files.filter((file) => readFileSync(file, 'utf8').split('\n').length - 1 > LINES_MAX);
    expect(long.map((file) => relative(root, file))).toEqual([]);
  });

  it('has the agreed top level', () => {
    const listed = spawnSync('git', ['ls-tree', '--name-only', 'HEAD'], { cwd: root, encoding: 'utf8' });
    const plain = listed.stdout.split('\n').filter((name) => name !== '' && !name.startsWith('.'));
    const agreed = [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'device-config',
      'package-lock.json',
      'package.json',
      'scripts',
      'src',
    ];
    expect(plain).toEqual([...agreed, 'systemd', 'test', 'tsconfig.json']);
  });

  it('names no host of a package registry in the lockfile', () => {
    expect(readFileSync(join(root, 'package-lock.json'), 'utf8')).not.toMatch(/"resolved"/);
  });
});
