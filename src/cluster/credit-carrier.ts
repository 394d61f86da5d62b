import { z } from 'zod';
import { type CreditResult, type CreditToShard, creditResult, creditTask, toldCredit } from '../gateway/told-credit.ts';
import type { Clock } from '../lib/clock.ts';
import { systemCodeOf } from '../lib/errors.ts';
import { parseJson } from '../lib/http-client.ts';
import { NOT_HERE, type Peers, SHARD_LOOK_MS, SHARD_WAIT_MS } from './peers.ts';
import type { RunningShard, Shards } from './shards.ts';

/** Members send each other credits here; nobody else can. */
export const CREDIT_PATH = '/cluster/credits';

const sent = z.object({ task: creditTask, told: toldCredit });
const answered = z.object({ result: creditResult });

interface CarrierDeps {
  clock: Clock;
  shards: Pick<Shards, 'get'>;
  peers: Pick<Peers, 'post'>;
}

/** Carries credits to their shards; one that moves is waited for. */
export function carryCredits({ clock, shards, peers }: CarrierDeps): CreditToShard {
  return async (index, task, told) => {
    const untilMs = clock.monotonicMs() + SHARD_WAIT_MS;
    const { credit } = told;
    // JSON leaves undefined out.
    const body = JSON.stringify({
      task,
      told: { ...told, credit: { ...credit, bankTimeMs: credit.bankTimeMs ?? null } },
    });
    do {
      const shard = shards.get(index, false);
      if (shard !== undefined) return takeCredit(shard, Buffer.from(body));
      try {
        const part = await peers.post(index, CREDIT_PATH, body);
        if (part?.status === 200) return answered.parse(parseJson(part.body)).result;
        if (part !== undefined && part.status !== NOT_HERE) {
          throw new Error(`shard ${index} has not stored the credit: HTTP ${part.status}`);
        }
      } catch (error) {
        // Nobody has got it, so it may be sent again.
        if (systemCodeOf(error) !== 'ECONNREFUSED') throw error;
      }
      await clock.sleep(SHARD_LOOK_MS);
    } while (clock.monotonicMs() < untilMs);
    throw new Error(`no gateway runs shard ${index} now`);
  };
}

/** Has a shard of this member do what is asked with a credit. Rejects when it is not known to be stored. */
export async function takeCredit(shard: RunningShard, body: Buffer | undefined): Promise<CreditResult> {
  const { task, told } = sent.parse(parseJson(body ?? ''));
  const { takeCredit: take } = shard.gateway;
  if (take === undefined) throw new Error('no shard');
  shard.inHand += 1;
  try {
    return await take(task, told);
  } finally {
    shard.inHand -= 1;
  }
}
