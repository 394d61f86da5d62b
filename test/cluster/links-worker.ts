import { parentPort, workerData } from 'node:worker_threads';
import { z } from 'zod';
import { startProxy } from '../support/proxy.ts';

/* The cables of the cluster, in a thread of their own: the boxes of the test would hold up what passes through them. */

const targets = z.array(z.int()).parse(workerData);
const order = z.object({ at: z.int(), what: z.enum(['cut', 'stall', 'resume']) });

const proxies = await Promise.all(targets.map((port) => startProxy({ port })));
parentPort?.on('message', (message: unknown) => {
  const { at, what } = order.parse(message);
  proxies[at]?.[what]();
});
parentPort?.postMessage(proxies.map(({ port }) => port));
