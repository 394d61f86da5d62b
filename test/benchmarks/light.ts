import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { withFixture } from './fixture.ts';
import { prepareLightBoxes } from './load.ts';
import { took } from './loop.ts';
import { type Benchmark, type Row, rowUnder } from './row.ts';

/** By transport. A gateway takes 4,096 connections over HTTP (PROTOCOL.md, clause LIM-6). */
const BOXES = { mqtt: 10_000, http: 3_500 } as const;
/** The first ones bring the code with them. */
const FIRST = 1_000;
const SOCKETS = 2_000;
const SOCKETS_AT_ONCE = 200;
const KIBIBYTE = 1_024;

/** Thousands of light boxes in this process at a gateway of its own: how long they take, and how much room on both sides. */
export const light: Benchmark = {
  name: 'light',
  run: async (progress) => {
    const collect = collector();
    const socketKb = await bareSocketKb(collect);
    const rows: Row[] = [];
    for (const transport of ['mqtt', 'http'] as const)
      rows.push(...(await over(transport, { collect, socketKb, progress })));
    return rows;
  },
};

interface Means {
  collect: () => void;
  socketKb: number;
  progress: (text: string) => void;
}

const over = (transport: keyof typeof BOXES, { collect, socketKb, progress }: Means): Promise<Row[]> =>
  withFixture(async (fixture) => {
    const count = BOXES[transport];
    const boxes = await prepareLightBoxes(fixture, count, transport);
    try {
      progress(`${FIRST} boxes over ${transport}`);
      const firstMs = await took(() => boxes.start(FIRST));
      const before = { ours: heapKb(collect), gateway: await rssKb(boxes.gateway) };
      progress(`${count} boxes over ${transport}`);
      const restMs = await took(() => boxes.start(count - FIRST));
      const after = { ours: heapKb(collect), gateway: await rssKb(boxes.gateway) };
      const each = (kb: number) => kb / (count - FIRST);
      const against = { name: 'its socket alone', value: socketKb };
      const [allS, firstS] = [(firstMs + restMs) / 1_000, firstMs / 1_000];
      const all = `${count} light boxes over ${transport} registered`;
      return [
        rowUnder(all, 's', allS, { name: `${FIRST} of them`, value: firstS }, 60),
        rowUnder(
          `a light box over ${transport} beside its socket`,
          'KB',
          each(after.ours - before.ours) - socketKb,
          against,
          20,
        ),
        rowUnder('a box at the gateway, resident', 'KB', each(after.gateway - before.gateway), against, 40),
      ];
    } finally {
      await boxes.close();
    }
  });

/** Collects garbage, so that only what is in use is counted. */
export function collector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  return () => {
    for (let times = 0; times < 4; times += 1) collect();
  };
}

function heapKb(collect: () => void): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return (heapUsed + external) / KIBIBYTE;
}

async function rssKb({ pid }: ChildProcess): Promise<number> {
  return Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

/** A client's end of a TCP connection, idle. */
async function bareSocketKb(collect: () => void): Promise<number> {
  const accepted: { destroy(): void }[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => accepted.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const before = heapKb(collect);
  const sockets = [];
  for (let made = 0; made < SOCKETS; made += SOCKETS_AT_ONCE) {
    const some = Array.from({ length: SOCKETS_AT_ONCE }, () => connect(port, '127.0.0.1').on('data', () => undefined));
    await Promise.all(some.map((socket) => once(socket, 'connect')));
    sockets.push(...some);
  }
  // Both ends are in this process.
  const eachKb = (heapKb(collect) - before) / SOCKETS / 2;
  for (const socket of [...sockets, ...accepted]) socket.destroy();
  server.close();
  return eachKb;
}
