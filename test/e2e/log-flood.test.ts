import { expect, it } from 'vitest';
import { type GatewayAt, startConfigured } from '../support/processes.ts';

const REQUESTS = 300;

it('ERR-5 a stranger who is refused again and again does not fill the log of a gateway', async () => {
  const config = { http: { port: 0 }, mqtt: null, dataDir: 'data' };
  const { running: gateway, at } = await startConfigured<GatewayAt>('gateway', config);
  for (let n = 0; n < REQUESTS; n += 1) expect((await fetch(`${at.baseUrl}/nothing-${n}`)).status).toBe(404);
  expect(await gateway.stop()).toBe(0);
  const refusals = gateway
    .output()
    .split('\n')
    .filter((line) => line.includes('request-refused'))
    .map((line) => JSON.parse(line) as { repeated?: number });
  expect(refusals.length).toBeLessThan(10);
  const counted = refusals.reduce((sum, { repeated }) => sum + (repeated ?? 1), 0);
  expect(counted).toBe(REQUESTS);
});
