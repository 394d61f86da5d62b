import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import decodeQr from 'qr/decode.js';
import { describe, expect, inject, it } from 'vitest';
import { asDots } from '../display/emulators/led-matrix.ts';
import { compilePins, shownBy } from '../display/emulators/led-pins.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { Builds } from './build.ts';
import { Machine, putOnBootPartition, writeCard } from './machine.ts';
import { ADDON_PROGRAMS, IMAGE_PROGRAMS, whyNot } from './programs.ts';
import { progress } from './progress.ts';
import { startService } from './service.ts';

const ONLINE_TIMEOUT_MS = 300_000;
const SHOWN_TIMEOUT_MS = 120_000;

const note = whyNot([...Object.values(IMAGE_PROGRAMS), ...Object.values(ADDON_PROGRAMS)]);
const builds = new Builds(inject('built'));

/** One line of configuration. The shades are few because every write to an emulated pin takes its time. */
const DISPLAY = {
  driver: 'led-matrix',
  hardwareMapping: 'adafruit-hat-pwm',
  brightness: 100,
  pwmBits: 2,
  gpioSlowdown: 0,
};

/** Has the agent's programs find the pins of a Raspberry Pi, as far as the real rights of the process reach. */
const PINS_DROP_IN = `[Service]
Environment=LD_PRELOAD=/run/pins.so LED_PINS_RECORD=/run/paybox-agent/pins LED_PINS_STRICT=1
`;

async function started(folder: string) {
  const service = await startService(folder);
  const image = join(folder, 'card.img');
  writeCard(`${builds.image('image', '--no-compress').image}.img`, image);
  const file = join(folder, 'paybox.yaml');
  writeFileSync(file, JSON.stringify({ ...(JSON.parse(service.boxFile) as object), display: DISPLAY }));
  putOnBootPartition(image, file, 'paybox.yaml');
  const pins = compilePins(join(folder, 'pins.so'), 'aarch64-linux-gnu');
  const deb = builds.ledMatrix();
  progress('power on');
  const machine = Machine.start(image, folder, [deb, pins]);
  progress(`ready ${(await machine.says('"ready"')).toFixed(1)} s after power on`);
  const copy = (disk: string, from: string, to: string) =>
    machine.command(`head -c ${statSync(from).size} /dev/${disk} > ${to}`);
  await copy('vdb', deb, '/run/led.deb');
  await copy('vdc', pins, '/run/pins.so');
  return { service, machine };
}

/** The QR in what the panels are sent now; undefined where there is none. */
async function qrInRows(machine: Machine): Promise<string | undefined> {
  const packed = await machine.command('gzip -1 < /run/paybox-agent/pins | base64 -w0');
  const picture = shownBy(gunzipSync(Buffer.from(packed, 'base64')), { cols: 64, rows: 64 });
  try {
    return picture === undefined ? undefined : decodeQr(asDots(picture));
  } catch {
    return undefined;
  }
}

describe.skipIf(note !== '')(`LED panels on a Raspberry Pi${note}`, () => {
  it('are one package and one line: a payment is read off the rows that its process clocks out', async () => {
    const folder = await temporaryFolder();
    const { service, machine } = await started(folder);
    const changed = async (script: string) =>
      machine.command(
        `mount -o remount,rw / && { ${script}; code=$?; sync; mount -o remount,ro / || true; exit $code; }`,
      );
    await machine.command(
      `mkdir -p /run/systemd/system/paybox-agent.service.d && printf '${PINS_DROP_IN.replaceAll('\n', '\\n')}' > /run/systemd/system/paybox-agent.service.d/pins.conf && systemctl daemon-reload && systemctl restart paybox-agent`,
    );
    const said = () => machine.command('journalctl -o cat -u paybox-agent -n 200');
    await eventually(
      'the package that is missing',
      async () => (await said()).includes('apt-get install paybox-led-matrix'),
      SHOWN_TIMEOUT_MS,
    );
    progress('without the package, the agent names it');

    await changed('dpkg -i /run/led.deb');
    await eventually('the panels', async () => (await said()).includes('display-recovered'), SHOWN_TIMEOUT_MS).catch(
      async (error: unknown) => {
        throw new Error(`${error}\n${await said()}`);
      },
    );
    await eventually('online', () => service.online(), ONLINE_TIMEOUT_MS);
    const agent = await machine.command('systemctl show -p MainPID --value paybox-agent');
    const children = `cat /proc/${agent}/task/${agent}/children`;
    const panels = `for pid in $(${children}); do grep -q led-matrix.child /proc/$pid/cmdline && echo $pid; done; true`;
    const uids = async (pid: string) => (await machine.command(`grep ^Uid: /proc/${pid}/status`)).split(/\s+/).slice(1);
    const four = async (user: string) => Array(4).fill(await machine.command(`id -u ${user}`));
    expect(await uids(agent)).toEqual(await four('root'));
    expect(await uids(await machine.command(panels))).toEqual(await four('daemon'));
    progress('the process with the pins is no longer root');

    // A token lives for five minutes, and the machine may have needed more.
    await service.shop.login();
    const { body: order } = await service.shop.generate({ amount: 50_000, content: 'DH001', orderId: 'DH001' });
    expect(await service.shop.sendQr(order), await said()).toMatchObject({ body: { status: 'SUCCESS' } });
    await eventually('the QR in the rows', async () => (await qrInRows(machine)) === order.qrCode, SHOWN_TIMEOUT_MS);
    progress('the QR is read off the rows');

    const hanging = await machine.command(panels);
    await machine.command(`kill -STOP ${hanging}`);
    await service.shop.pay({ amount: 50_000, content: 'DH001' });
    await eventually(
      'another process with the pins, and one only',
      async () => /^\d+$/.test(await machine.command(panels)) && (await machine.command(panels)) !== hanging,
      SHOWN_TIMEOUT_MS,
    ).catch(async (error: unknown) => {
      throw new Error(`${error}\n${await said()}`);
    });
    progress('a process that hung was ended by the agent, and another has the pins');

    await changed('dpkg -r paybox-led-matrix');
    await eventually('online', () => service.online(), ONLINE_TIMEOUT_MS);
    const later = await machine.command('systemctl show -p MainPID --value paybox-agent');
    expect(await uids(later)).toEqual(await four('paybox-agent'));
    expect(await machine.command('stat -c %U /var/lib/paybox/journal.db')).toBe('paybox-agent');
    progress('without the package the agent is no longer root, and has its journal');
    await machine.cutPower();
  });
});
