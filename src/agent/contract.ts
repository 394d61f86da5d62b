import type { z } from 'zod';
import type { Entry } from '../box/entry.ts';
import type { StatusView } from '../box/view.ts';
import type { Frame } from '../display/contract.ts';
import type { QrScanCheck } from '../display/render.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/log.ts';
import type { DownMessage, UpMessage } from '../protocol/messages.ts';
import type { BoxSeal } from '../protocol/seal.ts';
import type { Scene } from '../scene.ts';

/** Who the box says it is, and the secret that proves it. */
export interface BoxIdentity {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

/** A message of the gateway; of a push that a newer one replaced while it waited, only that it was overtaken. */
export type InboundMessage = DownMessage | { type: 'overtaken'; sessionId: string; pushId: string };

/**
 * One connection to the gateway, opened once and spent; the link owns redial and backoff.
 * `incoming` ends, or throws, when the connection is lost or the gateway has left.
 */
export interface Connection {
  readonly incoming: AsyncIterable<InboundMessage>;
  /** Settles once the message is handed over to the peer; throws a PayboxError when it cannot be. */
  send(message: UpMessage): Promise<void>;
  /** Says goodbye and ends `incoming`; safe to call twice. */
  close(): Promise<void>;
}

export interface TransportIo {
  clock: Clock;
  log: Logger;
  identity: BoxIdentity;
  /** A fresh UUID for each session (PROTOCOL.md, clause MSG-4). */
  sessionId: string;
  /** Signs what is sent in this session, and checks what is received. */
  seal: Pick<BoxSeal, 'seal' | 'open'>;
  /** Called when the gateway has answered this sign of life (PROTOCOL.md, clause MSG-11). */
  heard(aliveId: string): void;
}

/** Files are PEM. */
export interface LinkTls {
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  servername?: string | undefined;
}

/** What the options of every transport have in common. */
export interface GatewayAddress {
  url: string;
  tls?: LinkTls | undefined;
  /** Whether the address may be without TLS beyond this machine. */
  allowPlain?: boolean | undefined;
}

/** Where a gateway listens; a broker that is left out has the gateway's host and the usual port. */
export interface GatewayPlace {
  origin: string;
  brokerPort?: number;
}

/** A way to reach the gateway: one file, and one line in the registry. */
export interface Transport<Options extends GatewayAddress> {
  /** As `link.transport` of the configuration has it. */
  readonly name: string;
  readonly summary: string;
  /** The schemes of its addresses, without a colon. */
  readonly schemes: readonly string[];
  /** Whether `link.url` is the gateway's own origin, so that a box can enrol there. */
  readonly canEnrol: boolean;
  readonly options: z.ZodType<Options>;
  readonly example: Options;
  /** The address for boxes of a gateway that listens there. */
  urlOf(place: GatewayPlace): string;
  /**
   * Logs in as the box, says no hello, so that an agent that runs keeps the box, and returns what it found in words.
   * Throws when the login is refused or the gateway is not there.
   */
  checkLogin(options: Options, io: LoginIo, signal: AbortSignal): Promise<string>;
  /** Throws a PayboxError: retryable when the gateway may come back. */
  open(options: Options, io: TransportIo, signal: AbortSignal): Promise<Connection>;
}

export type LoginIo = Pick<TransportIo, 'clock' | 'identity' | 'sessionId'>;

/** What the box must not forget (house rule 2). */
export interface Journal {
  /** Every entry in the order in which it was written. */
  load(): Entry[];
  /**
   * Settles once the entries are on disk, all or none; throws a PayboxError with code STORAGE_FAULT. One that is there
   * already is not written a second time; none at all is a question whether the disk could take one.
   */
  append(entries: readonly Entry[]): Promise<void>;
  /** Tries again where the disk has failed. Entries that came to light with that, which `load` has not given; once. */
  reopen(): Entry[];
  status(): JournalStatus;
  close(): void;
}

export interface JournalStatus {
  /** Whether it can be written, as far as the last attempt tells. */
  ok: boolean;
  /** Why not. */
  reason: string | null;
  /**
   * Whether all that earlier runs of the box wrote is known; not in a new box, nor while its file cannot be read or one
   * that was set aside lies beside it.
   */
  complete: boolean;
  /** Files in the data folder that were journals: damaged, another box's, or of another version. Oldest first. */
  setAside: string[];
}

/** What each configured display says of itself. */
export interface DisplayStatus {
  driver: string;
  ok: boolean;
  /** Why it is not ok. */
  reason: string | null;
  surface: string;
  /** How the QR that it shows now is drawn; null without one. */
  qr: Omit<Extract<QrScanCheck, { ok: true }>, 'ok'> | null;
}

/** Keys of a box: take away what is on the screen, say the last payment again, show the last payments. */
export type Key = 'dismiss' | 'repeat' | 'history';

/** How something that is attached does: a voice, a light, buttons. */
export interface PeripheralStatus {
  ok: boolean;
  /** What is wrong and what to do. */
  reason: string | null;
}

/** The newest announcement for a page to play; another number is another announcement. */
export interface PageSound {
  number: number;
  text: string;
  wav: Uint8Array;
}

/** `/status` of the box. */
export type BoxStatus = StatusView & {
  display: DisplayStatus;
  displays: DisplayStatus[];
  /** Null where none is configured. */
  voice: (PeripheralStatus & { driver: string; queued: number }) | null;
  light: PeripheralStatus | null;
  buttons: PeripheralStatus | null;
  /** `unwritten`: entries that wait in memory until the disk works again. */
  journal: JournalStatus & { unwritten: number };
  /** `plain`: what is said on it can be read and changed on the way, for want of TLS. */
  link: { transport: string; gateway: string; plain: boolean; connectedAt: string | null; reason: string | null };
  version: string;
};

/** What the box's pages, its keys and the service manager may ask of it. */
export interface BoxApi {
  status(): BoxStatus;
  scene(): Scene;
  /** The newest frame that is on the first display; undefined before the first one, and while the display has failed. */
  frame(): Frame | undefined;
  /** Calls back after every change of scene, frame or status, until the returned function is called. */
  onChange(listener: () => void): () => void;
  press(key: Key): void;
  /** What was last said through the page; undefined when the page has nothing to play. */
  sound(): PageSound | undefined;
  /** Prometheus text format. */
  metrics(): string;
}
