import { describe, expect, it } from 'vitest';
import { shardOf } from '../../src/gateway/common/shard.ts';
import { missing, note } from '../support/stores.ts';
import { ordered, SHARDS, standing, twoMembers } from './faults-fixture.ts';
import { accountIn, shardsOf } from './members.ts';

const SECONDS_MAX = 3_600;

describe.skipIf(missing)(`ordered faults in a cluster${note}`, () => {
  const open = twoMembers();

  it('SHA-8 a fault that names a box is ordered in its shard alone; any member ends one or all', async () => {
    const { cluster, first, second } = await open();
    const [box] = cluster.boxes;
    const home = shardOf(box?.account ?? '', SHARDS);
    const ofBox = await ordered(first, { fault: 'push-lost', box: box?.terminalCode, times: 2 });
    const ofAll = await ordered(second, { fault: 'clock-skew', seconds: SECONDS_MAX });
    const listed = await standing(second);
    expect(new Set(listed.map((it) => it.id))).toEqual(new Set([ofBox, ofAll]));
    expect(listed.find((it) => it.id === ofAll)).toMatchObject({ happened: 1 });
    for (let shard = 0; shard < SHARDS; shard += 1) {
      const ids = (await standing(first, `?shard=${shard}`)).map((it) => it.id);
      expect(ids.includes(ofBox)).toBe(shard === home);
      expect(ids.includes(ofAll)).toBe(true);
    }
    expect((await second.admin(`/_mock/faults/${ofBox}`, 'DELETE')).status).toBe(204);
    expect((await second.admin(`/_mock/faults/${ofBox}`, 'DELETE')).status).toBe(404);
    expect(await standing(first)).toMatchObject([{ id: ofAll }]);
    expect((await first.admin('/_mock/faults', 'DELETE')).status).toBe(204);
    expect(await standing(second)).toEqual([]);
    const unknown = await first.admin('/_mock/faults', 'POST', { fault: 'push-lost', box: 'VVB999999' });
    expect(unknown).toMatchObject({ status: 400, body: { message: 'E35' } });
    expect(await first.admin('/_mock/faults', 'POST', { fault: 'none' })).toMatchObject({ status: 400 });
  });

  it('SHA-8 a shard that moves has no faults any more, as after a restart; the others keep theirs', async () => {
    const { cluster, first, second } = await open();
    const stays = await shardsOf(first);
    const moves = await shardsOf(second);
    const boxIn = (shards: readonly number[]) =>
      cluster.boxes.find((it) => it.account === accountIn(cluster, shards))?.terminalCode;
    const kept = await ordered(second, { fault: 'push-lost', box: boxIn(stays), times: 2 });
    const ended = await ordered(first, { fault: 'push-lost', box: boxIn(moves), times: 2 });
    await second.close();
    await cluster.whole([first]);
    const ids = (await standing(first)).map((it) => it.id);
    expect(ids).toContain(kept);
    expect(ids).not.toContain(ended);
  });
});
