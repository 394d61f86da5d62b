import { expect, it } from 'vitest';
import { activeOrder } from '../../src/device/box/state.ts';
import { uuid } from './samples.ts';
import { play, showing } from './support.ts';

it('AGT-2 a push that was on the screen is not refused because its display fails later', () => {
  const dark = play(showing(), [{ type: 'draw-failed', pushId: uuid(1), reason: 'cable out' }]);
  expect(dark.sends).toEqual([]);
  expect(dark.writes).toEqual([]);
  expect(activeOrder(dark.state.stage)?.order.pushId).toBe(uuid(1));
});
