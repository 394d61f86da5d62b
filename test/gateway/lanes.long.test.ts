import { it } from 'vitest';
import { goneAndBack } from './lane-doors.ts';

it('SHA-2 over NATS boxes of a gateway that is gone are sent on from its lane, until it is back there', () =>
  goneAndBack('nats'));
