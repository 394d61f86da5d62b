import { PassThrough } from 'node:stream';
import type { Clock } from '../../src/lib/clock.ts';
import { createLogger } from '../../src/lib/log.ts';
import { withoutDisks } from '../support/disk.ts';

export const memory = withoutDisks('memory');
export const quiet = (clock: Clock) => createLogger(new PassThrough().resume(), clock, 'json');
