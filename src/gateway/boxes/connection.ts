import type { DownMessage } from '../../protocol/messages.ts';
import type { World } from '../common/world.ts';
import type { MessageSigner } from './message-signer.ts';

/** The transport's side of the connection to one box. */
export interface BoxSocket {
  readonly transport: string;
  /** Returns why nothing can be sent now, or undefined if sending is possible. */
  problem(): string | undefined;
  /** Sends the bytes of a signed message. A failure ends the connection, or is logged with `type`. */
  send(signed: string, type: DownMessage['type']): void;
  /** Ends the connection if only this box uses it. */
  end(): void;
}

/** A connection to one box over any transport. */
export interface BoxConnection {
  readonly transport: BoxSocket['transport'];
  /** Never throws: a message that cannot be sent is dropped. The transport reports a lost connection to the hub. */
  send(message: DownMessage): void;
  end(): void;
}

/** Makes the connection to a box from its socket. */
export type Connect = (terminalCode: string, socket: BoxSocket) => BoxConnection;

/**
 * Returns a function whose connections sign each message just before they send it, so that messages are sent in signing
 * order.
 */
export function signedConnections({ log }: World, signer: MessageSigner): Connect {
  return (terminalCode, socket) => ({
    transport: socket.transport,
    end: () => socket.end(),
    send: (message) => {
      const problem = socket.problem();
      const signed = problem === undefined ? signer.sign(terminalCode, message) : undefined;
      const reason = problem ?? 'its session is not known any more';
      if (signed !== undefined) socket.send(signed, message.type);
      else log.warn('message-not-sent', { box: terminalCode, type: message.type, reason });
    },
  });
}

/**
 * Returns the connection to end when a box has one too many, never one in use. `connections` are oldest first. It is
 * the oldest one of the address with the most connections, so that a stranger with the box's login ends his own.
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
