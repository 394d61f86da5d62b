import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { Aedes } from 'aedes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startNameServer } from '../support/name-server.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { CLI, readyFile, run } from '../support/processes.ts';
import { ACCOUNT, PARTNER, Shop } from './walk.ts';

const LIVE = { bankAccount: 'SHOP2ACC', bankCode: 'VCB', userBankName: 'TRAN THI B' };
const PAYMENTS = 20;
/** What a busy machine may need for what takes half a second; a lookup in the way takes 10 s, and there are many. */
const PATIENCE_MS = 8_000;
/** 2 s are promised; the rest is for a busy machine. A lookup that is waited for takes 10 s. */
const STOP_MS = 8_000;

function whyNoMounts(): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  return spawnSync('unshare', ['-m', 'true']).status === 0 ? undefined : 'mount namespaces are not permitted';
}

/** A broker at a port of its own that can be stopped and started again. */
async function broker(port: number): Promise<{ stop(): Promise<void> }> {
  const aedes = await Aedes.createBroker();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    aedes.handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(port, resolve));
  const stop = async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => aedes.close(resolve));
  };
  onTestFinished(stop);
  return { stop };
}

/** The gateway as a program, with no name server but a silent one; one partner is behind that, the other at localhost. */
async function startGateway(liveUrl: string, mqttPort: number) {
  const folder = await temporaryFolder();
  const { pid } = process;
  const host = `127.53.${pid % 250}.${1 + (Math.floor(pid / 250) % 250)}`;
  const { asked } = await startNameServer({}, { host, port: 53 });
  const [file, resolvConf, ready] = ['gateway.yaml', 'resolv.conf', 'ready.json'].map((it) => join(folder, it));
  await writeFile(resolvConf ?? '', `nameserver ${host}\n`);
  const live = { username: 'live', password: 'live-secret', accounts: [LIVE.bankAccount], callback: { url: liveUrl } };
  const dead = { ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: 'http://shop.dead.example/paid' } };
  const config = {
    http: { port: await freePort() },
    mqtt: { url: `mqtt://localhost:${mqttPort}` },
    dataDir: 'gateway',
    partners: [dead, live],
    accounts: [ACCOUNT, LIVE],
    boxes: [],
  };
  await writeFile(file ?? '', JSON.stringify(config));
  const script = 'mount --bind "$1" /etc/resolv.conf && exec "$2" gateway --config "$3" --ready-file "$4"';
  const program = [resolvConf, CLI, file, ready].map(String);
  const running = run('unshare', ['-m', 'sh', '-c', script, 'sh', ...program]);
  const { baseUrl, consoleUrl } = await readyFile<{ baseUrl: string; consoleUrl: string }>(ready ?? '', running);
  return { running, baseUrl, consoleUrl, asked };
}

const why = whyNoMounts();

describe.skipIf(why !== undefined)(`a partner behind a name server that is silent${why ? ` (${why})` : ''}`, () => {
  it('SYN-9 SYN-4 a partner behind a silent name server holds up no other partner, nor broker, disk and end', async () => {
    const partner = await startPartnerServer();
    const mqttPort = await freePort();
    const first = await broker(mqttPort);
    const url = partner.url.replace('127.0.0.1', 'localhost');
    const { running, baseUrl, consoleUrl, asked } = await startGateway(url, mqttPort);
    const [dead, live] = [new Shop(baseUrl), new Shop(baseUrl)];
    await dead.login();
    await live.login({ username: 'live', password: 'live-secret' });
    const pay = (shop: Shop, { bankAccount }: typeof ACCOUNT) =>
      shop.pay({ amount: 50_000, content: 'DH001' }, bankAccount);
    const isWell = async () => (await fetch(`${consoleUrl}healthz`)).status === 200;

    for (let i = 0; i < PAYMENTS; i += 1) expect((await pay(dead, ACCOUNT)).status).toBe(200);
    await eventually('the silent one to be asked', () => asked.includes('shop.dead.example'));
    for (let i = 0; i < PAYMENTS; i += 1) expect((await pay(live, LIVE)).status).toBe(200);
    await eventually('every callback', () => partner.received.length === PAYMENTS, PATIENCE_MS);

    await first.stop();
    await eventually('the broker to be missed', async () => !(await isWell()), PATIENCE_MS);
    await broker(mqttPort);
    await eventually('the broker again', isWell, PATIENCE_MS);
    expect((await fetch(`${consoleUrl}docs/swagger-ui.css`)).status).toBe(200);

    const begunMs = performance.now();
    expect(await running.stop()).toBe(0);
    expect(performance.now() - begunMs, running.output()).toBeLessThan(STOP_MS);
    expect(new Set(partner.received.map((it) => it.body.transactionid)).size).toBe(PAYMENTS);
  });
});
