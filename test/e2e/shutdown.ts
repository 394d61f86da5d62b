import { createServer, type Socket } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import type { BoxStatus } from '../../src/device/agent/contract.ts';
import { STOP_BUDGET_MS } from '../../src/lib/shutdown.ts';
import { testGateway } from '../gateway/harness.ts';
import { eventually, freePort } from '../support/net.ts';
import {
  type AgentAt,
  type Configured,
  type GatewayAt,
  type Running,
  START_MS,
  startConfigured,
} from '../support/processes.ts';
import { ACCOUNT, getJson, PARTNER, Shop } from './walk.ts';

export const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
/** The machine that runs the tests may be slow; that the budget is below 2 s is for the constant to say. */
const GENEROUS_MS = 25_000;

/** The promise is 2 s; the machine may be slow. It was 5 to 6 s while some part was awaited without a deadline. */
const END_MS_MAX = 4_000;

/** `paybox gateway` with the demo's identities and a broker of its own. */
export async function startGateway(callbackUrl?: string): Promise<Configured<GatewayAt> & { mqttPort: number }> {
  const mqttPort = await freePort();
  const callback = callbackUrl === undefined ? {} : { callback: { url: callbackUrl } };
  const config = {
    http: { port: await freePort() },
    mqtt: { embedded: { port: mqttPort } },
    dataDir: 'gateway',
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], ...callback }],
    accounts: [ACCOUNT],
    boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
  };
  return { ...(await startConfigured<GatewayAt>('gateway', config)), mqttPort };
}

/** The same in this process, for tests of how an agent ends. */
export async function gatewayHere(): Promise<{ baseUrl: string; mqttPort: number }> {
  const boxes = [{ ...BOX, account: ACCOUNT.bankAccount }];
  const { baseUrl, mqttUrl = '' } = await testGateway({ config: { boxes } });
  return { baseUrl, mqttPort: Number(new URL(mqttUrl).port) };
}

export interface StartedAgent extends Pick<Configured<AgentAt>, 'running' | 'folder'> {
  boxUrl: string;
  status(): Promise<BoxStatus>;
  /** Waits until the box is in this state, and its display works. */
  becomes(state: string): Promise<void>;
  again(): Promise<StartedAgent>;
}

/** `paybox agent` on MQTT, with `change` in its configuration. */
export async function startAgent(mqttPort: number, change: object = {}): Promise<StartedAgent> {
  const config = {
    box: BOX,
    link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqttPort}` },
    displays: [{ driver: 'png', path: 'screen.png', width: 320, height: 240 }],
    http: { port: await freePort() },
    dataDir: 'box',
    ...change,
  };
  return asBox(await startConfigured<AgentAt>('agent', config));
}

function asBox({ running, folder, at: { boxUrl }, again }: Configured<AgentAt>): StartedAgent {
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
  return { running, folder, boxUrl, status, becomes, again: async () => asBox(await again()) };
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
  expect(lines.filter(({ event }) => event === 'end-timed-out').map(({ part }) => part)).toEqual(late);
  const [last] = lines.toReversed();
  expect(last, log()).toMatchObject({ event: 'stopped', tookMs: expect.any(Number) });
  expect(last?.tookMs).toBeLessThan(GENEROUS_MS);
}

/**
 * Stops a program and expects exit code 0, in time, and a log that names a part like this as abandoned, and tells the time
 * that it took.
 */
export async function expectEndOf(running: Running, hung: RegExp): Promise<void> {
  const sinceMs = performance.now();
  expect(await running.stop('SIGTERM'), running.output()).toBe(0);
  const tookMs = performance.now() - sinceMs;
  const lines = linesOf(running.output());
  const late = lines.filter(({ event }) => event === 'end-timed-out').map(({ part }) => String(part));
  expect(
    late.filter((part) => hung.test(part)),
    running.output(),
  ).not.toEqual([]);
  const last = lines.at(-1);
  expect(last).toMatchObject({ event: 'stopped', tookMs: expect.any(Number) });
  expect(Math.max(tookMs, Number(last?.tookMs))).toBeLessThan(END_MS_MAX);
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
