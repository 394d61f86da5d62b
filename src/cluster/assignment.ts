import { createHash } from 'node:crypto';

/** How much a member wants a shard: the same on every member, and different for every pair. */
function weightOf(member: string, shard: number): number {
  return createHash('sha256').update(`${member}/${shard}`).digest().readUIntBE(0, 6);
}

/**
 * Which member runs which shard, by shard: rendezvous hashing in which nobody gets more than its share, so that members
 * who see the same cluster decide alike, and few shards move when one comes or goes. Empty without members.
 */
export function assignShards(shards: number, members: readonly string[]): string[] {
  const room = new Map(members.map((member) => [member, Math.ceil(shards / members.length)]));
  const holders: string[] = [];
  for (let shard = 0; shard < shards && room.size > 0; shard += 1) {
    let best = '';
    let bestWeight = -1;
    for (const member of room.keys()) {
      const weight = weightOf(member, shard);
      if (weight > bestWeight) [best, bestWeight] = [member, weight];
    }
    holders.push(best);
    const left = (room.get(best) ?? 1) - 1;
    if (left === 0) room.delete(best);
    else room.set(best, left);
  }
  return holders;
}
