import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';

const SYSTEMD = resolve(import.meta.dirname, '../../systemd');
const MACHINE_UNITS = '/usr/lib/systemd/system';
/** Of systemd's scale, on which 0 is no exposure and 10 all of it. */
const EXPOSURE_MAX = 2.5;
/** Of those that replace what is in /usr as root. */
const UPDATE_EXPOSURE_MAX = 4;
const REPLACING = ['paybox-update.service', 'paybox-update-recover.service', 'paybox-first-boot.service'];
/** Systemd before 253 does not know it; the agent then sends by a program. */
const NEW_OPTION = /Unknown key( name)? 'OpenFile' in section .*Service.*, ignoring/;

const units = readdirSync(SYSTEMD).filter((name) => name.endsWith('.service'));
const analyze = without(PROGRAMS.systemd);

/** A folder with this machine's units, the project's, and something in the place of each program that they start. */
async function root(): Promise<string> {
  const folder = await temporaryFolder();
  const own = join(folder, MACHINE_UNITS);
  cpSync(MACHINE_UNITS, own, { recursive: true, verbatimSymlinks: true });
  for (const unit of units) {
    copyFileSync(join(SYSTEMD, unit), join(own, unit));
    for (const [, program = ''] of readFileSync(join(SYSTEMD, unit), 'utf8').matchAll(/^Exec\w+=(\S+)/gm)) {
      mkdirSync(dirname(join(folder, program)), { recursive: true });
      writeFileSync(join(folder, program), '#!/bin/sh\n');
      chmodSync(join(folder, program), 0o755);
    }
  }
  return folder;
}

/** Which lines of `systemd-analyze verify` are about the project's own units. */
function complaints(folder: string, unit: string): string[] {
  const { stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', `--root=${folder}`, unit], {
    encoding: 'utf8',
  });
  return `${stdout}${stderr}`.split('\n').filter((line) => line.includes('paybox') && !NEW_OPTION.test(line));
}

function exposure(folder: string, unit: string): number {
  const { stdout, stderr } = spawnSync(
    'systemd-analyze',
    ['security', '--offline=true', '--no-pager', `--root=${folder}`, unit],
    { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C.UTF-8' } },
  );
  const [line = '', score = ''] = /Overall exposure level for \S+: ([\d.]+) .*/.exec(stdout) ?? [];
  if (line === '') throw new Error(`systemd-analyze security ${unit}: ${stdout}${stderr}`);
  process.stdout.write(`${line}\n`);
  return Number(score);
}

describe.skipIf(analyze.missing)(`the units${analyze.note}`, () => {
  it.each(units)('%s is what systemd takes, without a complaint', async (unit) => {
    expect(complaints(await root(), unit)).toEqual([]);
  });

  it('are held to that by the check, which names a mistake', async () => {
    const folder = await root();
    const file = join(folder, MACHINE_UNITS, 'paybox-agent.service');
    writeFileSync(file, readFileSync(file, 'utf8').replace('WatchdogSec=30', 'WatchdogSec=often'));
    expect(complaints(folder, 'paybox-agent.service')).toEqual([expect.stringContaining('often')]);
  });

  it.each(units)('%s is sandboxed as far as its work allows', async (unit) => {
    const limit = REPLACING.includes(unit) ? UPDATE_EXPOSURE_MAX : EXPOSURE_MAX;
    expect(exposure(await root(), unit)).toBeLessThan(limit);
  });

  it('are seen by the score, which is worse without the sandbox', async () => {
    const folder = await root();
    const file = join(folder, MACHINE_UNITS, 'paybox-agent.service');
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(/^(Protect|Restrict|SystemCall|Capability).*$/gm, ''));
    expect(exposure(folder, 'paybox-agent.service')).toBeGreaterThan(EXPOSURE_MAX);
  });
});

describe('paybox-agent.service', () => {
  const unit = readFileSync(join(SYSTEMD, 'paybox-agent.service'), 'utf8');

  it('never leaves a box down, and starts one that hangs anew', () => {
    expect(unit).toMatch(/^Type=notify$/m);
    expect(unit).toMatch(/^WatchdogSec=30$/m);
    expect(unit).toMatch(/^Restart=always$/m);
    expect(unit).toMatch(/^StartLimitIntervalSec=0$/m);
  });

  it('waits for no network', () => {
    expect(unit).not.toMatch(/network-online|^(Requires|BindsTo)=/m);
  });

  it('is in no group that the package does not make', () => {
    const made = readFileSync(join(SYSTEMD, '../scripts/debian/paybox-agent/sysusers.conf'), 'utf8');
    const groups = /^SupplementaryGroups=(.*)$/m.exec(unit)?.[1]?.split(' ') ?? [];
    expect(groups).toContain('gpio');
    for (const group of groups) expect(made).toMatch(new RegExp(`^g ${group} `, 'm'));
  });
});

describe('the examples and manuals', () => {
  it('name the user that the unit has, wherever a group is given to one', () => {
    const [, user = ''] = /^User=(.*)$/m.exec(readFileSync(join(SYSTEMD, 'paybox-agent.service'), 'utf8')) ?? [];
    const folder = join(SYSTEMD, '../device-config');
    const lines = readdirSync(folder).flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'));
    const given = lines.flatMap((line) => /(?:usermod -aG \S+|adduser) (\S+)/.exec(line)?.[1] ?? []);
    expect(given.length).toBeGreaterThan(5);
    expect(given.filter((it) => it !== user)).toEqual([]);
  });
});

describe('the services', () => {
  it.each(['paybox-agent', 'paybox-gateway'])('THR-22 %s has a user of its own, and a bound of memory', (name) => {
    const unit = readFileSync(join(SYSTEMD, `${name}.service`), 'utf8');
    expect(unit).toMatch(new RegExp(`^User=${name}\\nGroup=${name}$`, 'm'));
    expect(unit).toMatch(/^MemoryMax=\d+[MG]$/m);
    expect(unit).toMatch(/^TasksMax=\d+$/m);
    const users = readFileSync(join(SYSTEMD, `../scripts/debian/${name}/sysusers.conf`), 'utf8');
    expect(users).toMatch(new RegExp(`^u ${name} `, 'm'));
  });

  it('THR-28 run as root nothing that was compiled before', () => {
    const scripts = join(SYSTEMD, '../scripts');
    expect(readFileSync(join(SYSTEMD, 'paybox-first-boot.service'), 'utf8')).toMatch(
      /^Environment=NODE_DISABLE_COMPILE_CACHE=1$/m,
    );
    for (const script of ['debian/paybox-agent/paybox-update', 'install-on-raspberry-pi-os']) {
      expect(readFileSync(join(scripts, script), 'utf8')).toMatch(/^export NODE_DISABLE_COMPILE_CACHE=1$/m);
    }
  });

  it.each(['paybox-agent', 'paybox-gateway'])('say on the page of %s as which user its unit runs', (name) => {
    const [, user = ''] = /^User=(.*)$/m.exec(readFileSync(join(SYSTEMD, `${name}.service`), 'utf8')) ?? [];
    const page = readFileSync(join(SYSTEMD, `../scripts/debian/man/${name}.8`), 'utf8').replaceAll('\\', '');
    expect(/runs as the\suser\s\.BR? (\S+)/.exec(page)?.[1]).toBe(user);
  });
});
