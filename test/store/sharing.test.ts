import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { joinCluster } from '../../src/gateway/cluster/cluster.ts';
import { OpenParts } from '../../src/gateway/common/open-parts.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { openStore, type StorePlace } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { pay } from './rows.ts';

describe.skipIf(missing)(`stores of gateways that share a PostgreSQL database${note}`, () => {
  const server = postgresServer();

  /** A gateway that has joined the others of its database, with its store. */
  async function joined(databaseUrl: string, name: string) {
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
      accept: join(dataDir, `gateway-${nameIn(databaseUrl)}.accept-loss`),
    };
  }
  const nameIn = (databaseUrl: string) => new URL(databaseUrl).pathname.slice(1);

  it('STO-3 they store payments at once, each in its own chain', async () => {
    const databaseUrl = await server().database();
    const all = [await joined(databaseUrl, 'a'), await joined(databaseUrl, 'b'), await joined(databaseUrl, 'c')];
    await Promise.all(
      all.flatMap(({ store }, i) => Array.from({ length: 20 }, (_, n) => pay(store, `${i} ${n}`, { atMs: n }))),
    );
    const found = await server().run(
      databaseUrl,
      'select name, end_seq::int as number, (select count(*)::int from payments where writer = name) as count from ledger order by name',
    );
    expect(found).toEqual([
      { name: '', number: 0, count: 0 },
      ...['a', 'b', 'c'].map((name) => ({ name, number: 20, count: 20 })),
    ]);
    await all[0]?.store.close();
    await all[0]?.open();
  });

  it('STO-5 all refuse while payments of one are missing, and go on once an admin has accepted the loss at one', async () => {
    const databaseUrl = await server().database();
    const [a, b] = [await joined(databaseUrl, 'a'), await joined(databaseUrl, 'b')];
    for (const n of [1, 2, 3]) await pay(a.store, `a${n}`);
    await pay(b.store, 'b1');
    await server().run(
      databaseUrl,
      `delete from payments where id = 'a3';
       update ledger set end_seq = 2, end_link = (select link from payments where id = 'a2') where name = 'a'`,
    );
    await server().run(databaseUrl, a.ended);
    const problem = 'payment 3 of gateway a is missing';
    for (const { store, lines } of [a, b]) {
      await eventually('it to say so', () => lines.some(({ event }) => event === 'payments-missing'));
      await expect(pay(store, 'more')).rejects.toThrow(problem);
    }
    await b.store.close();
    await expect(b.open()).rejects.toThrow(problem);
    await writeFile(b.accept, '');
    await pay(await b.open(), 'b2');
    await eventually('a to go on', () => a.lines.some(({ event }) => event === 'payments-recovered'));
    await pay(a.store, 'a3 again');
    const ids = (await a.store.payments.newest(10)).map(({ id }) => id);
    expect(ids.toReversed()).toEqual(['a1', 'a2', 'b1', 'b2', 'a3 again']);
  });
});
