import { z } from 'zod';

/** A credit with the result `account-unknown` or `too-old` is stored without a payment. */
export const creditResult = z.enum(['duplicate', 'paid', 'unmatched', 'account-unknown', 'too-old']);
export type CreditResult = z.output<typeof creditResult>;

/** A credit as a source reported it, on its way between the shards of a cluster. */
export const toldCredit = z.object({
  source: z.string(),
  credit: z.object({
    sourceId: z.string(),
    reference: z.string(),
    bankAccount: z.string(),
    virtualAccount: z.string(),
    amount: z.int().min(1),
    text: z.string(),
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

/** `route` means that shard 0 finds the shard of the account, `store` that the shard stores the credit. */
export const creditTask = z.enum(['route', 'store']);
export type CreditTask = z.output<typeof creditTask>;

/** Sends a credit to a shard with this task. Settles once the credit is stored durably. Rejects if that is unknown. */
export type CreditToShard = (shard: number, task: CreditTask, told: ToldCredit) => Promise<CreditResult>;
