import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode } from 'fast-png';
import { describe, expect, inject, it } from 'vitest';
import { eventually, temporaryFolder } from '../support/net.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { Builds } from './build.ts';
import { Machine, putOnBootPartition, writeCard } from './machine.ts';
import { lacking } from './programs.ts';
import { progress } from './progress.ts';
import { type Service, startProvisionedService, startService } from './service.ts';

/** Two images and a package with the real compression, on a busy machine. */
const BUILDS_MS_MAX = 1_800_000;
const ONLINE_TIMEOUT_MS = 300_000;
const REPORT_TIMEOUT_MS = 120_000;
const MIB = 1024 * 1024;
/** Versions that packages are made of for an update. */
const [GOOD, BAD] = ['9.0.1', '9.0.2'];
const HEALTHY_WITHIN_SECONDS = 300;
/** A version that never runs is given less, so that the test need not wait longer for what does not come. */
const HOPELESS_WITHIN_SECONDS = 60;
/** The paper of the screen that says paid, on a display with room for colours. */
const PAID_PAPER = [0x08, 0x71, 0x3f];

/** Reads a box's own status inside; its Node is there, curl is not. */
const STATUS =
  '/usr/lib/paybox-agent/node -e "fetch(\'http://127.0.0.1:8810/status\').then(async (it) => console.log(await it.text()))"';
const SAID = '"words":"Đã nhận năm mươi nghìn đồng"';

const note = lacking();
const builds = new Builds(inject('built'));

/** An image that was written to a card, with a person's paybox.yaml on it. */
async function card(service: Service, folder: string): Promise<string> {
  const { image } = builds.image('image', '--no-compress');
  const copy = join(folder, 'card.img');
  writeCard(`${image}.img`, copy);
  const file = join(folder, 'paybox.yaml');
  writeFileSync(file, service.boxFile);
  putOnBootPartition(copy, file, 'paybox.yaml');
  return copy;
}

/** Switches a box on and waits until it is ready and registered. */
async function boot(image: string, folder: string, service: Service, files: readonly string[] = []): Promise<Machine> {
  progress('power on');
  const machine = Machine.start(image, folder, files);
  const seconds = await machine.says('"ready"');
  progress(`ready ${seconds.toFixed(1)} s after power on`);
  await eventually('online', () => service.online(), ONLINE_TIMEOUT_MS).catch((error: unknown) => {
    throw new Error(`${error}\n${machine.console.slice(-10_000)}`);
  });
  // Its driver may come up after the agent, which then opens the screen when it is there.
  await machine.says('"display-recovered"');
  progress('registered at the gateway, with a screen');
  return machine;
}

/** Pushes a QR and waits until it is read off the screen. */
async function showQr(service: Service, machine: Machine, orderId: string) {
  const { body: order } = await service.shop.generate({ amount: 50_000, content: orderId, orderId });
  expect(await service.shop.sendQr(order), machine.console).toMatchObject({ body: { status: 'SUCCESS' } });
  await machine.shows('the QR', (png) => readQr(png) === order.qrCode);
  progress(`the QR of ${orderId} is read off the screen`);
}

/** What both decoders read; undefined where there is no QR, or they differ. */
function readQr(png: Uint8Array): string | undefined {
  try {
    const [one, other] = decodeQrTwice(png);
    return one === other ? one : undefined;
  } catch {
    return undefined;
  }
}

function saysPaid(png: Uint8Array): boolean {
  const { data } = decode(png);
  return PAID_PAPER.every((channel, index) => data[index] === channel);
}

async function pay(service: Service, content: string): Promise<string> {
  const { body } = await service.shop.pay({ amount: 50_000, content });
  expect(body).toMatchObject({ status: 'SUCCESS' });
  return String(body.message);
}

