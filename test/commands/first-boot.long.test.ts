import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { getJson } from '../e2e/walk.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { notifySocket, notifySocketNeeds } from '../support/notify-socket.ts';
import { CLI, paybox, payboxToEnd, readyFile, run } from '../support/processes.ts';

/** A file system of one's own needs root, and a machine that lets it. */
const own = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'test', '/mnt'], { encoding: 'utf8' });
const namespaces = {
  missing: own.status !== 0,
  note: own.status === 0 ? '' : ' (no mounts of its own: run it as root)',
};

/** A device: its boot partition with this file on it, and the folders that `paybox first-boot` writes into. */
async function device(file?: string, ...programs: string[]) {
  const root = await temporaryFolder();
  const at = (name: string) => join(root, name);
  await mkdir(at('boot'));
  await mkdir(at('etc/paybox'), { recursive: true });
  for (const program of programs) {
    await mkdir(dirname(at(program)), { recursive: true });
    await writeFile(at(program), '');
  }
  const write = (text: string) => writeFile(at('boot/paybox.yaml'), text);
  if (file !== undefined) await write(file);
  const folders = {
    boot: at('boot'),
    config: at('etc/paybox'),
    state: at('state'),
    report: at('run/report.json'),
    root,
  };
  const args = Object.entries(folders).flatMap(([name, path]) => [`--${name}`, path]);
  return {
    args,
    boot: folders.boot,
    write,
    root,
    config: at('etc/paybox/agent.yaml'),
    report: folders.report,
    text: (name: string) => readFile(at(name), 'utf8'),
    firstBoot: () => payboxToEnd('first-boot', ...args),
  };
}

const FILE = `terminalCode: VVB000001
serialNumber: VVB900001
gateway: http://127.0.0.1:9
display: { driver: png, path: screen.png }
`;

