import type { Logger } from '../../lib/log.ts';
import type { DownMessage } from '../../protocol/messages.ts';
import type { MessageSigner } from './message-signer.ts';

/** How a transport reaches one box. */
export interface BoxSocket {
  readonly transport: 'mqtt' | 'http';
  /** Why nothing can be sent now; undefined if it can. */
  problem(): string | undefined;
  /** Sends the bytes of a signed message. A failure ends the connection, or is logged with the type of the message. */
  send(signed: string, type: DownMessage['type']): void;
  /** Ends the connection where the box has one of its own. */
  end(): void;
}

/** A connection to one box over which messages are sent, whatever the transport. */
export interface BoxConnection {
  readonly transport: BoxSocket['transport'];
  /** Never throws: a message that cannot be sent is dropped. The transport reports the lost connection to the hub. */
  send(message: DownMessage): void;
  end(): void;
}

/** Makes the connection to a box from its socket. */
export type Connect = (terminalCode: string, socket: BoxSocket) => BoxConnection;

/** Connections whose messages are signed just before they are sent, in the order in which they are sent. */
export function signedConnections({ signer, log }: { signer: MessageSigner; log: Logger }): Connect {
  return (terminalCode, socket) => ({
    transport: socket.transport,
    end: () => socket.end(),
    send: (message) => {
      const problem = socket.problem();
      const signed = problem === undefined ? signer.sign(terminalCode, message) : undefined;
      const reason = problem ?? 'its session is not known any more';
      if (signed !== undefined) socket.send(signed, message.type);
      else log.warn('message-unsent', { box: terminalCode, type: message.type, reason });
    },
  });
}

/**
 * Which connection to end when a box has one too many. `connections` are oldest first. It is the oldest one from the
 * address with most connections, so that a stranger with the box's login ends his own; never one that is in use.
 */
export function connectionToEvict<T>(
  connections: readonly T[],
  addressOf: (it: T) => string,
  isInUse: (it: T) => boolean,
): T | undefined {
  const idle = connections.filter((it) => !isInUse(it));
  const countOf = (it: T) => connections.filter((other) => addressOf(other) === addressOf(it)).length;
  const most = Math.max(...idle.map(countOf));
  return idle.find((it) => countOf(it) === most);
}
