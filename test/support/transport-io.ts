import { randomUUID } from 'node:crypto';
import type { TransportIo } from '../../src/device/agent/contract.ts';
import { UNKNOWN_BOOT } from '../../src/lib/boot.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { decodeDown, encode } from '../../src/protocol/codec.ts';
import { IDENTITY } from './fake-gateway.ts';
import { quietLog } from './kept-log.ts';

/** Sends messages unsigned, so that tests of a transport can read and write them. */
export const NO_SEAL: TransportIo['seal'] = {
  seal: (message) => encode(message),
  open: (bytes) => {
    const decoded = decodeDown(bytes);
    return decoded.ok ? decoded : { ...decoded, code: 'MESSAGE_ILLEGAL' };
  },
};

/** A box of which a transport that only carries messages asks nothing. */
export const NO_BOX: TransportIo['box'] = {
  memory: { read: async () => undefined, write: async () => undefined },
  showing: () => undefined,
  processed: async () => undefined,
  boot: UNKNOWN_BOOT,
};

/** What a transport gets from a box that asks nothing, in a session of its own. */
export const transportIo = (change: Partial<TransportIo> = {}): TransportIo => ({
  clock: systemClock,
  log: quietLog(),
  identity: IDENTITY,
  sessionId: randomUUID(),
  seal: NO_SEAL,
  lane: 0,
  heard: () => undefined,
  noLane: () => false,
  box: NO_BOX,
  ...change,
});