describe('paybox first-boot', () => {
  it('paybox first-boot applies the boot file, and logs it without a secret', async () => {
    const box = await device(
      `${FILE}secret: A-long-secret-that-a-box-has\nwifi: {ssid: Quán, psk: a-password}\n`,
      'usr/sbin/NetworkManager',
    );
    const { code, output } = await box.firstBoot();
    expect(code, output).toBe(0);
    expect(output).toContain('"event":"boot-file-applied"');
    expect(output).toContain('"event":"wifi-set-up","program":"NetworkManager"');
    expect(output).not.toMatch(/A-long-secret-that-a-box-has|a-password/);
    expect(await box.text('boot/paybox.yaml')).not.toMatch(/A-long-secret-that-a-box-has|a-password/);
    expect(await box.text('etc/NetworkManager/system-connections/paybox.nmconnection')).toContain('psk=a-password');
    expect(JSON.parse(await box.text('run/report.json'))).toMatchObject({ problem: null });
    expect(await payboxToEnd('config', 'check', box.config)).toMatchObject({ code: 0 });
    expect((await box.firstBoot()).output).toBe('');
  });

  it('paybox first-boot says that nothing could manage Wi-Fi, and sets the rest up', async () => {
    const box = await device(`${FILE}wifi: {ssid: x, psk: a-password}\n`);
    const { code, output } = await box.firstBoot();
    expect(code).toBe(1);
    expect(output).toContain('no NetworkManager');
    const problem = async () => JSON.parse(await box.text('run/report.json')).problem as string | null;
    expect(await problem()).toMatch(/^paybox\.yaml: wifi: .*install one of them/);
    expect(await box.text('etc/paybox/agent.yaml')).toContain('VVB000001');
    const doctor = await payboxToEnd('doctor', '--config', box.config, '--setup-report', box.report);
    expect(doctor.output).toMatch(/^failed +set-up +paybox\.yaml: wifi: /m);
    // What a person changed meanwhile stays, and the password is there once there is a program for it.
    await appendFile(box.config, '# mine\n');
    expect((await box.firstBoot()).code).toBe(1);
    await mkdir(join(box.root, 'usr/sbin'), { recursive: true });
    await writeFile(join(box.root, 'usr/sbin/NetworkManager'), '');
    expect((await box.firstBoot()).code).toBe(0);
    expect(await problem()).toBeNull();
    expect(await box.text('etc/NetworkManager/system-connections/paybox.nmconnection')).toContain('psk=a-password');
    expect(await box.text('etc/paybox/agent.yaml')).toContain('# mine');
    expect((await box.firstBoot()).output).toBe('');
  });

  it.each(['paybox.yml', 'paybox.yaml.txt', 'PayBox.YAML', 'PAYBOX.YML.TXT'])(
    'takes %s, and its secret off the card',
    async (name) => {
      const box = await device();
      await writeFile(join(box.boot, name), `${FILE}secret: A-long-secret-that-a-box-has\n`);
      const { code, output } = await box.firstBoot();
      expect([code, output]).toEqual([0, expect.stringContaining('"event":"boot-file-applied"')]);
      expect(await readFile(join(box.boot, name), 'utf8')).toContain('secret: kept');
      expect(await readdir(box.boot)).toEqual([name]);
      expect(JSON.parse(await box.text('run/report.json'))).toEqual({ problem: null, file: join(box.boot, name) });
      expect((await box.firstBoot()).output).toBe('');
    },
  );

  it.each([
    ['a folder', ['box/paybox.yaml'], /^box\/paybox\.yaml: not read there; move it/],
    ['a copy', ['paybox (1).yaml'], /^paybox \(1\)\.yaml: not read under this name; rename it to paybox\.yaml/],
    ['a word processor', ['Paybox.yaml.rtf'], /^Paybox\.yaml\.rtf: not read under this name/],
    ['no kind', ['paybox'], /^paybox: not read under this name/],
    ['a folder of its name', ['paybox/paybox.yaml'], /^paybox\/paybox\.yaml: not read there; move it/],
    ['a folder of a folder', ['a/b/Paybox.yml'], /^a\/b\/Paybox\.yml: not read there/],
    ['two names', ['paybox.yml', 'paybox.yaml.txt'], /^paybox\.yaml\.txt, paybox\.yml: none is read; keep one/],
    [
      'another name beside the right one',
      ['paybox.yaml', 'paybox.yaml.txt'],
      /^paybox\.yaml\.txt: not read beside paybox\.yaml/,
    ],
  ])('names what it does not read: a file in %s', async (_what, names, problem) => {
    const box = await device();
    for (const name of names) {
      await mkdir(dirname(join(box.boot, name)), { recursive: true });
      await writeFile(join(box.boot, name), FILE);
    }
    const { code, output } = await box.firstBoot();
    expect([code, output]).toEqual([0, expect.stringContaining('setup-file-ignored')]);
    const found = JSON.parse(await box.text('run/report.json')) as { problem: string };
    expect(found.problem).toMatch(problem);
    const doctor = await payboxToEnd('doctor', '--config', box.config, '--setup-report', box.report);
    expect(doctor.output).toContain(found.problem);
  });

  it('paybox first-boot removes the secrets of a file of another name that a power cut left half cleared', async () => {
    const box = await device();
    const name = join(box.boot, 'paybox.yaml.txt');
    await writeFile(name, `${FILE}secret: A-long-secret-that-a-box-has\n`);
    await box.firstBoot();
    await rename(name, `${name}.old`);
    await box.firstBoot();
    expect(await readdir(box.boot)).toEqual(['paybox.yaml.txt']);
  });

  it('paybox first-boot ends with 2 where there is no boot partition', async () => {
    const box = await device();
    const { code, output } = await payboxToEnd('first-boot', ...box.args, '--boot', '/nope');
    expect([code, output]).toEqual([2, expect.stringContaining('--boot /nope: there is no such folder')]);
  });

  it('paybox first-boot names the line of a mistake in the boot file, and the agent keeps what it had', async () => {
    const box = await device(FILE.replace('gateway:', 'gatway:'));
    const { code, output } = await box.firstBoot();
    expect(code).toBe(0);
    expect(output).toContain('setup-file-invalid');
    const { problem } = JSON.parse(await box.text('run/report.json')) as { problem: string };
    expect(problem).toContain('paybox.yaml:3: unknown key gatway');
  });

  it('paybox first-boot ends with 1 where it cannot write, and says so', async () => {
    const box = await device(FILE);
    await writeFile(`${box.config}.tmp`, '');
    await mkdir(`${box.config.replace('agent.yaml', 'taken-over.json')}/x`, { recursive: true });
    const { code, output } = await box.firstBoot();
    expect(code).toBe(1);
    expect(output).toContain('setup-failed');
    expect(JSON.parse(await box.text('run/report.json')).problem).toMatch(/^paybox\.yaml: /);
  });
});

