import { execFileSync } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, readFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { JOURNAL_FILE } from '../../src/device/agent/journal/journal.ts';
import { assertReplaceable, NotAFileError } from '../../src/lib/files.ts';
import { readGiven, writeGiven } from '../../src/lib/given-files.ts';
import { BOXES } from '../gateway/harness.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { CLI, type Running, readyFile, run, START_MS } from '../support/processes.ts';

/** A start takes a second, on a machine that has much else to do some more; a program that hangs takes for ever. */
const HANGS_MS = 60_000;
const paybox = (...args: string[]) => run(CLI, args);
const fifo = (path: string) => void execFileSync('mkfifo', [path]);

/** The exit code of a program that must end by itself. */
async function endOf(running: Running): Promise<number | string> {
  const late = new AbortController();
  const hangs = delay(HANGS_MS, 'hangs', { signal: late.signal }).catch(() => '');
  const end = await Promise.race([running.ended, hangs]);
  late.abort();
  return end;
}

/** Everything that can be in the place of a file. */
const OTHERS: [what: string, put: (path: string) => unknown][] = [
  ['a FIFO (a named pipe)', fifo],
  ['a folder', (path) => mkdir(path)],
  ['a device', (path) => symlinkSync('/dev/null', path)],
  ['a socket', (path) => listen(path)],
  [
    'a FIFO (a named pipe)',
    (path) => {
      fifo(`${path}.other`);
      symlinkSync(`${path}.other`, path);
    },
  ],
];

async function listen(path: string): Promise<void> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(path, done));
  onTestFinished(() => void server.close());
}

async function gatewayFile(folder: string, change: object = {}): Promise<string> {
  const file = join(folder, 'gateway.yaml');
  const dataDir = join(folder, 'data');
  await mkdir(dataDir, { recursive: true });
  writeFileSync(file, JSON.stringify({ http: { port: await freePort() }, mqtt: null, dataDir, ...change }));
  return file;
}

async function agentFile(folder: string, change: object = {}): Promise<string> {
  const { terminalCode, serialNumber, secret } = BOXES[0] as (typeof BOXES)[number];
  const file = join(folder, 'agent.yaml');
  const dataDir = join(folder, 'box');
  await mkdir(dataDir, { recursive: true });
  const link = { transport: 'http', url: `http://127.0.0.1:${await freePort()}` };
  const config = { box: { terminalCode, serialNumber, secret }, link, displays: [{ driver: 'browser' }], dataDir };
  writeFileSync(file, JSON.stringify({ ...config, http: { port: await freePort() }, ...change }));
  return file;
}

