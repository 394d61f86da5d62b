import { createHash } from 'node:crypto';

/** The weights of this many members are stored: more than a cluster has, with some that have left. */
const KEPT_MEMBERS_MAX = 2_048;
/** Hashing a thousand members and a thousand shards takes over a second, and a member needs this at every beat. */
const kept = new Map<string, readonly number[]>();

/** Returns how strongly a member wants each shard. The weights are the same on every member. */
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
 * Returns which member runs which shard, by rendezvous hashing with a limit: no member gets more than its share. So
 * members that see the same cluster decide the same, and few shards move when a member comes or goes. If two members
 * want a shard equally, the first one gets it. Callers must pass the members in the same order. Empty without members.
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
