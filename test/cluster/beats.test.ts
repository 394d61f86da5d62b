import { expect, it } from 'vitest';
import { Beats } from '../../src/gateway/cluster/beats.ts';
import type { GatewayRow, GatewayRows, View } from '../../src/gateway/cluster/gateway-rows.ts';
import type { DatabaseClock } from '../../src/gateway/store/engines/database-clock.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { only } from '../gateway/stage-records.ts';
import { keptLog } from '../support/kept-log.ts';

const row = (name: string): GatewayRow => ({ run: `run of ${name}`, name, file: '', alike: {} });

it('SHA-5 a gateway that has buried another one looks at once, because the doors of that one are free', async () => {
  const clock = new VirtualClock();
  const views: View[] = [];
  const buried = Promise.withResolvers<boolean>();
  const beats = new Beats({
    ...{ clock, log: keptLog().log, time: only<DatabaseClock>({}), own: row('a') },
    rows: only<GatewayRows>({
      beSeen: async () => true,
      view: async () => ({ gateways: [], gone: views.length === 0 ? [row('b')] : [], lanes: [] }),
      bury: () => buried.promise,
    }),
    state: () => ({ sessions: 0, served: true }),
    seen: async (view) => void views.push(view),
    unseen: () => undefined,
    superseded: () => undefined,
  });
  await beats.begin();
  await clock.advance(0);
  expect(views).toHaveLength(1);
  buried.resolve(true);
  await clock.advance(0);
  expect(views).toHaveLength(2);
  await beats.end();
});
