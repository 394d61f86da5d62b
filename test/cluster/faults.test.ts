import { describe, expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { ordered, standing, twoGateways } from './faults-fixture.ts';
import { generate } from './gateways.ts';

describe.skipIf(missing)(`ordered faults at gateways of one database${note}`, () => {
  const open = twoGateways();

  it('SHA-8 a fault of all gateways happens as often as it was ordered, whichever gateway takes the calls', async () => {
    const { cluster, first, second } = await open();
    const id = await ordered(second, { fault: 'service-500', times: 3 });
    await eventually('the other to have it', async () => (await standing(first)).length === 1);
    for (const gateway of [first, second]) expect(await standing(gateway)).toMatchObject([{ id, happened: 0 }]);
    const statuses: number[] = [];
    for (let n = 0; n < 10; n += 1) {
      const before = statuses.filter((it) => it === 500).length;
      statuses.push(await generate(n % 2 === 0 ? first : second, cluster.accounts[n]?.bankAccount ?? ''));
      const after = statuses.filter((it) => it === 500).length;
      // Both have heard of it, or have ended it.
      if (after > before) {
        await eventually('both to know', async () => {
          const each = await Promise.all([standing(first), standing(second)]);
          return each.every((it) => (after === 3 ? it.length === 0 : it[0]?.happened === after));
        });
      }
    }
    expect(statuses).toEqual([500, 500, 500, ...Array.from({ length: 7 }, () => 200)]);
    expect(await standing(first)).toEqual([]);
  });
});
