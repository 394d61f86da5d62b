import { describe, expect, it, onTestFinished } from 'vitest';
import { seededRandom } from '../../src/lib/random.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { ClusterWorld } from './world.ts';
import { lateWrites } from './write-history.ts';

const { postgres, mosquitto, haproxy } = PROGRAMS;
const lacks = [postgres, mosquitto, haproxy].map(without);

it('the log of writes finds a run that writes after its burial, and callbacks of a run after those of another', () => {
  const write = (run: string, what = 'orders') => ({ run, what });
  const [buried, sent] = ['buried', 'callback_attempts'];
  expect(lateWrites([write('a'), write('b'), write('a'), write('a', buried), write('b', sent)])).toEqual([]);
  expect(lateWrites([write('a'), write('a', buried), write('b'), write('a')])).toEqual([
    'run a wrote to orders after it was buried',
  ]);
  expect(lateWrites([write('a', sent), write('b', sent), write('a', sent)])).toEqual([
    'run a recorded an attempt at a callback after b had',
  ]);
});

describe.skipIf(lacks.some(({ missing }) => missing))(
  `gateways of one database${lacks.map(({ note }) => note).join('')}`,
  () => {
    it('SHA-5 three gateways sell and pay as one does', async () => {
      const world = await ClusterWorld.open({ gateways: 3, accounts: 6, boxes: 12 });
      onTestFinished(() => world.close());
      try {
        await world.sell('quiet', { perAccount: 8, perSecond: 3 }, seededRandom(1));
        await world.judge();
        expect(world.tracker.problems).toEqual({ listed: [], omitted: 0 });
        expect(world.measured.answers).toEqual(new Map([['SUCCESS', 48]]));
        expect(world.measured.payments).toBeGreaterThan(10);
        expect((await world.writes()).length).toBeGreaterThan(world.measured.payments);
        expect(await world.lateWrites()).toEqual([]);
      } catch (error) {
        throw new Error(`${String(error)}\n${world.logs()}`, { cause: error });
      }
    }, 120_000);
  },
);
