import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { Kysely, sql } from 'kysely';
import { sqliteFile } from '../../src/gateway/store/engines/sqlite.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { DEMO, Fixture, Shop, startPair } from './fixture.ts';
import { type Benchmark, percentile, rowUnder } from './row.ts';

const PUSHES_OF_BOX = 63_000;
const ORDERS = 150_000;
const WARM_UP = 20;
const SAMPLES = 150;
/** Old enough to be pruned when the gateway starts, which scans the whole store. */
const OLD_MS = 40 * 86_400_000;
const SLICES = 500;
const log = createLogger(new PassThrough().resume(), systemClock, 'json');

/** The cost of a long day: send-qr to a box that had 63,000 pushes, and the longest stall while 150,000 orders are pruned. */
export const day: Benchmark = {
  name: 'day',
  async run(progress) {
    const fixture = new Fixture();
    try {
      progress('pushes to a new box');
      const first = await pushesMs(fixture);
      progress(`${ORDERS} orders, ${PUSHES_OF_BOX} pushes of one box`);
      const late = await pushesMs(fixture, (dataDir) => fill(dataDir, systemClock.wallMs()));
      progress('pruning');
      const slices = await sliceMs(await fixture.folder());
      const against = { name: 'the first of the day', value: percentile(first, 0.5) };
      const commit = { name: 'p50 of them', value: percentile(slices, 0.5) };
      return [
        rowUnder(`send-qr, the box's ${PUSHES_OF_BOX}th, p50`, 'ms', percentile(late, 0.5), against, 20),
        rowUnder(`a slice of pruning ${ORDERS} orders, p99`, 'ms', percentile(slices, 0.99), commit, 20),
      ];
    } finally {
      await fixture.close();
    }
  },
};

async function pushesMs(fixture: Fixture, prepare?: (dataDir: string) => Promise<void>): Promise<number[]> {
  const pair = await startPair(fixture, { prepare });
  const shop = new Shop(pair.baseUrl);
  await shop.login();
  const took: number[] = [];
  for (let n = 0; n < WARM_UP + SAMPLES; n += 1) {
    const body = await shop.prepare();
    const startedMs = performance.now();
    await shop.send(body);
    if (n >= WARM_UP) took.push(performance.now() - startedMs);
  }
  return took;
}

/** Duration of each pruning slice, commit included. */
async function sliceMs(dataDir: string): Promise<number[]> {
  await fill(dataDir, systemClock.wallMs() - OLD_MS);
  const store = await openStore({ dataDir }, log);
  const took: number[] = [];
  const slices = store.prune(systemClock.wallMs());
  while (took.length < SLICES) {
    const startedMs = performance.now();
    if ((await slices.next()).done) break;
    took.push(performance.now() - startedMs);
  }
  await store.close();
  return took;
}

/** A store with finished orders and pushes of this time. */
async function fill(dataDir: string, atMs: number): Promise<void> {
  await (await openStore({ dataDir }, log)).close();
  const db = new Kysely<unknown>({ dialect: sqliteFile(join(dataDir, 'gateway.sqlite'), log).dialect });
  const { bankAccount, bankCode } = DEMO.account;
  const box = DEMO.box.terminalCode;
  // As random as real ids, because that decides how many pages each row touches.
  const id = (i: string, kind: string) => sql.raw(`${kind} || substr(paybox_checksum(${kind} || ${i}), 1, 16)`);
  await sql`
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${ORDERS})
    insert into orders (id, seq, partner, order_id, bank_account, bank_code, user_bank_name, amount, content, trans_type,
      qr_code, terminal_code, sub_terminal_code, service_code, sign, url_link, status, created_at_ms, updated_at_ms)
    select ${id('i', "'o'")}, i, 'demo', 'OLD' || i, ${bankAccount}, ${bankCode}, '', 1000 + i, 'OLD' || i, 'C',
      'qr' || i, ${box}, '', '', '', '', 'expired', ${atMs}, ${atMs} from n`.execute(db);
  await sql`
    with recursive n(i) as (select 1 union all select i + 1 from n where i < ${PUSHES_OF_BOX})
    insert into pushes (id, seq, order_ref, terminal_code, status, created_at_ms, expires_at_ms, confirmed_at_ms, ended_at_ms)
    select ${id('i', "'p'")}, i, ${id('i', "'o'")}, ${box}, 'ended', ${atMs}, ${atMs + 1000}, ${atMs}, ${atMs + 1000} from n`.execute(
    db,
  );
  await db.destroy();
}