describe('something else than a file in the place of one', () => {
  it.each(OTHERS)(
    'THR-43 something else than a file as the store of a gateway ends its start: %s',
    async (what, put) => {
      const folder = await temporaryFolder();
      const config = await gatewayFile(folder);
      const store = join(folder, 'data/gateway.sqlite');
      await put(store);
      const running = paybox('gateway', '--config', config);
      expect([await endOf(running), running.output()]).toEqual([
        2,
        expect.stringContaining(`the store ${store} cannot be opened: it is ${what}, expected a file\n  move it away`),
      ]);
    },
  );

  it('THR-43 something else than a file ends the start of a gateway by name, for each of its files', async () => {
    const folder = await temporaryFolder();
    const pem = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const rows: [file: string, config: object][] = [
      ['data/gateway.sqlite-wal', {}],
      ['data/gateway.sqlite-shm', {}],
      ['data/gateway.sqlite-journal', {}],
      ['data/gateway.mark', {}],
      ['data/registry.key', {}],
      ['cert.pem', { http: { port: await freePort(), tls: pem } }],
      ['root.pem', { databaseUrl: `postgres://a:b@127.0.0.1:1/db?sslmode=verify-full&sslrootcert=${folder}/root.pem` }],
      ['gateway.yaml', {}],
    ];
    await inFours(rows, async ([name, change]) => {
      const own = join(folder, name.replaceAll('/', '-'));
      await mkdir(own);
      const moved = JSON.parse(JSON.stringify(change).replaceAll(folder, own)) as object;
      const config = await gatewayFile(own, moved);
      const path = join(own, name);
      if (path === config) execFileSync('rm', [config]);
      fifo(path);
      const running = paybox('gateway', '--config', config);
      const says = expect.stringMatching(/FIFO (\(a named pipe\)|to which nobody writes), expected a file/);
      expect([name, await endOf(running), running.output()]).toEqual([name, 2, says]);
      expect(running.output()).toContain(path);
      expect(lstatSync(path).isFIFO()).toBe(true);
    });
  });

  it('THR-43 something else than a file ends a command by name that was given it, to read or to write', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'pipe');
    fifo(path);
    const nobody = `http://127.0.0.1:${await freePort()}`;
    const scenario = join(folder, 'pipe.yaml');
    fifo(scenario);
    const rows: string[][] = [
      ['admin', 'partners', 'list', '--gateway', nobody, '--admin-token-file', path],
      ['admin', 'partners', 'list', '--gateway', nobody, '--ca', path],
      ['admin', 'sources', 'add', 'x', '--gateway', nobody, '--file', path],
      ['config', 'check', path],
      ['bench', 'check', scenario],
      ['backup', path, '--gateway', nobody, '--replace'],
      ['gateway', '--config', await gatewayFile(folder), '--ready-file', path],
      ['agent', '--config', await agentFile(folder), '--ready-file', path],
      ['agent', '--config', await agentFile(folder, { displays: [{ driver: 'png', path }] })],
    ];
    await inFours(rows.slice(0, -1), async (args) => {
      const running = paybox(...args);
      expect([args, await endOf(running), running.output()]).toEqual([
        args,
        2,
        expect.stringMatching(/pipe(\.yaml)? is a FIFO .*expected a file\n? /),
      ]);
    });
    expect(lstatSync(path).isFIFO()).toBe(true);
  });

  it('THR-43 AGT-8 something else than a file is set aside where it is the journal of a box, which starts without waiting for it', async () => {
    await inFours([JOURNAL_FILE, `${JOURNAL_FILE}-wal`], async (name) => {
      const folder = await temporaryFolder();
      const config = await agentFile(folder);
      // As from a version of before.
      for (const other of ['secret', 'link.json']) fifo(join(folder, 'box', other));
      fifo(join(folder, 'box', name));
      const ready = join(folder, 'ready.json');
      const running = paybox('agent', '--config', config, '--ready-file', ready);
      await readyFile(ready, running);
      expect(running.output()).toContain('"event":"journal-set-aside"');
      expect(running.output()).toMatch(/is a FIFO \(a named pipe\), expected a file/);
      const journal = statSync(join(folder, 'box', JOURNAL_FILE));
      expect([journal.isFile(), journal.mode & 0o777]).toEqual([true, 0o600]);
      expect(await running.stop()).toBe(0);
    });
  });
});

describe('what a person deliberately names', () => {
  const bash = (script: string) => run('bash', ['-c', script]);

  it('THR-43 a command may be given what another program writes or reads, as by <(…), >(…) and standard input', async () => {
    const folder = await temporaryFolder();
    const token = 'A-long-admin-token-of-a-test';
    const config = await gatewayFile(folder, { adminToken: token });
    const ready = join(folder, 'ready.json');
    const slowly = `(head -c 20 ${config}; sleep 0.3; tail -c +21 ${config})`;
    const gateway = bash(`exec ${CLI} gateway --config <${slowly} --ready-file ${ready}`);
    const { consoleUrl } = await readyFile<{ consoleUrl: string }>(ready, gateway);
    const origin = new URL(consoleUrl).origin;
    const rows: [script: string, says: string][] = [
      [`${CLI} admin partners list --gateway ${origin} --admin-token-file <(echo ${token})`, 'no partners'],
      [`echo ${token} | ${CLI} admin partners list --gateway ${origin} --admin-token-file -`, 'no partners'],
      [`echo ${token} | ${CLI} admin partners list --gateway ${origin} --admin-token-file /dev/stdin`, 'no partners'],
      [`${CLI} admin partners list --gateway ${origin} --admin-token-file /dev/null`, 'expected one line'],
      [`${CLI} admin partners list --gateway ${origin} --admin-token-file /dev/zero`, 'has more than 65536 bytes'],
    ];
    await inFours(rows, async ([script, says]) => {
      const running = bash(script);
      const end = await endOf(running);
      expect([script, end, running.output()]).toEqual([
        script,
        says === 'no partners' ? 0 : 2,
        expect.stringContaining(says),
      ]);
    });
    const scenario = join(folder, 'nothing.yaml');
    writeFileSync(scenario, 'name: nothing\nsteps:\n  - wait: 10ms\n');
    const reports = bash(
      `${CLI} bench run ${scenario} --junit >(cat > ${folder}/junit.xml) --tap /dev/null && while [ ! -s ${folder}/junit.xml ]; do sleep 0.05; done`,
    );
    expect([await endOf(reports), reports.output()]).toEqual([0, expect.stringContaining('nothing')]);
    expect(await readFile(join(folder, 'junit.xml'), 'utf8')).toMatch(/<\/testsuites>\s*$/);
    expect(lstatSync('/dev/null').isCharacterDevice()).toBe(true);
  });

  it('THR-43 a pipe is waited for a second where nobody writes it, and not opened where it is no stream', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'pipe');
    fifo(path);
    expect(() => readGiven(path, 100)).toThrow(`${path} is a FIFO to which nobody writes, expected a file`);
    expect(() => writeGiven(path, 'x')).toThrow(`${path} is a FIFO that nobody reads, expected a file`);
    expect(() => readGiven(folder, 100)).toThrow(`${folder} is a folder, expected a file`);
    expect(() => readGiven('/dev/zero', 100)).toThrow('/dev/zero has more than 100 bytes');
    expect(readGiven('/dev/null', 100)).toEqual(Buffer.alloc(0));
    writeGiven('/dev/null', 'x'.repeat(200_000));
    // This process stands still meanwhile.
    const writer = run('sh', ['-c', `sleep 0.2; (printf later; sleep 0.2; printf ' and more') > ${path}`]);
    expect(readGiven(path, 100).toString()).toBe('later and more');
    expect(await writer.ended).toBe(0);
    const reader = run('sh', ['-c', `sleep 0.2; cat ${path} | wc -c`]);
    // More than a pipe holds.
    await eventually('a reader', () => {
      try {
        writeGiven(path, 'x'.repeat(500_000));
        return true;
      } catch (error) {
        if (error instanceof NotAFileError) return false;
        throw error;
      }
    });
    await reader.ended;
    expect(reader.output().trim()).toBe('500000');
  });
});

