/** Who the box is that is judged, and what both sides know. */
export interface JudgedIdentity {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

/** One connection of a box. */
export interface Connection {
  readonly transport: 'mqtt' | 'http';
  /** What a hello on it answers (PROTOCOL.md, clause SIG-2). */
  readonly challenge: string;
  /** The session that the connection itself names; undefined while it has not. */
  readonly sessionId: string | undefined;
  readonly isOpen: boolean;
  deliver(bytes: string | Uint8Array): void;
}

/** Something that a box did against a clause, seen by whoever speaks to it. */
export interface Violation {
  clause: string;
  what: string;
}

/** Somebody at the door. */
export interface LoginAttempt {
  transport: 'mqtt' | 'http';
  username: string;
  /** Why it was not let in. */
  problem: string | undefined;
}

/** What became of a message. `again`: it was taken before. */
export type MessageResult = 'taken' | 'again' | 'illegal';

/** Who hears what comes in over a transport. */
export interface EndpointEvents {
  login(login: LoginAttempt): void;
  message(connection: Connection, bytes: Uint8Array): MessageResult;
  violation(clause: string, what: string): void;
}

/** Where a gateway listens; port 0 takes a free one. */
export interface ListenAddress {
  host: string;
  port: number;
}

/** A gateway's end of one transport. */
export interface GatewayEndpoint {
  readonly port: number;
  /** Connections that there were, whatever they were for. */
  readonly connectionCount: number;
  /** Ends every connection without a word. */
  cut(): void;
  /** A new run of the gateway: what was said to the run before counts no more. */
  restart(): Promise<void>;
  close(): Promise<void>;
}
