import { expect, it } from 'vitest';
import { GATEWAY_LOGIN } from '../../src/device/setup/brokers.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { BOX_PATHS, BOX_SESSION_HEADER } from '../../src/protocol/http-api.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { BOX1, BOX2, testGateway } from '../gateway/harness.ts';
import { brokerOfLanes, LANES_PASSWORD } from '../gateway/lanes-fixture.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { startPostgres } from '../support/postgres.ts';

/** After 5 s without its database a gateway sends its boxes away. */
const AWAY_MS = 6_500;

it('SHA-5 BOX-HTTP-4 a gateway whose database was away has its boxes over MQTT at once, and tells those over HTTP to ask again soon', async () => {
  const postgres = await startPostgres();
  const databaseUrl = await postgres.database();
  const url = await brokerOfLanes();
  const mqtt = { url, username: GATEWAY_LOGIN, password: LANES_PASSWORD };
  const adminToken = newSecret(systemRandom);
  const gateway = await testGateway({
    config: { databaseUrl, mqtt, adminToken, confirm: 'displayed', cluster: { name: 'a' } },
  });
  const at = { gateway: { origin: '', mqttUrl: url }, identity: BOX1, transport: 'mqtt', lane: 1 } as const;
  const box = await connectFakeBox(at);
  const isPushed = async (orderId: string) => (await gateway.sendQr({ orderId })).body.status === 'SUCCESS';
  expect(await isPushed('BEFORE')).toBe(true);
  await postgres.stop('SIGINT');
  const sinceMs = performance.now();
  const headers = {
    authorization: `Basic ${Buffer.from(`${BOX2.terminalCode}:${loginOf(BOX2.secret)}`).toString('base64')}`,
    [BOX_SESSION_HEADER]: crypto.randomUUID(),
  };
  const refused = await fetch(`${gateway.origin}${BOX_PATHS.stream}`, { headers });
  expect([refused.status >= 500, refused.headers.get('retry-after')]).toEqual([true, '1']);
  await eventually('a long time without the database', () => performance.now() - sinceMs > AWAY_MS);
  await postgres.start();
  // The box itself says nothing meanwhile.
  let orders = 0;
  await eventually('a push', () => {
    orders += 1;
    return isPushed(`AFTER${orders}`).catch(() => false);
  });
  expect(box.of('refused')).toEqual([]);
  expect(box.of('welcome')).toHaveLength(1);
});
