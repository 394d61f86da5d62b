import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import { systemFindings } from '../../src/device/doctor/system.ts';
import { temporaryFolder } from '../support/net.ts';
import { writeScript } from '../voice/support.ts';

const WELL = {
  LoadState: 'loaded',
  ActiveState: 'active',
  SubState: 'running',
  UnitFileState: 'enabled',
  NRestarts: '0',
  WatchdogUSec: '30s',
  Result: 'success',
};
const BOOTED = { 'run/systemd/system/x': '' };
const CABLE = { 'sys/class/net/eth0/device/x': '', 'sys/class/net/eth0/operstate': 'up\n' };
const WIFI = {
  'sys/class/net/wlan0/device/x': '',
  'sys/class/net/wlan0/wireless/x': '',
  'sys/class/net/wlan0/operstate': 'dormant\n',
};
const console = (bind: string) => ({
  'sys/class/vtconsole/vtcon0/name': '(S) dummy device\n',
  'sys/class/vtconsole/vtcon0/bind': '1\n',
  'sys/class/vtconsole/vtcon1/name': '(M) frame buffer device\n',
  'sys/class/vtconsole/vtcon1/bind': `${bind}\n`,
});

interface Answers {
  unit?: Partial<typeof WELL>;
  time?: string[];
  displays?: object[];
  user?: object;
}

/** What is found on a machine with these files, whose systemd answers this. */
async function find(files: Record<string, string>, { unit = {}, time = [], displays, user: other }: Answers = {}) {
  const root = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), text);
  }
  const lines = Object.entries({ ...WELL, ...unit }).map(([name, value]) => `echo '${name}=${value}'`);
  const systemctl = await writeScript('systemctl', ...lines);
  const timedatectl = await writeScript('timedatectl', ...time.map((line) => `echo '${line}'`));
  const user = { uid: 1000, name: 'shop', groups: [], ...other };
  const config = {
    box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
    link: { transport: 'mqtt', url: 'mqtt://127.0.0.1:9' },
    displays: displays ?? [{ driver: 'terminal' }],
    dataDir: 'box',
  };
  const all = await systemFindings(parseAgentConfig(config, 'test'), { root, systemctl, timedatectl, user });
  return { all, of: (check: string) => all.find((finding) => finding.check === check) };
}

describe('what doctor finds of the system', () => {
  it('doctor finds nothing of systemd where that does not run', async () => {
    expect((await find({})).all).toEqual([]);
  });

  it.each([
    ['follows', ['NTP=yes', 'NTPSynchronized=yes'], 'ok', '', ''],
    [
      'has not heard yet of',
      ['NTP=yes', 'NTPSynchronized=no'],
      'warning',
      'no time server has answered',
      'UDP port 123',
    ],
    ['does not ask', ['NTP=no', 'NTPSynchronized=no'], 'warning', 'nothing sets the clock', 'systemd-timesyncd'],
  ])('says that the clock %s a time server', async (_what, time, result, found, fix) => {
    const { of } = await find(BOOTED, { time });
    expect(of('time synchronisation')).toMatchObject({
      result,
      found: expect.stringContaining(found),
      fix: expect.stringContaining(fix),
    });
  });

  it('doctor accepts one network device of several, and warns where none is connected', async () => {
    const { of } = await find({ ...CABLE, ...WIFI });
    expect(of('cable eth0')).toMatchObject({ result: 'ok', found: 'connected' });
    expect(of('Wi-Fi wlan0')).toMatchObject({ result: 'ok', found: 'not connected (dormant)' });
    const alone = await find(WIFI);
    expect(alone.of('Wi-Fi wlan0')).toMatchObject({ result: 'warning', fix: expect.stringContaining('paybox.yaml') });
  });

  it('doctor finds a text console on the framebuffer of a box', async () => {
    const displays = [{ driver: 'framebuffer' }];
    expect((await find(console('0'), { displays })).of('text console')?.result).toBe('ok');
    expect((await find(console('1'), { displays })).of('text console')).toMatchObject({
      result: 'warning',
      fix: expect.stringContaining('paybox-console-off'),
    });
    expect((await find(console('1'))).of('text console')).toBeUndefined();
  });

  it.each([
    ['runs', {}, 'ok', ''],
    ['is stopped', { ActiveState: 'failed', Result: 'watchdog' }, 'warning', 'start paybox-agent'],
    ['does not start at boot', { UnitFileState: 'disabled' }, 'warning', 'enable paybox-agent'],
    ['was started anew', { NRestarts: '3' }, 'warning', 'journalctl -u paybox-agent'],
  ])('says that the service %s', async (_what, unit, result, fix) => {
    const { of } = await find(BOOTED, { unit });
    expect(of('service')).toMatchObject({ result, fix: expect.stringContaining(fix) });
    expect(of('service')?.found).toContain('watchdog 30s');
  });

  it('doctor says nothing of a service that is not installed', async () => {
    expect((await find(BOOTED, { unit: { LoadState: 'not-found' } })).of('service')).toBeUndefined();
  });

  it('doctor names the groups that a user has yet to be in, and none to root', async () => {
    const displays = [{ driver: 'framebuffer' }, { driver: 'nextion', path: '/dev/ttyUSB0' }];
    const groups = { 'etc/group': 'video:x:44:\ndialout:x:20:\n' };
    const of = async (user: object) => (await find(groups, { displays, user })).of('groups');
    expect(await of({ groups: [44] })).toMatchObject({
      result: 'warning',
      found: 'shop is not in dialout',
      fix: expect.stringContaining('sudo usermod -aG dialout shop'),
    });
    expect(await of({ groups: [20, 44] })).toMatchObject({ result: 'ok' });
    expect(await of({ uid: 0 })).toBeUndefined();
  });
});
