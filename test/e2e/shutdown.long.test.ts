import { execFile } from 'node:child_process';
import { chmod, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { decode } from 'fast-png';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openPty } from '../../src/bench/panels/pty.ts';
import { FakeFramebuffer } from '../display/emulators/framebuffer.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { CLI, type GatewayAt, paybox, run, START_MS, startConfigured } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { startProxy } from '../support/proxy.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import {
  BOX,
  expectCleanEnd,
  expectEndOf,
  gatewayHere,
  push,
  startAgent,
  startGateway,
  startSilentServer,
} from './shutdown.ts';
import { ACCOUNT, getJson, PARTNER, Shop } from './walk.ts';

const FRAMEBUFFER = { width: 320, height: 240, bitsPerPixel: 16, strideBytes: 640 };

const socat = without(PROGRAMS.socat);

/** A serial display that takes a few thousand bytes and then none, as one that hangs. */
async function frozenDisplay(): Promise<{ driver: string; path: string; freeze(): void }> {
  const pty = await openPty(() => undefined);
  onTestFinished(() => pty.close());
  return { driver: 'usb-bitmap', path: pty.path, freeze: pty.freeze };
}

const isBlack = (png: Uint8Array) => decode(png).data.every((sample) => sample === 0);

/** Asks for `path` and never reads the answer. */
async function holdOpen(url: string, request: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((done) => socket.once('connect', () => done()));
  await new Promise<void>((done) => socket.write(request.replaceAll('\n', '\r\n'), () => done()));
  socket.pause();
}

describe('the agent on SIGTERM', () => {
  it('the agent ends on SIGTERM while it waits for orders, and blanks its screen', async () => {
    const gateway = await startGateway();
    const box = await startAgent(gateway.mqttPort);
    await box.becomes('idle');
    const picture = join(box.folder, 'screen.png');
    expect(isBlack(await readFile(picture))).toBe(false);
    await expectCleanEnd(box.running);
    expect(isBlack(await readFile(picture))).toBe(true);
    await eventually('its goodbye', async () => {
      const boxes = JSON.stringify(await getJson(`${gateway.at.consoleUrl}_mock/boxes`));
      return boxes.includes('"online":false') && !boxes.includes('"online":true');
    });
    await eventually('its reason', () => gateway.running.output().includes('its presence ended'));
    await expectCleanEnd(gateway.running);
  });

  it.each(['blank', 'leave'])(
    'takes its QR away with onStop: %s, and shows it again after the next start',
    async (onStop) => {
      const gateway = await gatewayHere();
      const box = await startAgent(gateway.mqttPort, { onStop });
      await box.becomes('idle');
      const { qrCode, answer } = await push(gateway.baseUrl);
      expect((await answer).body).toEqual({ status: 'SUCCESS', message: '' });
      const picture = join(box.folder, 'screen.png');
      expect(decodeQrTwice(await readFile(picture))[0]).toBe(qrCode);
      await expectCleanEnd(box.running);
      expect(isBlack(await readFile(picture))).toBe(true);
      const again = await box.again();
      await again.becomes('showing');
      await eventually('the same QR', async () => {
        const png = await readFile(picture);
        return !isBlack(png) && decodeQrTwice(png)[0] === qrCode;
      });
    },
  );

  it('the agent leaves what is no QR on the screen with onStop: leave', async () => {
    const gateway = await gatewayHere();
    const box = await startAgent(gateway.mqttPort, { onStop: 'leave' });
    await box.becomes('idle');
    const picture = join(box.folder, 'screen.png');
    await eventually('what the box says is on its screen', async () => {
      const shown = new Uint8Array(await (await fetch(`${box.boxUrl}/screen.png`)).arrayBuffer());
      return (await readFile(picture)).equals(shown);
    });
    await expectCleanEnd(box.running);
    const left = await readFile(picture);
    expect(isBlack(left)).toBe(false);
    const again = await box.again();
    await eventually('the same picture', async () => (await readFile(picture)).equals(left));
    await again.becomes('idle');
  });

  it('the agent ends on SIGTERM before a broker has ever answered', async () => {
    const broker = await startSilentServer();
    const box = await startAgent(broker.port);
    await eventually('the box to dial', () => broker.open() > 0);
    await expectCleanEnd(box.running);
  });

  it('STO-8 the agent ends on SIGTERM although its broker is stalled, and names the link', async () => {
    const gateway = await gatewayHere();
    const proxy = await startProxy({ port: gateway.mqttPort });
    onTestFinished(() => proxy.close());
    const box = await startAgent(proxy.port);
    await box.becomes('idle');
    proxy.stall();
    await expectCleanEnd(box.running, ['link']);
  });

  it('the agent ends on SIGTERM although its pages are watched, and by one that does not read', async () => {
    const broker = await startSilentServer();
    const box = await startAgent(broker.port);
    await holdOpen(box.boxUrl, 'GET /events HTTP/1.1\nhost: localhost\n\n');
    await holdOpen(box.boxUrl, 'GET /screen.png HTTP/1.1\nhost: localhost\n');
    const events = await fetch(`${box.boxUrl}/events`);
    await expectCleanEnd(box.running);
    await expect(events.text()).resolves.toContain('event: status');
  });

  it('the agent ends on SIGTERM although its player hangs, and ends that too', async () => {
    const folder = await temporaryFolder();
    const [player, pidFile] = [join(folder, 'player'), join(folder, 'pid')];
    await writeFile(player, `#!/bin/sh\ntrap '' TERM INT\necho $$ > ${pidFile}\nexec sleep 600\n`);
    await chmod(player, 0o755);
    const broker = await startSilentServer();
    const voice = { driver: 'espeak', options: { command: 'true', player: { kind: 'aplay', command: player } } };
    const box = await startAgent(broker.port, { voice });
    const pid = await eventually('the player', async () => Number(await readFile(pidFile, 'utf8').catch(() => '')));
    await expectCleanEnd(box.running);
    expect(() => process.kill(pid, 0)).toThrow('ESRCH');
  });

  it('the agent exits with 130 on SIGINT, and at once on a second signal', async () => {
    const gateway = await gatewayHere();
    const proxy = await startProxy({ port: gateway.mqttPort });
    onTestFinished(() => proxy.close());
    const box = await startAgent(proxy.port);
    await box.becomes('idle');
    proxy.stall();
    box.running.child.kill('SIGINT');
    await eventually('stopping', () => box.running.output().includes('"stopping"'));
    expect(await box.running.stop('SIGTERM')).toBe(130);
    expect(box.running.output()).not.toContain('"stopped"');
  });
});

