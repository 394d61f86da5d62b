import { type ShardPlace, shardOf } from '../../src/gateway/common/shard.ts';
import { only } from './stage-records.ts';

const [COUNT_MIN, COUNT_MAX] = [8, 1_000];

/** The shard that the boxes of an account belong to. A test changes it. */
export interface MovingHome {
  account: string;
  home: number;
}

/**
 * The place of one shard in a cluster that grows and shrinks: it has always so many shards that the boxes of the account
 * belong to shard `home`.
 */
export function movingPlace(index: number, moving: MovingHome): ShardPlace {
  return only<ShardPlace>({
    index,
    get count() {
      return countFor(moving);
    },
  });
}

function countFor({ account, home }: MovingHome): number {
  for (let count = COUNT_MIN; count <= COUNT_MAX; count += 1) if (shardOf(account, count) === home) return count;
  throw new Error(`no number of shards up to ${COUNT_MAX} has ${account} in shard ${home}`);
}
