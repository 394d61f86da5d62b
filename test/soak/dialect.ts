import { DIALECT_KINDS, playDialect } from '../kill/dialect.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { playLanes } from './lanes.ts';
import type { Soak } from './soak.ts';

/** Our box and our gateway in the public dialect, with connections cut and both killed; see test/kill. */
export const dialect: Soak = {
  name: 'dialect',
  unit: 'runs',
  amount: 500,
  run: (options) => {
    const { embedded, mosquitto } = DIALECT_KINDS;
    return playLanes(options, without(PROGRAMS.mosquitto).missing ? [embedded] : [embedded, mosquitto], playDialect);
  },
};
