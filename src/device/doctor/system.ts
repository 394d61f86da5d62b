import { execFile } from 'node:child_process';
import { readdir, readFile, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { AgentConfig } from '../agent/config.ts';
import { type Finding, well } from './findings.ts';

const PROGRAM_TIMEOUT_MS = 5_000;
const UNIT = 'paybox-agent.service';
const UNIT_PROPERTIES = [
  'LoadState',
  'ActiveState',
  'SubState',
  'UnitFileState',
  'NRestarts',
  'WatchdogUSec',
  'Result',
];

/** Access to the machine: its system folders and the programs that report on it. */
export interface Machine {
  /** The folder that holds `sys`, `run`, `proc` and `etc`. */
  root: string;
  systemctl: string;
  timedatectl: string;
  /** The user that runs this process. */
  user: { uid: number; name: string; groups: readonly number[] };
}

export function thisMachine(): Machine {
  const { uid, username: name } = userInfo();
  const user = { uid, name, groups: process.getgroups?.() ?? [] };
  return { root: '/', systemctl: 'systemctl', timedatectl: 'timedatectl', user };
}

/** Checks the system services and settings that a box needs. */
export async function systemFindings(config: AgentConfig, machine: Machine): Promise<Finding[]> {
  const findings = [
    await timeFinding(machine),
    ...(await cableFindings(machine)),
    await groupFinding(config, machine),
    await consoleFinding(config, machine),
    await unitFinding(machine),
  ];
  return findings.filter((it) => it !== undefined);
}

async function isBooted({ root }: Machine): Promise<boolean> {
  return stat(join(root, 'run/systemd/system')).then(
    () => true,
    () => false,
  );
}

/** Checks whether the clock is synchronized to a time server; undefined without systemd. */
export async function timeFinding(machine: Machine): Promise<Finding | undefined> {
  if (!(await isBooted(machine))) return undefined;
  const check = 'time synchronisation';
  const answer = await ask(machine.timedatectl, ['show', '-p', 'NTP', '-p', 'NTPSynchronized']);
  if (answer.NTPSynchronized === 'yes') return well(check, 'the clock follows a time server');
  const found = answer.NTP === 'yes' ? 'no time server has answered yet' : 'nothing sets the clock';
  const fix =
    answer.NTP === 'yes'
      ? 'let UDP port 123 out, or name a time server of the network in /etc/systemd/timesyncd.conf'
      : 'sudo apt-get install systemd-timesyncd && sudo timedatectl set-ntp true';
  return { check, result: 'warning', found, fix };
}

/** Checks the network devices with hardware, and whether each has a carrier. */
async function cableFindings({ root }: Machine): Promise<Finding[]> {
  const folder = join(root, 'sys/class/net');
  const findings: Finding[] = [];
  for (const device of (await namesIn(folder)).toSorted()) {
    const has = async (name: string) => (await namesIn(join(folder, device))).includes(name);
    if (!(await has('device'))) continue;
    const isWireless = await has('wireless');
    const state = await lineIn(join(folder, device, 'operstate'));
    const check = `${isWireless ? 'Wi-Fi' : 'cable'} ${device}`;
    findings.push(well(check, state === 'up' ? 'connected' : `not connected (${state ?? 'unknown'})`));
  }
  if (findings.length === 0 || findings.some((it) => it.found === 'connected')) return findings;
  const fix = 'plug the cable in, or set Wi-Fi up: wifi in paybox.yaml on the boot partition';
  return findings.map((it) => ({ ...it, result: 'warning', fix }));
}

/** Checks whether the user is in the groups that udev gives the configured devices to. */
async function groupFinding(
  { displays, light, buttons }: AgentConfig,
  { root, user }: Machine,
): Promise<Finding | undefined> {
  const needed = new Set<string>();
  for (const display of displays) {
    if (display.driver === 'framebuffer') needed.add('video');
    if ('baudRate' in display) needed.add('dialout');
  }
  if (light !== undefined || buttons !== undefined) needed.add('gpio');
  // The user root needs no groups.
  if (needed.size === 0 || user.uid === 0) return undefined;
  const check = 'groups';
  const lines = (await readFile(join(root, 'etc/group'), 'utf8').catch(() => '')).split('\n');
  const ids = new Map(lines.map((line) => [line.split(':')[0], Number(line.split(':')[2])]));
  const missing = [...needed].filter((name) => !user.groups.includes(ids.get(name) ?? Number.NaN));
  if (missing.length === 0) return well(check, `${user.name} is in ${[...needed].join(', ')}`);
  const found = `${user.name} is not in ${missing.join(', ')}`;
  return {
    check,
    result: 'warning',
    found,
    fix: `sudo usermod -aG ${missing.join(',')} ${user.name}, and log in again`,
  };
}

/** Checks whether a text console may draw over the box's screen; undefined if no framebuffer is configured. */
async function consoleFinding({ displays }: AgentConfig, { root }: Machine): Promise<Finding | undefined> {
  if (!displays.some(({ driver }) => driver === 'framebuffer')) return undefined;
  const check = 'text console';
  const folder = join(root, 'sys/class/vtconsole');
  for (const name of await namesIn(folder)) {
    const kind = await lineIn(join(folder, name, 'name'));
    const bound = await lineIn(join(folder, name, 'bind'));
    if (!kind?.includes('frame buffer') || bound !== '1') continue;
    const fix = 'sudo systemctl enable --now paybox-console-off';
    return { check, result: 'warning', found: 'is on the framebuffer while no agent runs', fix };
  }
  return well(check, 'is off the framebuffer');
}

/** Checks the state of the agent's systemd unit; undefined without systemd or unit. */
async function unitFinding(machine: Machine): Promise<Finding | undefined> {
  if (!(await isBooted(machine))) return undefined;
  const args = ['show', UNIT, ...UNIT_PROPERTIES.flatMap((name) => ['-p', name])];
  const { LoadState, ActiveState, SubState, UnitFileState, NRestarts, WatchdogUSec, Result } = await ask(
    machine.systemctl,
    args,
  );
  if (LoadState !== 'loaded') return undefined;
  const check = 'service';
  const watched = WatchdogUSec === undefined || WatchdogUSec === '0' ? 'no watchdog' : `watchdog ${WatchdogUSec}`;
  const found = `${UNIT} is ${ActiveState} (${SubState}), ${UnitFileState}, ${watched}, restarted ${NRestarts} times`;
  const warning = (fix: string): Finding => ({ check, result: 'warning', found, fix });
  if (ActiveState !== 'active') {
    const why = Result === 'success' ? '' : `; it ended by ${Result}`;
    return warning(`sudo systemctl start paybox-agent, and journalctl -u paybox-agent${why}`);
  }
  if (UnitFileState !== 'enabled') return warning('sudo systemctl enable paybox-agent, or it does not start at boot');
  if (Number(NRestarts) > 0) return warning('journalctl -u paybox-agent says why it was restarted');
  return well(check, found);
}

/** Returns the `Name=value` lines that a program prints; none if it fails. */
async function ask(program: string, args: string[]): Promise<Record<string, string>> {
  const run = promisify(execFile)(program, args, { timeout: PROGRAM_TIMEOUT_MS, killSignal: 'SIGKILL' });
  const text = await run.then(
    ({ stdout }) => stdout,
    () => '',
  );
  const pairs = text.split('\n').map((line) => /^(\w+)=(.*)$/.exec(line) ?? []);
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value]));
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

async function lineIn(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').then(
    (text) => text.trim(),
    () => undefined,
  );
}
