import type { DownMessage } from '../../protocol/messages.ts';

/** How one connected box is reached, whatever the transport. */
export interface Line {
  readonly transport: 'mqtt' | 'http';
  /** Hands a message to the transport; a line that is gone drops it, and the hub hears of that by itself. */
  send(message: DownMessage): void;
  /** Ends the connection where the line has one of its own. */
  end(): void;
}
