/** What the broker keeps in memory. Its own declarations name an export that the module, which is CommonJS, lacks. */
declare module 'aedes-persistence' {
  import type { Readable } from 'node:stream';
  import type { AedesPublishPacket } from 'aedes';

  export interface Persistence {
    /** An empty payload deletes what is retained under its topic. */
    storeRetained(packet: AedesPublishPacket): Promise<void>;
    /** What is retained under the topics of any of these filters, filter by filter. */
    createRetainedStreamCombi(filters: string[]): Readable;
  }
  export default function memory(): Persistence;
}
