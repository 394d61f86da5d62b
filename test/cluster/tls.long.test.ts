import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority, validFor } from '../../src/device/setup/pki.ts';
import { startMember } from '../../src/gateway/cluster/cluster.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { askHttp } from '../../src/lib/http-client.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { provisioned } from '../support/provisioned.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

const SHARDS = 4;
const ADMIN_TOKEN = newSecret(systemRandom);

describe.skipIf(missing)(`members that reach each other over TLS${note}`, () => {
  const server = postgresServer();

  async function startAt(databaseUrl: string, path: string, ca: string) {
    const port = await freePort();
    const tls = { cert: join(path, 'gateway/cert.pem'), key: join(path, 'gateway/key.pem') };
    const config = parseGatewayConfig(
      {
        ...{ dataDir: await temporaryFolder(), databaseUrl, adminToken: ADMIN_TOKEN, mqtt: null },
        http: { port, tls },
        cluster: { advertise: `https://127.0.0.1:${port}`, ca, shards: SHARDS },
      },
      'test',
    );
    if (config.cluster === undefined || config.databaseUrl === undefined) throw new Error('no member');
    const known = { ...config, cluster: config.cluster, databaseUrl: config.databaseUrl };
    const { log, lines } = keptLog();
    const member = await startMember(known, { clock: systemClock, random: systemRandom, log });
    onTestFinished(() => member.close());
    const trusted = await readFile(join(path, 'ca.pem'));
    const get = async (to: string) => {
      const asked = { ca: trusted, headers: { authorization: `Bearer ${ADMIN_TOKEN}` } };
      const answer = await askHttp(`${member.origin}${to}`, asked, { timeoutMs: 20_000, bytesMax: 65_536 });
      return { status: answer.status, body: answer.body.toString() };
    };
    return { get, lines, shards: async () => JSON.parse((await get('/healthz')).body).cluster.shards as number[] };
  }

  it('SHA-5 members forward calls to each other over TLS, but to nobody without a certificate of their authority', async () => {
    const { path } = await provisioned();
    const databaseUrl = await server().database();
    const ca = join(path, 'ca.pem');
    const [one, two] = [await startAt(databaseUrl, path, ca), await startAt(databaseUrl, path, ca)];
    const halves = async () => (await one.shards()).length === SHARDS / 2 && (await two.shards()).length === SHARDS / 2;
    await eventually('each to hold its half', halves);
    for (const { get } of [one, two]) {
      for (let shard = 0; shard < SHARDS; shard += 1) {
        expect(await get(`/_mock/orders?shard=${shard}`)).toMatchObject({ status: 200, body: '[]' });
      }
      expect(await get('/_mock/orders')).toMatchObject({ status: 200, body: '[]' });
    }

    const other = join(await temporaryFolder(), 'ca.pem');
    await writeFile(other, (await createAuthority('elsewhere', validFor(Date.now(), 1))).cert);
    const three = await startAt(databaseUrl, path, other);
    const asked = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) => three.get(`/_mock/orders?shard=${shard}`)),
    );
    // At most two shards fall to it.
    expect(asked.filter(({ status }) => status === 502).length).toBeGreaterThanOrEqual(2);
    expect(JSON.stringify(three.lines)).toMatch(/the gateway that runs shard \d has not answered: .*certificate/);
  });
});
