import type { DownMessage } from '../../protocol/messages.ts';

/** What a box may leave unread of what it is sent; one byte more ends its connection. */
export const UNREAD_BYTES_MAX = 1_048_576;

/** How one connected box is reached, whatever the transport. */
export interface BoxConnection {
  readonly transport: 'mqtt' | 'http';
  /** Hands a message to the transport; a line that is gone drops it, and the hub hears of that by itself. */
  send(message: DownMessage): void;
  /** Ends the connection where the line has one of its own. */
  end(): void;
}
