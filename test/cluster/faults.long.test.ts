import { describe, expect, it } from 'vitest';
import { eventually } from '../support/net.ts';
import { missing, note } from '../support/stores.ts';
import { ordered, standing, twoGateways } from './faults-fixture.ts';

const SECONDS_MAX = 3_600;
const HEARD_MS_MAX = 1_000;

describe.skipIf(missing)(`ordered faults at gateways of one database${note}`, () => {
  const open = twoGateways();
  const ids = async (gateway: Parameters<typeof standing>[0]) => (await standing(gateway)).map((it) => it.id);

  it('SHA-8 a fault that is ordered at one gateway stands at all within 1 s; any gateway ends one or all', async () => {
    const { cluster, first, second } = await open();
    const [box] = cluster.boxes;
    const atMs = performance.now();
    const ofBox = await ordered(first, { fault: 'push-lost', box: box?.terminalCode, times: 2 });
    await eventually('the other to have it', async () => (await ids(second)).includes(ofBox));
    expect(performance.now() - atMs).toBeLessThan(HEARD_MS_MAX);
    const ofAll = await ordered(second, { fault: 'clock-skew', seconds: SECONDS_MAX });
    for (const gateway of [first, second]) {
      await eventually('both', async () => (await ids(gateway)).length === 2);
      expect(new Set(await ids(gateway))).toEqual(new Set([ofBox, ofAll]));
    }
    expect((await second.admin(`/_mock/faults/${ofBox}`, 'DELETE')).status).toBe(204);
    expect((await second.admin(`/_mock/faults/${ofBox}`, 'DELETE')).status).toBe(404);
    await eventually('its end everywhere', async () => (await ids(first)).join() === ofAll);
    expect((await first.admin('/_mock/faults', 'DELETE')).status).toBe(204);
    await eventually('the end of all', async () => (await ids(second)).length === 0);
    const unknown = await first.admin('/_mock/faults', 'POST', { fault: 'push-lost', box: 'VVB999999' });
    expect(unknown).toMatchObject({ status: 400, body: { message: 'E35' } });
    expect(await first.admin('/_mock/faults', 'POST', { fault: 'none' })).toMatchObject({ status: 400 });
  });
});
