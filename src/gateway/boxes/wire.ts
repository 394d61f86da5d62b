import type { Connect } from './connection.ts';
import type { Hub } from './hub.ts';
import type { MessageSigner } from './message-signer.ts';

/** The parts by which a transport connects boxes and hub. */
export interface BoxWire {
  hub: BoxHub;
  connect: Connect;
  signer: MessageSigner;
}

/** The part of the hub that the transports use. */
export type BoxHub = Pick<Hub, 'session' | 'receive' | 'disconnected' | 'move' | 'news'>;

/** Takes what boxes say in one lane of the broker. */
export type LaneHub = Pick<Hub, 'receive' | 'disconnected' | 'move'>;
