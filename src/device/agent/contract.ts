import type { z } from 'zod';
import type { Boot } from '../../lib/boot.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';
import type { UrlSchemes } from '../../lib/tls.ts';
import type { BoxName } from '../../protocol/fields.ts';
import type { DownMessage, DownOf, LinkedAccount, UpMessage } from '../../protocol/messages.ts';
import type { BoxSeal } from '../../protocol/seal.ts';
import type { Entry } from '../box/entry.ts';
import type { LinkPictures } from '../box/state.ts';
import type { StatusView } from '../box/view.ts';
import type { Frame } from '../display/contract.ts';
import type { QrShown } from '../display/render.ts';
import type { Scene } from '../scene.ts';
import type { VoiceStatus } from '../voice/voice.ts';

/** The box's identity and the secret that proves it. */
export interface BoxIdentity extends BoxName {
  secret: string;
}

/**
 * A message of the gateway, or of a transport that acts as the gateway. A push that a newer one replaced in the queue
 * arrives only as `overtaken`. With `linked` the gateway named the account, or a QR for linking one, within a session.
 * With `isOwnTime` the welcome has the time of the box's own calendar clock, because the peer sends none.
 */
export type InboundMessage =
  | Exclude<DownMessage, { type: 'welcome' }>
  | (DownOf<'welcome'> & { pictures?: LinkPictures; isOwnTime?: boolean })
  | { type: 'overtaken'; sessionId: string; pushId: string }
  | { type: 'linked'; sessionId: string; account: LinkedAccount | null; pictures: LinkPictures };

/**
 * One connection to the gateway, opened once and never reopened; the link owns redial and backoff.
 * `incoming` ends or throws when the connection is lost or the gateway has left.
 */
export interface Connection {
  readonly incoming: AsyncIterable<InboundMessage>;
  /**
   * The time in milliseconds over which returning boxes spread their hellos, if the gateway asks for it (PROTOCOL.md,
   * clause PRE-6).
   */
  readonly spreadMs?: number;
  /** Settles once the peer has the message; throws a PayboxError when it cannot be sent. */
  send(message: UpMessage): Promise<void>;
  /** Says goodbye and ends `incoming`; safe to call twice. */
  close(): Promise<void>;
}

/** The part of a box that outlives its program. */
export interface BoxMemory {
  /** Stores a text that survives a restart. While the disk fails, the text stays in memory. Neither method throws. */
  memory: { read(): Promise<string | undefined>; write(text: string): Promise<void> };
  /** The boot of the machine. It shows the transport whether times of an earlier run still count. */
  boot: Boot;
}

/** The box as a transport sees it that plays the gateway's part. */
export interface BoxSide extends BoxMemory {
  /** Returns the order that has the screen, or has it back after a payment. */
  showing(): { pushId: string; amount: number; qrCode: string } | undefined;
  /** Settles once the box has stored and processed every message that the link has received. */
  processed(): Promise<void>;
}

/** A box that logs in at a gateway. */
export interface LoginIo {
  clock: Clock;
  identity: BoxIdentity;
  /** A fresh UUID for each session (PROTOCOL.md, clause MSG-4). */
  sessionId: string;
}

/** One session of a box, for a transport that only carries messages. */
export interface SessionIo extends LoginIo {
  log: Logger;
  /** The lane in which the box says hello; a transport without topics has no use for it (PROTOCOL.md, clause SHA-2). */
  lane: number;
  /**
   * Reports that this lane does not exist. Returns whether the connection must end then (PROTOCOL.md, clause SHA-3).
   */
  noLane(): boolean;
  /** Signs what this session sends, and verifies what it receives. */
  seal: { seal: BoxSeal['seal']; open: BoxSeal['open'] };
  /**
   * Receives the gateway's answer to this heartbeat, with the interval of the next ones (PROTOCOL.md, clause MSG-11).
   */
  heard(aliveId: string, aliveMs?: number): void;
}

/** One session of a box, for a transport that may play the gateway's part. */
export interface TransportIo extends SessionIo {
  box: BoxSide;
}

/** The TLS files of a link, in PEM. */
export interface LinkTls {
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  servername?: string | undefined;
}

/** Options that every transport has. */
export interface GatewayAddress {
  url: string;
  tls?: LinkTls | undefined;
  /** True if an address beyond this machine may be without TLS. */
  allowPlain?: boolean | undefined;
}

/** Names the address of a gateway. A missing broker address means the gateway's host and the usual port. */
export interface GatewayPlace {
  origin: string;
  brokerPort?: number;
}