describe('files that a program makes', () => {
  /** Runs the CLI with an umask that lets everybody write everything. */
  const openly = (...args: string[]) => run('sh', ['-c', 'umask 0; exec "$@"', 'sh', CLI, ...args]);

  it("THR-43 THR-15 files that a program makes are its owner's only, whatever the umask, and a ready file follows no link", async () => {
    const folder = await temporaryFolder();
    const shared = join(folder, 'shared');
    execFileSync('mkdir', ['-m', '1777', shared]);
    const ready = join(shared, 'ready.json');
    const victim = join(folder, 'victim');
    writeFileSync(victim, 'of the victim');
    symlinkSync(victim, ready);
    const ports = [await freePort(), await freePort(), await freePort()].map(String);
    const [http = '', mqtt = '', box = ''] = ports;
    const data = join(folder, 'new/data');
    const running = openly(
      ...['up', '--data', data, '--http-port', http, '--mqtt-port', mqtt, '--box-port', box],
      ...['--ready-file', ready, '--display', 'png', '--no-open'],
    );
    await eventually('a ready file', () => lstatSync(ready, { throwIfNoEntry: false })?.isFile(), START_MS);
    expect(await readyFile<object>(ready, running)).toMatchObject({ partner: { password: 'demo-secret' } });
    const stats = lstatSync(ready);
    expect([stats.isFile(), stats.mode & 0o777]).toEqual([true, 0o600]);
    expect(readFileSync(victim, 'utf8')).toBe('of the victim');
    expect(readdirSync(shared)).toEqual(['ready.json']);
    const open = everythingIn(data).filter(([path, mode]) => (mode & 0o077) !== 0 && !path.endsWith('screen.png'));
    expect(open).toEqual([]);
    expect(statSync(dirname(data)).mode & 0o777).toBe(0o700);
    expect(await running.stop()).toBe(0);
  });

  it('THR-43 a program makes no file under a name of the system', () => {
    for (const path of ['/dev/null', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1', '/dev/../dev/null']) {
      expect(() => assertReplaceable(path)).toThrow(NotAFileError);
    }
    expect(() => assertReplaceable('/dev/shm/paybox-ready.json')).not.toThrow();
  });
});

/** Paths and modes of a folder and all that is in it. */
function everythingIn(folder: string): [path: string, mode: number][] {
  const stats = lstatSync(folder);
  const own: [string, number][] = [[folder, stats.mode & 0o777]];
  return stats.isDirectory() ? [...own, ...readdirSync(folder).flatMap((it) => everythingIn(join(folder, it)))] : own;
}

const AT_ONCE = 4;

async function inFours<T>(all: readonly T[], work: (it: T) => Promise<void>): Promise<void> {
  for (let from = 0; from < all.length; from += AT_ONCE) await Promise.all(all.slice(from, from + AT_ONCE).map(work));
}
