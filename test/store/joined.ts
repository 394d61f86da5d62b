import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { joinCluster } from '../../src/gateway/cluster/cluster.ts';
import { OpenParts } from '../../src/gateway/common/open-parts.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { openStore, type StorePlace } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';

/** A gateway that has joined the others of its database, with its store. `open` opens that again, as a restart does. */
export async function joined(databaseUrl: string, name: string) {
  const dataDir = await temporaryFolder();
  const own = { http: { port: 0 }, mqtt: null, dataDir, databaseUrl, adminToken: newSecret(systemRandom) };
  const config = parseGatewayConfig({ ...own, cluster: { name }, accounts: [], boxes: [], partners: [] }, 'test');
  const { log, lines } = keptLog();
  const parts = new OpenParts(systemClock, log);
  onTestFinished(() => parts.close(2_000));
  const place = await joinCluster(
    config as Parameters<typeof joinCluster>[0],
    { clock: systemClock, random: systemRandom, log },
    parts,
  );
  const at: StorePlace = { dataDir, databaseUrl, sharing: place.sharing };
  const open = async () => {
    const store = await openStore(at, log);
    onTestFinished(() => store.close().catch(() => undefined));
    return store;
  };
  const ended = `select pg_terminate_backend(pid) from pg_stat_activity where application_name = '${place.sharing?.application}'`;
  return {
    open,
    store: await open(),
    lines,
    ended,
    accept: join(dataDir, `gateway-${new URL(databaseUrl).pathname.slice(1)}.accept-loss`),
  };
}
