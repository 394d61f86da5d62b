/** Declares the memory of the broker. The module's own declarations name an export that a CommonJS module lacks. */
declare module 'aedes-persistence' {
  import type { Readable } from 'node:stream';
  import type { AedesPublishPacket } from 'aedes';

  export interface Persistence {
    /** An empty payload deletes the retained message of its topic. */
    storeRetained(packet: AedesPublishPacket): Promise<void>;
    /** Streams the retained messages under any of these filters, filter by filter. */
    createRetainedStreamCombi(filters: string[]): Readable;
  }
  export default function memory(): Persistence;
}
