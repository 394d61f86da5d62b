import { z } from 'zod';

/** `account-unknown` and `too-old`: it is kept, and nobody gets a payment. */
export const creditResult = z.enum(['duplicate', 'paid', 'unmatched', 'account-unknown', 'too-old']);
export type CreditResult = z.output<typeof creditResult>;

/** A credit as a source told it, on its way between the shards of a cluster. */
export const toldCredit = z.object({
  source: z.string(),
  credit: z.object({
    ...{ sourceId: z.string(), reference: z.string(), bankAccount: z.string(), virtualAccount: z.string() },
    ...{ amount: z.int().min(1), text: z.string() },
    bankTimeMs: z
      .number()
      .nullable()
      .transform((it) => it ?? undefined),
    listed: z.enum(['told', 'missed']).exactOptional(),
    orderCode: z.int().exactOptional(),
    code: z.string().exactOptional(),
  }),
  caughtUp: z.boolean(),
});
export type ToldCredit = z.output<typeof toldCredit>;

/** `route`: shard 0 finds the shard of its account; `store`: that shard stores it. */
export const creditTask = z.enum(['route', 'store']);
export type CreditTask = z.output<typeof creditTask>;

/** Has a shard do this with a credit. Settles once the credit is stored durably; rejects when that is not known. */
export type CreditToShard = (shard: number, task: CreditTask, told: ToldCredit) => Promise<CreditResult>;
