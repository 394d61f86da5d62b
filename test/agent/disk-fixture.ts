import type { Clock } from '../../src/lib/clock.ts';
import { withoutDisks } from '../support/disk.ts';
import { quietLog } from '../support/kept-log.ts';

export const memory = withoutDisks('memory');
export const quiet = (clock: Clock) => quietLog(clock);
