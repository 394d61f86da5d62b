import type { Server } from 'node:net';
import type { Clock } from '../../../../lib/clock.ts';
import { ConfigError, reasonOf, systemCodeOf } from '../../../../lib/errors.ts';
import type { Random } from '../../../../lib/random.ts';
import { loginOf } from '../../../../protocol/keys.ts';
import type { DownOf } from '../../../../protocol/messages.ts';

/** The judged box. */
export interface JudgedIdentity {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

/** One connection of the box. */
export interface Connection {
  readonly transport: 'mqtt' | 'http';
  /** A hello on this connection must contain it (PROTOCOL.md, clause SIG-2). */
  readonly challenge: string;
  /** The session that the connection names; undefined before that. */
  readonly sessionId: string | undefined;
  readonly isOpen: boolean;
  deliver(bytes: string | Uint8Array): void;
}

/** The fields by which a welcome names the mode of its gateway; a service that has no modes leaves them out. */
export interface WelcomeMode {
  mode?: DownOf<'welcome'>['mode'];
  sandboxMark?: DownOf<'welcome'>['sandboxMark'];
}

/** Certificate and key of a server, PEM. `limits` replaces the TLS versions and ciphers. */
export interface TlsIdentity {
  cert: string;
  key: string;
  limits?: { minVersion: 'TLSv1' | 'TLSv1.2'; maxVersion: 'TLSv1.1' | 'TLSv1.2'; ciphers: string };
}

/** Identities of one gateway. A box may accept only the valid one. */
export interface TlsIdentities {
  /** The authority that the box must trust, PEM. */
  ca: string;
  valid: TlsIdentity;
  otherAuthority: TlsIdentity;
  expired: TlsIdentity;
  otherHost: TlsIdentity;
}

/** Everything that a peer of the bench needs to serve a box. */
export interface PeerWorld<Tls> {
  clock: Clock;
  random: Random;
  /** If undefined, the peer uses no TLS. */
  tls?: Tls | undefined;
}

/** Everything that one transport of a scripted gateway needs. */
export interface EndpointWorld extends PeerWorld<TlsIdentity> {
  events: EndpointEvents;
}

export interface LoginAttempt {
  transport: 'mqtt' | 'http';
  username: string;
  /** The reason of a refusal; undefined if it was accepted. */
  problem: string | undefined;
}

export type MessageResult = 'accepted' | 'duplicate' | 'illegal';

/** Events that an endpoint reports to its gateway. */
export interface EndpointEvents {
  login(login: LoginAttempt): void;
  message(connection: Connection, bytes: Uint8Array): MessageResult;
  violation(clause: string, what: string): void;
}

/** Address to listen on; port 0 takes a free one. */
export interface ListenAddress {
  host: string;
  port: number;
}

/** Gateway side of one transport. */
export interface GatewayEndpoint {
  readonly port: number;
  /** Number of connections so far, of any kind. */
  readonly connectionCount: number;
  /** Breaks every connection. */
  cut(): void;
  /** Simulates a restart of the gateway: earlier messages do not count any more. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Returns why a login is not that of the box (PROTOCOL.md, clause TOP-2); undefined if it is. */
export function loginProblem(identity: JudgedIdentity, username: string, password: string): string | undefined {
  const { terminalCode, secret } = identity;
  if (username !== terminalCode) return `it calls itself ${username || 'nothing'}, not ${terminalCode}`;
  return password === loginOf(secret) ? undefined : 'its password is not the one that the secret gives';
}

/** Opens a server, and returns its port. Throws ConfigError that names the option. */
export async function openServer(server: Server, { host, port }: ListenAddress, option: string): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (error) {
    if (systemCodeOf(error) === 'EADDRINUSE') {
      throw new ConfigError(`${option}: port ${port} is already in use on ${host}`, `choose another ${option}`);
    }
    const fix = 'name an address of this machine with --listen, and ports that may be opened';
    throw new ConfigError(`${option}: ${host}:${port} cannot be opened: ${reasonOf(error)}`, fix);
  }
  const address = server.address();
  return address === null || typeof address === 'string' ? port : address.port;
}