describe.skipIf(namespaces.missing)(`on file systems that take no changes${namespaces.note}`, () => {
  /** Runs a script where `folder` is a file system of its own, read-only, and nobody else sees it. */
  const readOnly = (folder: string, text: string, script: string) =>
    run('unshare', [
      '--mount',
      'sh',
      '-ec',
      'mount -t tmpfs test "$1"; printf %s "$2" > "$1/paybox.yaml"; mount -o remount,ro "$1"; eval "$3"',
      'sh',
      folder,
      text,
      script,
    ]);

  it('paybox first-boot removes the secrets from a read-only boot partition, and leaves it as it was', async () => {
    const box = await device();
    const script = `${CLI} first-boot ${box.args.join(' ')}; cat ${box.boot}/paybox.yaml; grep ' ${box.boot} ' /proc/self/mounts`;
    const running = readOnly(box.boot, `${FILE}secret: A-long-secret-that-a-box-has\n`, script);
    await once(running.child, 'close');
    expect(running.child.exitCode, running.output()).toBe(0);
    expect(running.output()).toContain('secret: kept\n');
    expect(running.output()).not.toContain('A-long-secret-that-a-box-has');
    expect(running.output()).toMatch(/ tmpfs ro,/);
    expect(await box.text('etc/paybox/agent.yaml')).toContain('VVB000001');
  });

  it('on a file system that accepts no changes, first boot and doctor say what to do', async () => {
    const box = await device(FILE);
    await box.firstBoot();
    const state = box.boot.replace('boot', 'state');
    await mkdir(state);
    const running = readOnly(state, '', `${CLI} doctor --config ${box.config} --json || true`);
    await once(running.child, 'close');
    expect(running.output()).toMatch(/"check":"storage","result":"failed","found":"EROFS[^}]*see dmesg/);
  });
});

describe.skipIf(notifySocketNeeds.missing)(`a box from its first boot on${notifySocketNeeds.note}`, () => {
  it('a box waits, ready and watched, for a configuration, and starts in the same process once there is one', async () => {
    const http = `http: { port: ${await freePort()} }\n`;
    const box = await device(`${FILE}${http}speling: 1\n`);
    // What a person wrote before is wrong too.
    await writeFile(box.config, `box: {}\n${http}`);
    await box.firstBoot();
    const ready = `${box.report}.ready`;
    const NOTIFY_SOCKET = `${box.report}.socket`;
    const socket = await notifySocket(NOTIFY_SOCKET);
    const args = ['agent', '--config', box.config, '--setup-report', box.report, '--ready-file', ready];
    const agent = run(CLI, args, { NOTIFY_SOCKET, WATCHDOG_USEC: '400000' });
    await socket.until(/^STATUS=fault; offline.*NOT_CONFIGURED: paybox\.yaml:6: unknown key speling/);
    await socket.until('READY=1');
    const feeds = () => socket.received().filter((line) => line === 'WATCHDOG=1').length;
    await expect.poll(feeds, { timeout: 60_000 }).toBeGreaterThan(2);

    await box.write(`${FILE}${http}`);
    await box.firstBoot();
    const { boxUrl } = await readyFile<{ boxUrl: string }>(ready, agent);
    const status = await (await fetch(`${boxUrl}/status`)).json();
    expect(status).toMatchObject({ terminalCode: 'VVB000001', display: { driver: 'png' } });
    await socket.until(/^STATUS=(starting|registering); offline/);
    expect(await agent.stop()).toBe(0);
  });

  it('a box that waits for a configuration ends in order', async () => {
    const box = await device();
    await writeFile(box.config, `box: {}\nhttp: { port: ${await freePort()} }\n`);
    const NOTIFY_SOCKET = `${box.report.replace('/run', '')}.socket`;
    const socket = await notifySocket(NOTIFY_SOCKET);
    const agent = run(CLI, ['agent', '--config', box.config], { NOTIFY_SOCKET });
    await socket.until('READY=1');
    expect(await agent.stop()).toBe(0);
    await socket.until('STOPPING=1');
  });

  it('a box without a configuration says on a terminal what is wrong and ends with 2', async () => {
    const box = await device();
    await writeFile(box.config, 'box: {}\n');
    const { code, output } = await payboxToEnd('agent', '--config', box.config);
    expect(code).toBe(2);
    expect(output).toContain('agent.yaml:1:1: box.terminalCode');
  });
});

it('a file of three lines leads to the code on the screen of the box', async () => {
  const folder = await temporaryFolder();
  const [port, boxPort] = [await freePort(), await freePort()];
  const gateway = {
    http: { port },
    boxes: [{ terminalCode: 'VVB000001', serialNumber: 'VVB900001' }],
    dataDir: 'data',
  };
  const [file, ready, boxReady] = ['gateway.yaml', 'gateway.json', 'box.json'].map((name) => join(folder, name));
  if (file === undefined || ready === undefined || boxReady === undefined) throw new Error('no names');
  const mqtt = { embedded: { port: await freePort() } };
  await writeFile(file, JSON.stringify({ ...gateway, mqtt }));
  await readyFile(ready, paybox('gateway', '--config', file, '--ready-file', ready));

  const codes = 'terminalCode: VVB000001\nserialNumber: VVB900001\n';
  const box = await device(`${codes}gateway: http://127.0.0.1:${port}\nhttp: { port: ${boxPort} }\n`);
  await box.firstBoot();
  const args = ['--config', box.config, '--setup-report', box.report, '--ready-file', boxReady];
  await readyFile(boxReady, paybox('agent', ...args));
  const status = () => getJson<{ enrolment: { code: string } | null }>(`http://127.0.0.1:${boxPort}/status`);
  await eventually('a code', async () => /^[0-9A-Z-]{14}$/.test((await status()).enrolment?.code ?? ''));
});
