import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { parseJson } from '../../lib/http-client.ts';
import { type CreditResult, type CreditToShard, creditResult, creditTask, toldCredit } from '../common/told-credit.ts';
import { askWhileItMoves, type Peers } from './peers.ts';
import type { RunningShard, Shards } from './shards.ts';

/** Members send each other credits at this path. Nobody else can use it. */
export const CREDIT_PATH = '/cluster/credits';

const sent = z.object({ task: creditTask, told: toldCredit });
const answered = z.object({ result: creditResult });

interface CarrierDeps {
  clock: Clock;
  shards: Shards;
  peers: Peers;
}

/** Returns the function that sends a credit to its shard. It waits for a shard that is moving. */
export function carryCredits({ clock, shards, peers }: CarrierDeps): CreditToShard {
  return async (index, task, told) => {
    const { credit } = told;
    // JSON would omit an undefined value.
    const body = JSON.stringify({
      task,
      told: { ...told, credit: { ...credit, bankTimeMs: credit.bankTimeMs ?? null } },
    });
    const result = await askWhileItMoves(clock, async () => {
      const shard = shards.get(index, false);
      if (shard !== undefined) return takeCredit(shard, Buffer.from(body));
      const part = await peers.post(index, CREDIT_PATH, body);
      if (part !== undefined && part.status !== 200) {
        throw new Error(`shard ${index} has not stored the credit: HTTP ${part.status}`);
      }
      return part && answered.parse(parseJson(part.body)).result;
    });
    if (result === undefined) throw new Error(`no gateway runs shard ${index} now`);
    return result;
  };
}

/** Makes a shard of this member do the task with a credit. Rejects when the credit may not be stored. */
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
