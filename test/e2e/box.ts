import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BOX1 } from '../gateway/harness.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import type { RemoteNamespace } from '../support/netem.ts';
import { type Running, readyFile, run } from '../support/processes.ts';
import { cliScript } from '../support/program-code.ts';
import { getJson } from './walk.ts';

/** The program itself and no launcher, so that a signal reaches it and the namespace holds it. */
const NODE = process.execPath;
const IDENTITY = { terminalCode: BOX1.terminalCode, serialNumber: BOX1.serialNumber, secret: BOX1.secret };

/** Of the pages of a box that is not on this machine. */
const PAGE_TOKEN = 'Token-of-the-pages-of-one-test-box';

interface Status {
  state: string;
  online: boolean;
  order: { orderId: string } | null;
  fault: { code: string } | null;
  display: { ok: boolean };
}

export interface Box {
  running: Running;
  /** Of its pages. */
  url: string;
  status(): Promise<Status>;
  /** Lines of its log with this event. */
  logged(event: string): Record<string, unknown>[];
}

/** Starts an agent as its own process, somewhere. */
export async function startBox(
  link: object,
  { host = '127.0.0.1', place }: { host?: string; place?: RemoteNamespace } = {},
): Promise<Box> {
  const folder = await temporaryFolder();
  const isHere = host === '127.0.0.1';
  const config = {
    box: IDENTITY,
    link,
    displays: [{ driver: 'browser' }],
    http: { host, port: await freePort(), ...(isHere ? {} : { token: PAGE_TOKEN }) },
    dataDir: 'box',
    paidHoldSeconds: 1,
  };
  const [file, ready] = [join(folder, 'agent.yaml'), join(folder, 'ready.json')];
  await writeFile(file, JSON.stringify(config));
  const args = [cliScript(), 'agent', '--config', file, '--ready-file', ready];
  const { command, args: all } = place?.command(NODE, args) ?? { command: NODE, args };
  const running = run(command, all);
  const { boxUrl } = await readyFile<{ boxUrl: string }>(ready, running);
  return {
    running,
    url: boxUrl,
    status: () => getJson<Status>(`${boxUrl}/status`, isHere ? {} : { authorization: `Bearer ${PAGE_TOKEN}` }),
    logged: (event) => {
      const lines = running
        .output()
        .split('\n')
        .filter((line) => line.startsWith('{') && line.endsWith('}'));
      return lines.map((line) => JSON.parse(line) as Record<string, unknown>).filter((it) => it.event === event);
    },
  };
}

export const isOnline = async (box: Box) => (await box.status()).online;
export const isReady = async (box: Box) => {
  const { online, display } = await box.status();
  return online && display.ok;
};
