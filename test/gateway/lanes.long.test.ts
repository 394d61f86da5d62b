import { it } from 'vitest';
import { goneAndBack } from './lane-doors.ts';

it.each(['nats', 'rabbitmq'] as const)(
  'SHA-2 over %s boxes of a gateway that is gone are sent on from its lane, until it is back there',
  goneAndBack,
);
