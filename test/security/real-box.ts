import { onTestFinished } from 'vitest';
import { startAgent } from '../../src/device/agent/agent.ts';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import type { BoxApi } from '../../src/device/agent/contract.ts';
import { setupOf } from '../../src/device/agent/setup.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { getJson } from '../e2e/walk.ts';
import type { FakeBoxIdentity } from '../support/fake-box.ts';
import { keptLog, type LogLine } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { START_MS } from '../support/processes.ts';

export interface BoxStatus {
  state: string;
  online: boolean;
  display: { ok: boolean };
  order: { orderId: string; qrCode: string; amount: number } | null;
  lastPayment: { transactionId: string } | null;
  enrolment: { code: string } | null;
}

/** A real agent in this process, whose log is kept. */
export interface RealBox {
  identity: Partial<FakeBoxIdentity>;
  dataDir: string;
  log: LogLine[];
  origin: string;
  box: BoxApi;
  status(): Promise<BoxStatus>;
  /** The names of what it refused, in the order in which it came. */
  refusals(): unknown[];
  close(): Promise<void>;
}

/** Starts a box and waits until its gateway has welcomed it and it has a screen. */
export async function startRealBox(
  { terminalCode, serialNumber, secret }: FakeBoxIdentity,
  link: object,
  dataDir?: string,
): Promise<RealBox> {
  const box = await bootRealBox({ terminalCode, serialNumber, secret }, link, dataDir);
  const isReady = async () => {
    const { online, display } = await box.status();
    return online && display.ok;
  };
  await eventually(`${terminalCode} to be online`, isReady, START_MS).catch((error) => {
    throw new Error(`${error}: ${JSON.stringify(box.log)}`);
  });
  return box;
}

/** Starts a box, which may have to enrol. */
export async function bootRealBox(
  identity: Omit<FakeBoxIdentity, 'secret'> & { secret?: string },
  link: object,
  dataDir?: string,
  more: object = {},
): Promise<RealBox> {
  const folder = dataDir ?? (await temporaryFolder());
  const config = {
    box: identity,
    link,
    displays: [{ driver: 'browser' }],
    http: { port: 0 },
    dataDir: folder,
    ...more,
  };
  const { log, lines } = keptLog();
  const agent = await startAgent(setupOf(parseAgentConfig(config, 'test')), {
    clock: systemClock,
    random: systemRandom,
    log,
    terminal: undefined,
    terminalInput: undefined,
  });
  onTestFinished(() => agent.close());
  const status = () => getJson<BoxStatus>(`${agent.origin}/status`);
  return {
    identity,
    dataDir: folder,
    log: lines,
    origin: agent.origin,
    box: agent.box,
    status,
    refusals: () => lines.filter((it) => it.event === 'message-refused').map((it) => it.code),
    close: () => agent.close(),
  };
}
