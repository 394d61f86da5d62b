import { z } from 'zod';
import { startProxy } from '../support/proxy.ts';

/* The cables of the cluster, in a program of their own: the boxes of the test would hold up what passes through them. */

const targets = z.array(z.coerce.number().int()).parse(process.argv.slice(2));
const order = z.object({ at: z.int(), what: z.enum(['cut', 'stall', 'resume']) });

const proxies = await Promise.all(targets.map((port) => startProxy({ port })));
process.on('message', (message: unknown) => {
  const { at, what } = order.parse(message);
  proxies[at]?.[what]();
});
process.on('disconnect', () => process.exit());
process.send?.(proxies.map(({ port }) => port));
