import { describe, expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { ordered, SHARDS, standing, twoMembers } from './faults-fixture.ts';
import { accountIn, generate } from './members.ts';

describe.skipIf(missing)(`ordered faults in a cluster${note}`, () => {
  const open = twoMembers();

  it('SHA-8 a fault that names no box happens as often as ordered in all shards together, and is listed once', async () => {
    const { cluster, first, second } = await open();
    const id = await ordered(second, { fault: 'service-500', times: 3 });
    for (const member of [first, second]) expect(await standing(member)).toMatchObject([{ id, happened: 0 }]);
    const statuses: number[] = [];
    for (let n = 0; n < 10; n += 1) {
      const before = statuses.filter((it) => it === 500).length;
      const member = n % 2 === 0 ? first : second;
      statuses.push(await generate(member, accountIn(cluster, [n % SHARDS])));
      const after = statuses.filter((it) => it === 500).length;
      // Every shard has heard of it, or has ended it.
      if (after > before) {
        await eventually('all shards to know', async () => {
          const each = await Promise.all([0, 1, 2, 3].map((shard) => standing(first, `?shard=${shard}`)));
          return each.every((it) => (after === 3 ? it.length === 0 : it[0]?.happened === after));
        });
      }
    }
    expect(statuses).toEqual([500, 500, 500, ...Array.from({ length: 7 }, () => 200)]);
    expect(await standing(first)).toEqual([]);
  });
});
