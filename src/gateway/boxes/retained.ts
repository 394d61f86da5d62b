import { Readable } from 'node:stream';
import type { AedesPublishPacket } from 'aedes';
import type { Persistence } from 'aedes-persistence';

const WILDCARD = /[+#]/;

/**
 * Has a broker's memory find what is retained by its topic, where the filters of a subscription name topics, as those of
 * boxes do. The memory itself holds every retained topic against every filter: with a presence of each box, boxes that
 * come back together would cost the square of their number. Filters with wildcards are left to it.
 */
export function retainedByTopic(memory: Persistence): Persistence {
  const retained = new Map<string, AedesPublishPacket>();
  const storeRetained = memory.storeRetained.bind(memory);
  const matching = memory.createRetainedStreamCombi.bind(memory);
  return Object.assign(memory, {
    storeRetained: (packet: AedesPublishPacket) => {
      if (packet.payload.length === 0) retained.delete(packet.topic);
      // Copied, as the broker goes on to write into the packet.
      else retained.set(packet.topic, { ...packet });
      return storeRetained(packet);
    },
    createRetainedStreamCombi: (filters: string[]) => {
      if (filters.some((filter) => WILDCARD.test(filter))) return matching(filters);
      return Readable.from(filters.flatMap((topic) => retained.get(topic) ?? []));
    },
  });
}
