import { writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { BoxStatus } from '../../src/agent/contract.ts';
import { STOP_BUDGET_MS } from '../../src/lib/shutdown.ts';
import { testGateway } from '../gateway/harness.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { paybox, type Running, readyFile, START_MS } from '../support/processes.ts';
import { ACCOUNT, getJson, PARTNER, Shop } from './walk.ts';

export const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
/** The machine that runs the tests may be slow; that the budget is below 2 s is for the constant to say. */
const GENEROUS_MS = 25_000;

export interface StartedGateway {
  running: Running;
  baseUrl: string;
  consoleUrl: string;
  mqttPort: number;
  /** The same gateway once more: its folder, its ports. */
  again(): Promise<StartedGateway>;
}

/** `paybox gateway` with the demo's identities and a broker of its own. */
export async function startGateway(callbackUrl?: string): Promise<StartedGateway> {
  const folder = await temporaryFolder();
  const [httpPort, mqttPort] = [await freePort(), await freePort()];
  const callback = callbackUrl === undefined ? {} : { callback: { url: callbackUrl } };
  const config = {
    http: { port: httpPort },
    mqtt: { embedded: { port: mqttPort } },
    dataDir: 'gateway',
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], ...callback }],
    accounts: [ACCOUNT],
    boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
  };
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, JSON.stringify(config));
  const again = async (): Promise<StartedGateway> => {
    const ready = join(folder, 'ready.json');
    const running = paybox('gateway', '--config', file, '--ready-file', ready);
    await eventually('the old ready file to be gone', () => running.output().includes('gateway-ready'), START_MS);
    const { baseUrl, consoleUrl } = await readyFile<{ baseUrl: string; consoleUrl: string }>(ready, running);
    return { running, baseUrl, consoleUrl, mqttPort, again };
  };
  return again();
}

/** The same in this process, for tests of how an agent ends. */
export async function gatewayHere(): Promise<{ baseUrl: string; mqttPort: number }> {
  const boxes = [{ ...BOX, account: ACCOUNT.bankAccount }];
  const { baseUrl, mqttUrl = '' } = await testGateway({ config: { boxes } });
  return { baseUrl, mqttPort: Number(new URL(mqttUrl).port) };
}

export interface StartedAgent {
  running: Running;
  boxUrl: string;
  folder: string;
  status(): Promise<BoxStatus>;
  /** Waits until the box is in this state, and its display works. */
  becomes(state: string): Promise<void>;
  again(): Promise<StartedAgent>;
}

/** `paybox agent` on MQTT, with `change` in its configuration. */
export async function startAgent(mqttPort: number, change: object = {}): Promise<StartedAgent> {
  const folder = await temporaryFolder();
  const config = {
    box: BOX,
    link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqttPort}` },
    displays: [{ driver: 'png', path: 'screen.png', width: 320, height: 240 }],
    http: { port: await freePort() },
    dataDir: 'box',
    ...change,
  };
  const file = join(folder, 'agent.yaml');
  await writeFile(file, JSON.stringify(config));
  const again = async (): Promise<StartedAgent> => {
    const ready = join(folder, 'ready.json');
    const running = paybox('agent', '--config', file, '--ready-file', ready);
    await eventually('the old ready file to be gone', () => running.output().includes('"ready"'), START_MS);
    const { boxUrl } = await readyFile<{ boxUrl: string }>(ready, running);
    const status = () => getJson<BoxStatus>(`${boxUrl}/status`);
    const becomes = async (state: string) => {
      const is = async () => {
        const now = await status();
        return now.state === state && now.display.ok;
      };
      await eventually(`state ${state}`, is, START_MS).catch((error) => {
        throw new Error(`${error}\n${running.output()}`);
      });
    };
    return { running, boxUrl, folder, status, becomes, again };
  };
  return again();
}

/** Begins a push of a fresh order; settles with a promise of its answer once the gateway has it. */
export async function push(baseUrl: string, orderId = 'DH001') {
  const shop = new Shop(baseUrl);
  await shop.login();
  const generated = await shop.generate({ amount: 50_000, content: orderId, orderId });
  return { qrCode: String(generated.body.qrCode), answer: shop.sendQr(generated.body) };
}

/**
 * Stops a program and expects a clean end: its exit code, and a log that tells the budget, the time that it took, and
 * nothing but `late` as left behind.
 */
export async function expectCleanEnd(running: Running, late: readonly string[] = [], log = () => running.output()) {
  const sinceMs = performance.now();
  const code = await running.stop('SIGTERM');
  expect(code, log()).toBe(0);
  expect(performance.now() - sinceMs).toBeLessThan(GENEROUS_MS);
  const lines = linesOf(log());
  expect(lines.find(({ event }) => event === 'stopping')).toMatchObject({
    signal: 'SIGTERM',
    withinMs: STOP_BUDGET_MS,
  });
  expect(lines.filter(({ event }) => event === 'end-late').map(({ part }) => part)).toEqual(late);
  const [last] = lines.toReversed();
  expect(last, log()).toMatchObject({ event: 'stopped', tookMs: expect.any(Number) });
  expect(last?.tookMs).toBeLessThan(GENEROUS_MS);
}

function linesOf(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** A server that takes connections and never says a word; its port, and how many it holds. */
export async function startSilentServer(): Promise<{ port: number; open(): number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    socket.resume();
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, open: () => sockets.size };
}
