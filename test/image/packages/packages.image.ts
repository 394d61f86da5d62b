import { execFile, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/net.ts';
import { without } from '../../support/programs.ts';
import { PACKAGE_PROGRAMS } from '../programs.ts';
import { anotherVersion, Machine, makeDebian } from './debian-root.ts';
import { AGENT_YAML, online, opened, shows } from './packaged-box.ts';
import { soldByProvisionedBox, tellsFreshBox } from './provisioned-box.ts';
import { NO_FILES, sha256Of, swapping, swappingWhen } from './update-races.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const BUILD_TIMEOUT_MS = 600_000;
const TEST_TIMEOUT_MS = 240_000;
const UPDATE_TIMEOUT_MS = 120_000;
/** How long the updater watches a version that becomes healthy, and one that does not; how long it has to stay so. */
const PATIENT = '--within 90';
const SHORT = '--within 10';
const SETTLE = 'PAYBOX_UPDATE_SETTLE_SECONDS=3';

const lacking = Object.values(PACKAGE_PROGRAMS)
  .map(without)
  .find(({ missing }) => missing)?.note;
const place = process.getuid?.() !== 0 ? ' (needs root)' : process.arch !== 'x64' ? ' (needs an x86-64 machine)' : '';
const note = lacking ?? place;

/** The version that the sources have, and what a test makes of it. */
const stage = mkdtempSync(join(tmpdir(), 'paybox-deb-test-'));
const debian = join(stage, 'debian');
const shopTemplate = join(stage, 'shop');
const packages = join(stage, 'packages');
const version = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
const agentDeb = join(packages, `paybox-agent_${version}_amd64.deb`);
const gatewayDeb = join(packages, `paybox-gateway_${version}_amd64.deb`);
const ledMatrixDeb = join(packages, `paybox-led-matrix_${version}_amd64.deb`);
let machines = 0;
/** It looks at the packages while the other tests run; rejects with what it says on an error or a warning. */
let lintian: Promise<{ stdout: string; stderr: string }> | undefined;

async function machine(template = debian): Promise<Machine> {
  machines += 1;
  const made = new Machine(template, join(stage, `machine-${machines}`));
  await made.boot();
  return made;
}

/** A machine with a box that is online and shows the QR of an order, and that can go back to its version. */
async function shop(): Promise<{ box: Machine; qrCode: string }> {
  const box = await machine(shopTemplate);
  const qrCode = await opened(box);
  return { box, qrCode };
}

const installed = (box: Machine) =>
  box.must("dpkg -s paybox-agent | sed -n 's/^Status: install ok //p; s/^Version: //p'").trim();
const replaceProgram = (folder: string, script: string) => {
  const program = join(folder, 'usr/lib/paybox-agent/bin/paybox');
  writeFileSync(program, script);
  chmodSync(program, 0o755);
};

/** Both packages in a copy of that Debian, in which nothing runs. */
function makeShop(): void {
  spawnSync('cp', ['-a', '--reflink=auto', debian, shopTemplate]);
  const inside = [agentDeb, gatewayDeb].map((deb) => {
    copyFileSync(deb, join(shopTemplate, 'root', basename(deb)));
    return `/root/${basename(deb)}`;
  });
  const script = 'mount -t proc proc "$0/proc" && exec chroot "$0" dpkg -i "$@"';
  const args = ['--mount', '--pid', '--fork', 'sh', '-c', script, shopTemplate, ...inside];
  const { status, stderr } = spawnSync('unshare', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`dpkg -i: ${stderr}`);
}

beforeAll(() => {
  if (note !== '') return;
  const names = ['paybox-agent', 'paybox-gateway', 'paybox-led-matrix'].flatMap((name) => ['--package', name]);
  const args = ['run', '--silent', 'deb', '--', '--arch', 'amd64', '--quick', '--out', packages, ...names];
  const { status, stderr } = spawnSync('npm', args, { cwd: ROOT, encoding: 'utf8', timeout: BUILD_TIMEOUT_MS });
  if (status !== 0) throw new Error(`npm run deb failed: ${stderr}`);
  const debs = [agentDeb, gatewayDeb, ledMatrixDeb];
  lintian = promisify(execFile)('lintian', ['--allow-root', '--fail-on', 'error,warning', ...debs]);
  lintian.catch(() => undefined);
  makeDebian(debian);
  makeShop();
}, BUILD_TIMEOUT_MS);

afterAll(() => rmSync(stage, { recursive: true, force: true }));

describe.skipIf(note !== '')(`the Debian packages${note}`, { timeout: TEST_TIMEOUT_MS }, () => {
  it('are installed, upgraded, removed and purged, with the journal kept until the last', async () => {
    const box = await machine();
    box.must(`dpkg -i ${box.take(gatewayDeb)} ${box.take(agentDeb)}`);
    const qrCode = await opened(box);
    expect(box.must('paybox --version').trim()).toBe(version);
    expect(
      box.must(
        'cd /etc && paybox config check paybox/agent.example.yaml && paybox config check paybox-gateway/gateway.example.yaml',
      ),
    ).toContain('a valid agent configuration');
    for (const [name, etc, state] of [
      ['agent', '/etc/paybox', '/var/lib/paybox'],
      ['gateway', '/etc/paybox-gateway', '/var/lib/paybox-gateway'],
    ]) {
      const user = `paybox-${name}`;
      expect(box.must(`stat -c "%a %U:%G" ${etc} ${state}`)).toBe(`750 root:${user}\n700 ${user}:${user}\n`);
      expect(box.must(`stat -c %U /proc/$(systemctl show -p MainPID --value ${user}.service)`).trim()).toBe(user);
    }
    // Neither reads what is the other's.
    for (const [user, file] of [
      ['paybox-agent', '/etc/paybox-gateway/gateway.yaml'],
      ['paybox-agent', '/var/lib/paybox-gateway/gateway.sqlite'],
      ['paybox-gateway', '/etc/paybox/agent.yaml'],
      ['paybox-gateway', '/var/lib/paybox/journal.db'],
    ]) {
      box.must(`test -r ${file}`);
      expect(box.run(`setpriv --reuid=${user} --regid=${user} --init-groups cat ${file}`).status, file).not.toBe(0);
    }
    for (const group of ['audio', 'dialout', 'gpio', 'i2c', 'lp', 'spi', 'video']) box.must(`getent group ${group}`);

    const next = anotherVersion(agentDeb, '9.0.0', stage, () => undefined);
    const before = box.must('systemctl show -p MainPID --value paybox-agent.service');
    box.must(`dpkg -i ${box.take(next)}`);
    expect(box.must('paybox --version').trim()).toBe('9.0.0');
    expect(box.must('systemctl show -p MainPID --value paybox-agent.service')).not.toBe(before);
    expect(box.read('etc/paybox/agent.yaml')).toBe(AGENT_YAML);
    await online(box);
    await shows(box, qrCode);

    box.must('dpkg -r paybox-agent paybox-gateway');
    expect(box.run('systemctl is-active paybox-agent.service').output.trim()).toBe('inactive');
    expect(box.has('usr/bin/paybox')).toBe(false);
    expect([box.has('var/lib/paybox/journal.db'), box.has('var/lib/paybox-gateway/gateway.sqlite')]).toEqual([
      true,
      true,
    ]);
    expect(box.read('etc/paybox/agent.yaml')).toBe(AGENT_YAML);
    box.must(`dpkg -i ${box.take(gatewayDeb)} ${box.take(agentDeb)}`);
    await online(box);
    await shows(box, qrCode);

    box.must('dpkg -P paybox-agent');
    expect(box.has('var/lib/paybox')).toBe(false);
    expect([box.has('etc/paybox/agent.yaml'), box.has('etc/paybox-gateway/gateway.yaml')]).toEqual([false, true]);
    expect(box.must('paybox --version').trim()).toBe(version);
    box.must('dpkg -P paybox-gateway');
    expect(
      box.run('find / -xdev -name "*paybox*" -not -path "/root/*" -not -path "/var/log/*" -not -path "/run/*"').output,
    ).toBe('');
  });

  it('run a box by the very command that paybox provision prints, from the first doctor to the report of a payment', async () => {
    const box = await machine(shopTemplate);
    tellsFreshBox(box);
    await soldByProvisionedBox(box);
  });

  it('bring the addon for LED panels beside the agent, whose Node loads it', async () => {
    const box = await machine();
    const deb = box.take(ledMatrixDeb);
    expect(box.run(`dpkg -i ${deb}`)).toMatchObject({ output: expect.stringContaining('depends on paybox-agent') });
    box.must(`dpkg -r paybox-led-matrix && dpkg -i ${box.take(agentDeb)} ${deb}`);
    const load =
      "import('/usr/lib/paybox-led-matrix/dist/index.js').then((addon) => console.log(typeof addon.LedMatrix))";
    expect(box.must(`/usr/lib/paybox-agent/node -e "${load}"`).trim()).toBe('function');
    expect(box.read('usr/src/paybox-led-matrix/rpi-led-matrix/vendor/COPYING')).toContain('GNU GENERAL PUBLIC LICENSE');
    box.must('dpkg -r paybox-led-matrix');
    expect([box.has('usr/lib/systemd/system/paybox-agent.service.d'), box.has('usr/src/paybox-led-matrix')]).toEqual([
      false,
      false,
    ]);
  });

  it('are installed by the script for Raspberry Pi OS, which says what is not as it has to be', async () => {
    const box = await machine();
    const script = readFileSync(join(ROOT, 'scripts/install-on-raspberry-pi-os'), 'utf8');
    box.write('root/install', script);
    box.write('root/install-here', script.replace('ARCHITECTURE=arm64', 'ARCHITECTURE=amd64'));
    const deb = box.take(agentDeb);
    expect(box.run(`bash /root/install ${deb}`)).toMatchObject({
      status: 1,
      output: expect.stringContaining('this system is amd64'),
    });
    const install = `bash /root/install-here ${deb}`;
    expect(box.run(install)).toMatchObject({ status: 1, output: expect.stringContaining('there are no checksums') });
    const sums = readFileSync(join(packages, 'SHA256SUMS'), 'utf8');
    box.write('root/SHA256SUMS', sums.replace(/^[0-9a-f]{8}/gm, '00000000'));
    expect(box.run(install)).toMatchObject({ status: 1, output: expect.stringContaining('is not what') });
    expect(box.run('dpkg -s paybox-agent').status).not.toBe(0);
    box.write('root/SHA256SUMS', sums);
    expect(box.must(install)).toContain('What is next');
    expect(box.must(install)).toContain('is installed already');
    expect(box.must('paybox-update status')).toContain(`kept       ${version}`);
  });

  it('are installed into the folder of an image, from outside', () => {
    const folder = join(stage, 'image');
    spawnSync('cp', ['-a', '--reflink=auto', debian, folder]);
    const args = ['--force-script-chrootless', `--root=${folder}`, '-i', agentDeb];
    const { status, stdout, stderr } = spawnSync('dpkg', args, {
      encoding: 'utf8',
      env: { ...process.env, SYSTEMD_OFFLINE: '1' },
    });
    expect(status, `${stdout}${stderr}`).toBe(0);
    expect(readFileSync(join(folder, 'etc/group'), 'utf8')).toMatch(/^spi:/m);
    const enabled = spawnSync('ls', [join(folder, 'etc/systemd/system/multi-user.target.wants')], { encoding: 'utf8' });
    expect(enabled.stdout).toMatch(/^paybox-agent\.service$/m);
  });
});

describe.skipIf(note !== '')(`paybox-update${note}`, { timeout: TEST_TIMEOUT_MS }, () => {
  const update = (box: Machine, deb: string, watch: string) =>
    box.run(`${SETTLE} paybox-update ${box.take(deb)} ${watch}`);

  it('installs a version that is as healthy as the one before, and keeps it to go back to', async () => {
    const { box, qrCode } = await shop();
    const next = anotherVersion(agentDeb, '9.0.0', stage, () => undefined);
    expect(update(box, next, PATIENT)).toMatchObject({
      status: 2,
      output: expect.stringContaining('there is no way back'),
    });
    box.must(`paybox-update keep ${box.take(agentDeb)}`);
    const { status, output } = update(box, next, PATIENT);
    expect(status, `${output}${box.logs()}`).toBe(0);
    expect(installed(box)).toBe('installed\n9.0.0');
    expect(box.must('paybox-update status')).toMatch(/kept +9\.0\.0\nlast +updated from \S+ to 9\.0\.0/);
    await shows(box, qrCode);
  });

  it.each([
    {
      what: 'does not start',
      version: '9.0.1',
      change: (folder: string) => replaceProgram(folder, '#!/bin/sh\nexit 1\n'),
      reason: /within 10 s: (active|inactive), health: no answer/,
    },
    {
      what: 'does not get online',
      version: '9.0.2',
      change: (folder: string) =>
        replaceProgram(
          folder,
          `#!/bin/sh
sed 's/18830/1/' /etc/paybox/agent.yaml > /tmp/agent.yaml
shift 3
exec /usr/lib/paybox-agent/node /usr/lib/paybox-agent/lib/cli.js agent --config /tmp/agent.yaml "$@"
`,
        ),
      reason: /"online":false/,
    },
    {
      what: 'cannot be configured',
      version: '9.0.3',
      change: (folder: string) => writeFileSync(join(folder, 'DEBIAN/postinst'), '#!/bin/sh\nexit 1\n'),
      reason: /dpkg could not install it/,
    },
  ])('goes back from a version that $what', async ({ version: bad, change, reason }) => {
    const { box, qrCode } = await shop();
    box.must(`paybox-update keep ${box.take(agentDeb)}`);
    const { status, output } = update(box, anotherVersion(agentDeb, bad, stage, change), SHORT);
    expect(status, `${output}${box.logs()}`).toBe(1);
    expect(installed(box)).toBe(`installed\n${version}`);
    expect(box.must('paybox-update status')).toMatch(
      new RegExp(`last +went back from ${bad} to ${version}, and the box`),
    );
    expect(box.read('var/lib/paybox-update/last')).toMatch(reason);
    await online(box);
    await shows(box, qrCode);
  });

  it.each([
    {
      cut: 'while files are replaced',
      at: (box: Machine) => box.has('usr/lib/paybox-agent/node.dpkg-new'),
      change: () => undefined,
      ends: 'went back',
    },
    {
      cut: 'while it is configured',
      at: (box: Machine) => box.has('configuring'),
      change: (folder: string) =>
        writeFileSync(join(folder, 'DEBIAN/postinst'), '#!/bin/sh\ntouch /configuring\nsleep 1000\n'),
      ends: 'went back',
    },
    {
      cut: 'while it is watched',
      at: (box: Machine) =>
        box.has('var/lib/paybox-update/trial') && /^phase=proving$/m.test(box.read('var/lib/paybox-update/trial')),
      change: () => undefined,
      ends: 'updated',
    },
  ])('survives a power cut $cut', async ({ at, change, ends }) => {
    const { box, qrCode } = await shop();
    box.must(`paybox-update keep ${box.take(agentDeb)}`);
    box.runAside(`${SETTLE} paybox-update ${box.take(anotherVersion(agentDeb, '9.0.4', stage, change))} ${PATIENT}`);
    await eventually('the moment of the cut', () => at(box), UPDATE_TIMEOUT_MS);
    await box.powerCut();
    await box.boot();
    expect(box.must('paybox-update status'), box.logs()).toMatch(new RegExp(`last +${ends} from`));
    expect(box.must('dpkg --audit')).toBe('');
    expect(installed(box)).toBe(`installed\n${ends === 'updated' ? '9.0.4' : version}`);
    await online(box);
    await shows(box, qrCode);
  });
});

describe.skipIf(note !== '')(`paybox-update and files of others${note}`, { timeout: TEST_TIMEOUT_MS }, () => {
  const TRIES = 10;
  /** Another package, which says so when it is installed. */
  const evilDeb = () =>
    anotherVersion(agentDeb, '9.6.6', stage, (folder) =>
      writeFileSync(join(folder, 'DEBIAN/preinst'), '#!/bin/sh\ntouch /hijacked\n', { mode: 0o755 }),
    );
  const kept = 'var/lib/paybox-update/kept.deb';

  it('THR-28 keeps and stages the very file that it has checked, while its owner swaps it', async () => {
    const box = await machine(shopTemplate);
    const [good, evil] = [box.take(agentDeb), box.take(evilDeb())];
    swapping(box, [good, evil], '/srv/given/package.deb');
    let taken = 0;
    for (let left = TRIES; left > 0; left -= 1) {
      if (box.run('paybox-update keep /srv/given/package.deb').status !== 0) continue;
      taken += 1;
      expect(sha256Of(join(box.folder, kept))).toBe(sha256Of(agentDeb));
    }
    expect(taken).toBeGreaterThan(0);
    box.must(`paybox-update keep ${good}`);
    // Staged only: the unit that would install it is not started.
    box.must('mkdir /srv/bin && ln -s /bin/true /srv/bin/systemctl');
    const candidate = 'var/lib/paybox-update/candidate.deb';
    let staged = 0;
    for (let left = TRIES; left > 0; left -= 1) {
      box.run(`PATH=/srv/bin:$PATH paybox-update /srv/given/package.deb --sha256 ${sha256Of(agentDeb)}`);
      if (!box.has(candidate)) continue;
      staged += 1;
      expect(sha256Of(join(box.folder, candidate))).toBe(sha256Of(agentDeb));
      box.must('rm /var/lib/paybox-update/trial /var/lib/paybox-update/candidate.deb');
    }
    expect(staged).toBeGreaterThan(0);
  });

  it('THR-28 installs, on Raspberry Pi OS, the very file that it has checked', async () => {
    const box = await machine();
    const script = readFileSync(join(ROOT, 'scripts/install-on-raspberry-pi-os'), 'utf8');
    box.write('root/install', script.replace('ARCHITECTURE=arm64', 'ARCHITECTURE=amd64'));
    const [good, evil] = [box.take(agentDeb), box.take(evilDeb())];
    const given = `/srv/${basename(agentDeb)}`;
    box.must(`ln ${good} ${given}`);
    box.write('srv/SHA256SUMS', readFileSync(join(packages, 'SHA256SUMS'), 'utf8'));
    swappingWhen(box, 'apt-get', evil, given);
    expect(box.must(`bash /root/install ${given}`)).toContain('What is next');
    expect([installed(box), box.has('hijacked')]).toEqual([`installed\n${version}`, false]);
    expect(sha256Of(join(box.folder, kept))).toBe(sha256Of(agentDeb));
    expect(box.run('ls /var/tmp').output).toBe('');
  });

  it('THR-28 refuses at once what is no file, or larger than a package', async () => {
    const box = await machine(shopTemplate);
    box.must(`cp ${box.take(agentDeb)} /root/good.deb && paybox-update keep /root/good.deb`);
    box.write(
      'root/install',
      readFileSync(join(ROOT, 'scripts/install-on-raspberry-pi-os'), 'utf8').replace('=arm64', '=amd64'),
    );
    for (const [what, make] of NO_FILES) {
      box.must(`rm -rf /srv/x && mkdir /srv/x && ${make.replaceAll('@', '/srv/x/x.deb')}`);
      for (const words of ['keep ', '']) {
        const { status, output } = box.run(`timeout 60 paybox-update ${words}/srv/x/x.deb`);
        expect([what, status, output]).toEqual([what, 2, expect.stringMatching(/link|no file|more than 256 MiB/)]);
      }
      box.must(
        `rm -rf /srv/x && mkdir /srv/x && cp /root/good.deb /srv/x && ${make.replaceAll('@', '/srv/x/SHA256SUMS')}`,
      );
      expect([what, box.run('timeout 60 bash /root/install /srv/x/good.deb').status]).toEqual([what, 1]);
    }
    expect(box.run('ls /var/lib/paybox-update /var/tmp').output.split(/\s+/)).not.toContain('kept.deb.new');
    expect(sha256Of(join(box.folder, kept))).toBe(sha256Of(agentDeb));
  });

  it.each([
    ['a FIFO', 'mkfifo ready.json'],
    ['a link to an endless file', 'ln -s /dev/zero ready.json'],
    ['a file without an end', 'truncate -s 2T ready.json'],
  ])('THR-28 updates a box whose agent has put %s where its address is expected', async (_what, make) => {
    const { box, qrCode } = await shop();
    box.must(`paybox-update keep ${box.take(agentDeb)} && cd /run/paybox-agent && rm ready.json && ${make}`);
    const next = box.take(anotherVersion(agentDeb, '9.0.7', stage, () => undefined));
    const { status, output } = box.run(`${SETTLE} timeout 100 paybox-update ${next}`);
    expect(status, `${output}${box.logs()}`).toBe(0);
    expect(installed(box)).toBe('installed\n9.0.7');
    await online(box);
    await shows(box, qrCode);
  });
});

describe.skipIf(note !== '')(`the packages' form${note}`, { timeout: TEST_TIMEOUT_MS }, () => {
  it('please lintian', async () => {
    expect(await lintian).toEqual({ stdout: '', stderr: '' });
  });
});
