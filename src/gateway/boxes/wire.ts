import type { Connect } from './connection.ts';
import type { Hub } from './hub.ts';
import type { MessageSigner } from './message-signer.ts';

/** A transport brings boxes and hub together by these. */
export interface BoxWire {
  hub: BoxHub;
  connect: Connect;
  signer: MessageSigner;
}

/** The hub, as the transports use it. */
export type BoxHub = Pick<Hub, 'session' | 'receive' | 'disconnected' | 'news'>;
