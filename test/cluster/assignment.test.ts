import { describe, expect, it } from 'vitest';
import { assignShards } from '../../src/gateway/cluster/assignment.ts';

/** Shards and members of clusters in which few shards move. */
const SIZES = [
  [16, 3],
  [64, 10],
  [256, 10],
  [1024, 10],
  [1024, 100],
] as const;

describe('assignShards', () => {
  it.each([...SIZES, [1, 1], [1, 5], [16, 16], [7, 1]] as const)(
    'assigns each of %i shards to one of %i members, and to none more than its share',
    (shards, members) => {
      const ids = idsOf(members);
      const holders = assignShards(shards, ids);
      expect(holders).toHaveLength(shards);
      for (const holder of holders) expect(ids).toContain(holder);
      const most = Math.max(...ids.map((id) => holders.filter((it) => it === id).length));
      expect(most).toBeLessThanOrEqual(Math.ceil(shards / members));
    },
  );

  it('assigns no shard without members', () => {
    expect(assignShards(16, [])).toEqual([]);
  });

  it('assigns shards by the members alone, not by their order or by who asked before', () => {
    const ids = idsOf(10);
    const holders = assignShards(64, ids);
    assignShards(8, ids);
    assignShards(128, idsOf(12));
    expect(assignShards(64, ids.toReversed())).toEqual(holders);
    expect(assignShards(64, [...ids.slice(3), ...ids.slice(0, 3)])).toEqual(holders);
  });

  it('assigns former members their shards again after many others', () => {
    const ids = idsOf(10);
    const holders = assignShards(4, ids);
    for (let run = 0; run < 300; run += 1) assignShards(4, idsOf(10, `run ${run}`));
    expect(assignShards(4, ids)).toEqual(holders);
  });

  /**
   * A shard of the member that leaves goes to another; where that is full thereby, a later shard of it must go on, and so on. Each link of this
   * chain meets a full member with at most the share `f` that is full in the end, so a chain has at most 1 / (1 - f) links
   * on average, for shards / members of them.
   */
  it.each(SIZES)('moves few of %i shards when one of %i members leaves, or comes', (shards, members) => {
    const ids = idsOf(members);
    const all = assignShards(shards, ids);
    const share = Math.ceil(shards / members);
    const full = ids.filter((id) => all.filter((it) => it === id).length === share).length / members;
    const leaving = ids.filter((_, i) => i % Math.ceil(members / 10) === 0);
    const moved = leaving.map((id) => {
      const others = ids.filter((it) => it !== id);
      const without = assignShards(shards, others);
      return all.filter((holder, shard) => holder !== without[shard]).length;
    });
    const mean = moved.reduce((sum, it) => sum + it, 0) / moved.length;
    expect(mean).toBeLessThan(shards / members / (1 - full));
    expect(mean).toBeLessThan((2.5 * shards) / members);
    expect(Math.max(...moved)).toBeLessThan((4 * shards) / members);
  });

  /** The share is then a whole number, everybody has it, and with one member less it is one more: what was pushed away comes home. */
  it.each([
    [300, 100],
    [100, 100],
  ])('moves under half of %i shards even where all of %i members are full', (shards, members) => {
    const ids = idsOf(members);
    const all = assignShards(shards, ids);
    const without = assignShards(shards, ids.slice(1));
    expect(all.filter((holder, shard) => holder !== without[shard]).length).toBeLessThan(shards / 2);
  });
});

function idsOf(count: number, name = 'member'): string[] {
  return Array.from({ length: count }, (_, i) => `${name}-${i}`).sort();
}