/** One kind of connection to a gateway: one file, and one line in the registry. */
export interface Transport<Options extends GatewayAddress> {
  /** The value of `link.transport` in the configuration. */
  readonly name: string;
  readonly summary: string;
  readonly schemes: UrlSchemes;
  /** True if `link.url` is the gateway's HTTP origin, so that a box can enrol there. */
  readonly canEnrol: boolean;
  /**
   * Set if the peer is another service: the box logs in by options of the transport and has no secret. `fromFiles`
   * lists the secret options, whose value may come from a file; the option for the file has the suffix `File`. `boot`
   * has the options in the `link` of a boot file, beside which there is no other file.
   */
  readonly ownLogin?: { readonly fromFiles: readonly string[]; readonly boot: z.ZodRawShape };
  readonly options: z.ZodType<Options>;
  readonly example: Options;
  /** Returns the address that boxes use for a gateway at this place. */
  urlOf(place: GatewayPlace): string;
  /**
   * Logs in as the box and returns the result in words. It sends no hello, so a running agent keeps its session.
   * Throws when the login is refused or the gateway does not answer.
   */
  checkLogin(options: Options, io: LoginIo, signal: AbortSignal): Promise<string>;
  /** Opens a connection. Throws a PayboxError, which is retryable when the gateway may come back. */
  open(options: Options, io: TransportIo, signal: AbortSignal): Promise<Connection>;
  /** Opens connections with little memory, for thousands of boxes in one process. Only some transports have it. */
  openLight?(clock: Clock): Promise<LightOpener<Options>>;
}

/** Opens the connections of light boxes. Close it after them. */
export interface LightOpener<Options> {
  /**
   * Opens a connection. Throws as `Transport.open` does, and ConfigError for an address that light boxes cannot use.
   */
  open(options: Options, io: SessionIo, signal: AbortSignal): Promise<Connection>;
  close(): void;
}

/** The box's durable memory (house rule 2). */
export interface Journal {
  /** Returns all entries in the order in which they were written. */
  load(): Entry[];
  /**
   * Settles once the entries are on disk, all or none. It skips an entry that is already there. An empty list only
   * tests whether the disk accepts writes. Throws a PayboxError with code STORAGE_FAULT.
   */
  append(entries: readonly Entry[]): Promise<void>;
  /** Tries to open the journal again after a failure. Returns entries that `load` has not returned, each once. */
  reopen(): Entry[];
  status(): JournalStatus;
  close(): void;
}

export interface JournalStatus {
  /** True if the last attempt to write has worked. */
  ok: boolean;
  /** The reason of the failure. */
  reason: string | null;
  /**
   * True if everything that earlier runs wrote is known. False for a new box, while the file cannot be read, and while
   * a set-aside file lies beside it.
   */
  complete: boolean;
  /** The names of set-aside journals in the data folder (damaged, another box's, another version's), oldest first. */
  setAside: string[];
}

/** The state of a configured display. */
export interface DisplayStatus {
  driver: string;
  ok: boolean;
  /** The reason of the failure; null when the display works. */
  reason: string | null;
  surface: string;
  /** How the QR on the display is drawn; null when it shows none. */
  qr: QrShown | null;
}

/** The keys of a box clear the screen, repeat the last payment, or show the last payments. */
export type Key = 'dismiss' | 'repeat' | 'history';

/** The state of an attached device: voice, light or buttons. */
export interface PeripheralStatus {
  ok: boolean;
  /** The problem and its fix. */
  reason: string | null;
}

/** The newest announcement for the page to play. Each announcement has a new `number`. */
export interface PageSound {
  number: number;
  text: string;
  wav: Uint8Array;
}

/** The box's answer at `/status`. */
export type BoxStatus = StatusView & {
  display: DisplayStatus;
  displays: DisplayStatus[];
  /** Null for a box without a voice. */
  voice: VoiceStatus | null;
  light: PeripheralStatus | null;
  buttons: PeripheralStatus | null;
  /** The state of the journal. `unwritten` counts entries that wait in memory until the disk works again. */
  journal: JournalStatus & { unwritten: number };
  /**
   * The state of the link. With `plain` the connection has no TLS, so others on the network can read and change
   * messages.
   */
  link: { transport: string; gateway: string; plain: boolean; connectedAt: string | null; reason: string | null };
  version: string;
};

/** The interface of the box for its pages, its keys and the service manager. */
export interface BoxApi {
  status(): BoxStatus;
  scene(): Scene;
  /**
   * Returns the newest frame on the first display; undefined before the first one, and while the display has failed.
   */
  frame(): Frame | undefined;
  /** Calls `listener` after every change of scene, frame or status. The returned function removes it. */
  onChange(listener: () => void): () => void;
  press(key: Key): void;
  /** Returns the last announcement for the page to play; undefined when there is none. */
  sound(): PageSound | undefined;
  /** Returns the metrics in the Prometheus text format. */
  metrics(): string;
}