describe.skipIf(note !== '')(`the image${note}`, () => {
  it(
    'is of the same files each time it is built',
    () => {
      const [one, other] = [builds.image('image', '--no-compress'), builds.image('again')];
      for (const list of ['files', 'manifest']) {
        expect(readFileSync(`${other.image}.${list}`, 'utf8')).toBe(readFileSync(`${one.image}.${list}`, 'utf8'));
      }
      const size = (file: string) => `${(statSync(file).size / MIB).toFixed(0)} MiB`;
      progress(`image ${size(`${other.image}.img`)}, compressed ${size(`${other.image}.img.xz`)}`);
      progress(`package ${size(builds.release())}`);
    },
    BUILDS_MS_MAX,
  );

  it('starts a box from the card of paybox provision that needs nobody, and that loses no payment when the power is cut', async () => {
    const folder = await temporaryFolder();
    const service = await startProvisionedService(folder);
    const image = await card(service, folder);
    const machine = await boot(image, folder, service);
    expect(await machine.command('findmnt -n -o OPTIONS /')).toMatch(/^ro,/);
    const memory = 'grep -E "^(VmHWM|VmRSS)" /proc/$(systemctl show -p MainPID --value paybox-agent)/status';
    const cgroup = 'systemctl show -p MemoryCurrent -p MemoryPeak paybox-agent; grep -E "^Mem" /proc/meminfo';
    progress(`memory at rest: ${(await machine.command(`${memory}; ${cgroup}`)).replaceAll(/\s+/g, ' ')}`);

    await showQr(service, machine, 'DH001');
    expect(await machine.command('stat -c "%a %U:%G" /var/lib/paybox/journal.db')).toBe(
      '600 paybox-agent:paybox-agent',
    );
    const left = await machine.command('cat /boot/firmware/paybox.yaml');
    expect([left.includes('secret: kept'), /PRIVATE KEY/.test(left)]).toEqual([true, false]);
    progress('the journal is of the user of the unit, and the card has no secret');
    // The payment is on its way when the power goes: the gateway has taken it, the box has not heard of it.
    await machine.freeze();
    const first = await pay(service, 'DH001');
    await machine.cutPower();
    progress('power cut before the box heard of the payment');

    const second = await boot(image, folder, service);
    await second.shows('paid', saysPaid);
    progress('the payment is on the screen');
    await eventually('the words', async () => (await second.command(STATUS)).includes(SAID), REPORT_TIMEOUT_MS);
    progress('the payment is said');
    await eventually('the report', () => service.reportedAt(first), REPORT_TIMEOUT_MS);

    await showQr(service, second, 'DH002');
    // And with the box in the middle of it: the power goes at the moment in which the payment is first to be seen.
    const transactionId = await pay(service, 'DH002');
    await second.shows('paid', saysPaid);
    await second.cutPower();
    progress('power cut while the box told the payment');

    const third = await boot(image, folder, service);
    await eventually('the report', () => service.reportedAt(transactionId), REPORT_TIMEOUT_MS);
    expect(await third.command('dpkg --audit')).toBe('');
    const told = service.received.map(({ body }) => body.transactionid);
    expect(told).toEqual([first, transactionId]);
    await third.cutPower();
  });

  it('starts an agent anew that hangs, takes an update, and goes back from one that does not run', async () => {
    const folder = await temporaryFolder();
    const service = await startService(folder);
    const image = await card(service, folder);
    const [good, bad] = [builds.update(GOOD), builds.update(BAD, { broken: true })];
    const machine = await boot(image, folder, service, [good, bad]);

    const pid = () => machine.command('systemctl show -p MainPID --value paybox-agent');
    const hanging = await pid();
    await machine.command(`kill -STOP ${hanging}`);
    await eventually('another agent', async () => !['0', hanging].includes(await pid()), ONLINE_TIMEOUT_MS);
    await eventually('online', () => service.online(), ONLINE_TIMEOUT_MS);
    progress('the agent that hung was started anew');

    const update = async (disk: string, file: string, withinSeconds: number) => {
      const fetched = `head -c ${statSync(file).size} /dev/${disk} > /tmp/${disk}.deb`;
      const script = `${fetched} && paybox-update /tmp/${disk}.deb --within ${withinSeconds}`;
      const { code, output } = await machine.tryCommand(script);
      return { code, told: `${output}\n${await machine.command('journalctl -o cat -u paybox-update')}` };
    };
    const updated = await update('vdb', good, HEALTHY_WITHIN_SECONDS);
    expect(updated.code, updated.told).toBe(0);
    expect(await machine.command('paybox-update status')).toContain(`installed  ${GOOD} (installed)`);
    expect(await machine.command('findmnt -n -o OPTIONS /')).toMatch(/^ro,/);
    progress('the update is taken');

    const refused = await update('vdc', bad, HOPELESS_WITHIN_SECONDS);
    expect(refused.code, refused.told).toBe(1);
    expect(await machine.command('paybox-update status')).toContain(`installed  ${GOOD} (installed)`);
    expect(await machine.command('findmnt -n -o OPTIONS /')).toMatch(/^ro,/);
    await eventually('online', () => service.online(), ONLINE_TIMEOUT_MS);
    progress('the box went back from an update that does not run');
    await machine.cutPower();
  });
});
