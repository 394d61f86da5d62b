import type { ClientBase } from 'pg';
import { z } from 'zod';
import { ConfigError } from '../../../lib/errors.ts';
import type { EarlierShard } from './earlier-shard.ts';

/** Settings of a run. The next start makes them again. */
const OF_A_RUN = ['holder', 'write-probe'];
/** The losses that an admin accepted. They are compared with marks in dataDir, and the marks of shards end. */
export const ACCEPTED_LOSSES = 'accepted-losses';
/** A payment that a member missed, for whoever opens the shard next. */
const MISSING_PAYMENT = 'missing-payment';
const TRUSTED_TIME = 'believed-time-ms';
/** Which payments were only tests, by their number. `copyPayments` writes it for the new numbers. */
export const PAYMENT_KINDS = 'payment-kinds';

/**
 * Copies the settings. Shard 0 had those of all: keys, the first hello of each box, kinds of sources, and how far their
 * lists were read. The trusted time is the latest of all shards. Throws ConfigError while a loss is not accepted.
 */
export async function copySettings(client: ClientBase, shards: readonly EarlierShard[]): Promise<void> {
  for (const [i, { schema }] of shards.entries()) {
    const { rows } = await client.query(`select 1 from ${schema}.settings where name = $1`, [MISSING_PAYMENT]);
    if (rows.length > 0) {
      const what = `${schema} lacks a payment that a gateway has acknowledged`;
      throw new ConfigError(what, 'let the earlier version find it again, or accept the loss, before the takeover');
    }
    if (i > 0) continue;
    await client.query(
      `insert into public.settings (name, value) select name, value from ${schema}.settings where name <> all($1)
         on conflict (name) do update set value = excluded.value`,
      [[...OF_A_RUN, ACCEPTED_LOSSES, PAYMENT_KINDS]],
    );
  }
  const times = shards.map(({ schema }) => `select value::bigint as ms from ${schema}.settings where name = $1`);
  await client.query(
    `insert into public.settings (name, value)
       select $1, max(ms)::text from (${times.join(' union all ')}) as times having max(ms) is not null
       on conflict (name) do update set value = excluded.value`,
    [TRUSTED_TIME],
  );
}

const changes = z.array(z.object({ kind: z.enum(['money', 'test']), afterSeq: z.int().min(0) }));
export type KindChange = z.infer<typeof changes>[number];

/** Returns the kinds of the payments of a shard, oldest first. Throws ConfigError when they cannot be read. */
export async function kindsOf(client: ClientBase, schema: string): Promise<KindChange[] | undefined> {
  const { rows } = await client.query<{ value: string }>(`select value from ${schema}.settings where name = $1`, [
    PAYMENT_KINDS,
  ]);
  const value = rows[0]?.value;
  if (value === undefined) return undefined;
  try {
    return changes.parse(JSON.parse(value));
  } catch {
    const what = `the setting ${PAYMENT_KINDS} of ${schema} is damaged: it is unknown which payments were tests`;
    throw new ConfigError(what, 'restore a backup');
  }
}