describe.skipIf(socat.missing)(`a display that hangs${socat.note}`, () => {
  it('a display that hangs from the start does not keep the agent', async () => {
    const { freeze, ...display } = await frozenDisplay();
    freeze();
    const broker = await startSilentServer();
    const box = await startAgent(broker.port, { displays: [display] });
    await expectCleanEnd(box.running);
  });

  it('a display that hangs in mid-push keeps neither the agent nor the partner', async () => {
    const { freeze, ...display } = await frozenDisplay();
    const gateway = await gatewayHere();
    const box = await startAgent(gateway.mqttPort, { displays: [display] });
    await box.becomes('idle');
    freeze();
    const { answer } = await push(gateway.baseUrl);
    await box.becomes('showing');
    await expectCleanEnd(box.running);
    expect(await answer).toMatchObject({ status: 400, body: { status: 'FAILED' } });
  });

  it('the agent starts anew on the port, the folder and the ready file of one that was killed', async () => {
    const { freeze: _, ...display } = await frozenDisplay();
    const gateway = await gatewayHere();
    const box = await startAgent(gateway.mqttPort, { displays: [display] });
    await box.becomes('idle');
    await box.running.stop('SIGKILL');
    const again = await box.again();
    await again.becomes('idle');
    expect((await again.status()).fault).toBeNull();
    await expectCleanEnd(again.running);
  });
});

it('a framebuffer that hangs in the kernel does not keep the agent', async () => {
  const { root, node } = new FakeFramebuffer(await temporaryFolder(), FRAMEBUFFER);
  // Opening a pipe that nobody reads takes a thread and never gives it back.
  await rm(node);
  await promisify(execFile)('mkfifo', [node]);
  const broker = await startSilentServer();
  const box = await startAgent(broker.port, { displays: [{ driver: 'framebuffer', root }] });
  // The link waits for the displays' first attempt, but not for ever.
  await eventually('the box to dial', () => broker.open() > 0);
  await expectCleanEnd(box.running);
});

