import type { TransportIo } from '../../src/agent/contract.ts';
import { decodeDown, encode } from '../../src/protocol/codec.ts';

/** No seal at all: what goes over the wire is the message, so that tests of the wire can read and write it. */
export const NO_SEAL: TransportIo['seal'] = {
  seal: (message) => encode(message),
  open: (bytes) => {
    const decoded = decodeDown(bytes);
    return decoded.ok ? decoded : { ...decoded, code: 'MESSAGE_ILLEGAL' };
  },
};
