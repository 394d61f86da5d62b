import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, readyFile } from '../support/processes.ts';

const REQUESTS = 300;

it('ERR-5 a stranger who is refused again and again does not fill the log of a gateway', async () => {
  const folder = await temporaryFolder();
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, JSON.stringify({ http: { port: await freePort() }, mqtt: null, dataDir: 'data' }));
  const gateway = paybox('gateway', '--config', file, '--ready-file', join(folder, 'ready.json'));
  const { baseUrl } = await readyFile<{ baseUrl: string }>(join(folder, 'ready.json'), gateway);
  for (let n = 0; n < REQUESTS; n += 1) expect((await fetch(`${baseUrl}/nothing-${n}`)).status).toBe(404);
  expect(await gateway.stop()).toBe(0);
  const refusals = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes('request-refused'))
    .map((line) => JSON.parse(line) as { repeated?: number });
  expect(refusals.length).toBeLessThan(10);
  const counted = refusals.reduce((sum, { repeated }) => sum + (repeated ?? 1), 0);
  expect(counted).toBe(REQUESTS);
}, 60_000);