describe('the gateway on SIGTERM', () => {
  it('the gateway on SIGTERM answers BOX_OFFLINE to whoever waits for a box', async () => {
    const gateway = await startGateway();
    const at = { origin: gateway.at.consoleUrl, mqttUrl: `mqtt://127.0.0.1:${gateway.mqttPort}` };
    const box = await connectFakeBox({ gateway: at, identity: BOX, transport: 'mqtt', onShow: () => undefined });
    const { answer } = await push(gateway.at.baseUrl);
    await box.next('show');
    await expectCleanEnd(gateway.running);
    expect(await answer).toEqual({ status: 400, body: { status: 'FAILED', message: 'BOX_OFFLINE' } });
  });

  it('the gateway ends on SIGTERM although a partner never answers, and calls it anew after the next start', async () => {
    const partner = await startSilentServer();
    const gateway = await startGateway(`http://127.0.0.1:${partner.port}/paid`);
    const shop = new Shop(gateway.at.baseUrl);
    await shop.login();
    const order = { amount: 50_000, content: 'DH001', orderId: 'DH001' };
    await shop.generate(order);
    expect((await shop.pay(order)).body.status).toBe('SUCCESS');
    await eventually('the call', () => partner.open() === 1);
    await expectCleanEnd(gateway.running);
    await eventually('the call is cut', () => partner.open() === 0);
    const again = await gateway.again();
    await eventually('the call again', () => partner.open() === 1);
    await expectCleanEnd(again.running);
  });

  it('the gateway ends on SIGTERM although its streams are read by nobody, and a client never finishes its request', async () => {
    const gateway = await startGateway();
    await holdOpen(gateway.at.consoleUrl, 'GET /_mock/events HTTP/1.1\nhost: localhost\n\n');
    const slow = 'POST /vqr/api/token_generate HTTP/1.1\nhost: localhost\ncontent-length: 9\n';
    await holdOpen(gateway.at.consoleUrl, `${slow}content-type: application/json\n\n{`);
    const events = await fetch(`${gateway.at.consoleUrl}_mock/events`);
    await expectCleanEnd(gateway.running);
    await events.text();
  });

  it('the gateway ends on SIGTERM while it starts on a broker that never answers', async () => {
    const broker = await startSilentServer();
    const folder = await temporaryFolder();
    const file = join(folder, 'gateway.yaml');
    const mqtt = { url: `mqtt://127.0.0.1:${broker.port}` };
    const config = { http: { port: await freePort() }, mqtt, dataDir: 'data', partners: [], accounts: [], boxes: [] };
    await writeFile(file, JSON.stringify(config));
    const running = paybox('gateway', '--config', file);
    await eventually('the gateway to dial', () => broker.open() > 0, START_MS);
    expect(await running.stop('SIGTERM'), running.output()).toBe(0);
  });
});

const gcc = without(PROGRAMS.gcc);

describe.skipIf(gcc.missing)(`a gateway whose disk hangs${gcc.note}`, () => {
  it('STO-8 a gateway whose disk hangs ends on SIGTERM, acknowledges nothing that is not on the disk, and names its store', async () => {
    const folder = await temporaryFolder();
    const [library, hung] = [join(folder, 'hung-disk.so'), join(folder, 'hung')];
    const source = join(import.meta.dirname, '../support/hung-disk.c');
    await promisify(execFile)('gcc', ['-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', library, source]);
    const config = {
      ...{ http: { port: await freePort() }, mqtt: null, dataDir: 'gateway', accounts: [ACCOUNT] },
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: 'http://127.0.0.1:9/paid' } }],
    };
    const launch = (...args: string[]) => run(CLI, args, { LD_PRELOAD: library, PAYBOX_TEST_HUNG_DISK: hung });
    const { running, at } = await startConfigured<GatewayAt>('gateway', config, folder, launch);
    const shop = new Shop(at.baseUrl);
    await shop.login();
    expect((await shop.pay({ amount: 50_000, content: 'DH 1' })).status).toBe(200);
    await writeFile(hung, '');
    const waiting = shop.pay({ amount: 50_000, content: 'DH 2' }).catch(() => undefined);
    await eventually('its health', async () => (await fetch(`${at.consoleUrl}readyz`)).status === 503);
    await expectEndOf(running, /^store$/);
    expect((await waiting)?.status).not.toBe(200);
  });
});

describe('paybox up on SIGTERM', () => {
  it('STO-8 paybox up on SIGTERM ends box, gateway and partner, and writes the end into its log', async () => {
    const data = await temporaryFolder();
    const ports = ['--http-port', '--mqtt-port', '--box-port'];
    const given = await Promise.all(ports.map(async (option) => [option, `${await freePort()}`]));
    const running = paybox('up', '--data', data, '--no-open', '--display', 'png', ...given.flat());
    await eventually('ready', () => running.output().includes('paybox is ready'), START_MS);
    expect(await running.stop('SIGTERM'), running.output()).toBe(0);
    const log = await readFile(join(data, 'paybox.log'), 'utf8');
    expect(log.trim().split('\n').at(-1)).toMatch(/ stopped signal=SIGTERM tookMs=\d+$/);
    expect(log).not.toContain('end-timed-out');
    expect(isBlack(await readFile(join(data, 'screen.png')))).toBe(true);
  });
});
