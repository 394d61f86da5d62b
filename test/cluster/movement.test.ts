import { describe, expect, it } from 'vitest';
import { BEAT_MS } from '../../src/gateway/cluster/beats.ts';
import { MEMBER_GONE_MS } from '../../src/gateway/store/engines/cluster-database.ts';
import { CLUSTER_EVENTS, ClusterModel } from './movement.ts';

const SIZE = { members: 10, shards: 32, boxes: 2_000 };
const SEEDS = [1, 2, 3];

describe('the model of a cluster', () => {
  it.each(CLUSTER_EVENTS.filter((it) => it !== 'an outage'))('is whole again when %s', (event) => {
    for (const seed of SEEDS) {
      const model = new ClusterModel(SIZE, seed);
      const moved = model.play(event);
      expect(model.unheld).toBe(0);
      expect(moved.opened).toBeGreaterThan(0);
      expect(moved).toMatchObject({ unanswered: 0 });
      // A push waits for 5 s, and a shard has a holder again within that.
      expect(moved.awayMsMax).toBeLessThan(5_000);
      expect(moved.wholeMs).toBeLessThan(MEMBER_GONE_MS + 7 * BEAT_MS);
      expect(moved.hellos).toBeGreaterThanOrEqual((moved.opened * SIZE.boxes) / SIZE.shards / 2);
      expect(moved.memberPeak).toBeLessThanOrEqual(moved.clusterPeak);
    }
  });

  it('the model of a cluster moves every box once or more in an update, and a tenth of them when a member joins', () => {
    const updated = new ClusterModel(SIZE, 1).play('all are updated');
    const joined = new ClusterModel(SIZE, 1).play('one joins');
    expect(updated.hellos).toBeGreaterThan(SIZE.boxes);
    expect(joined.hellos).toBeLessThan(SIZE.boxes / 2);
  });

  it('the model of a cluster finds a herd that is too large: boxes that get no answer in time', () => {
    const moved = new ClusterModel({ members: 3, shards: 6, boxes: 24_000 }, 1).play('one dies');
    expect(moved.unanswered).toBeGreaterThan(0);
    expect(moved.wholeMs).toBeLessThan(600_000);
  });

  it('PRE-6 the model of a cluster keeps boxes in their shards while all gateways are away, and answers all when they are back', () => {
    const moved = new ClusterModel(SIZE, 1).play('an outage');
    expect(moved).toMatchObject({ opened: 0, unanswered: 0 });
    expect(moved.wholeMs).toBeLessThan(30_000);
  });
});
