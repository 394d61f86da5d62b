import { createHash } from 'node:crypto';

/** Members whose weights are kept: more than a cluster has, and those that came and went. */
const KEPT_MEMBERS_MAX = 2_048;
/** Hashing a thousand members and a thousand shards takes over a second, and a member asks at every beat. */
const kept = new Map<string, readonly number[]>();

/** How much a member wants each shard: the same on every member, and different for every pair. */
function weightsOf(member: string, shards: number): readonly number[] {
  const known = kept.get(member);
  if (known !== undefined && known.length >= shards) return known;
  const weights = Array.from({ length: shards }, (_, shard) =>
    createHash('sha256').update(`${member}/${shard}`).digest().readUIntBE(0, 6),
  );
  const [oldest] = kept.keys();
  if (kept.size >= KEPT_MEMBERS_MAX && oldest !== undefined) kept.delete(oldest);
  kept.set(member, weights);
  return weights;
}

/**
 * Which member runs which shard, by shard: rendezvous hashing in which nobody gets more than its share, so that members
 * who see the same cluster decide alike, and few shards move when one comes or goes. Of members that want a shard
 * alike, the first gets it: callers name them in the same order. Empty without members.
 */
export function assignShards(shards: number, members: readonly string[]): string[] {
  const room = new Map(members.map((member) => [member, Math.ceil(shards / members.length)]));
  const wishes = new Map(members.map((member) => [member, weightsOf(member, shards)]));
  const holders: string[] = [];
  for (let shard = 0; shard < shards && room.size > 0; shard += 1) {
    let best = '';
    let bestWeight = -1;
    for (const member of room.keys()) {
      const weight = wishes.get(member)?.[shard] ?? 0;
      if (weight > bestWeight) [best, bestWeight] = [member, weight];
    }
    holders.push(best);
    const left = (room.get(best) ?? 1) - 1;
    if (left === 0) room.delete(best);
    else room.set(best, left);
  }
  return holders;
}
