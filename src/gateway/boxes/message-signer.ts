import { equalSecrets } from '../../protocol/checksum.ts';
import { goneProofOf, type SigningKey, signingKeyOf } from '../../protocol/keys.ts';
import type { DownMessage, Presence, UpMessage } from '../../protocol/messages.ts';
import { GatewaySeal, type Opened, type ReadMessage, readUp, type SealRefusal } from '../../protocol/seal.ts';
import type { HelloOrder, OrderedHello } from '../common/place.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

/** How many sessions of one box can be verified: the one in use, and those of duplicate agents. */
const SESSIONS_PER_BOX_MAX = 8;
/**
 * How many keys of one box are remembered, one per start of its agent. They prevent an old hello from beginning a
 * session.
 */
const KEYS_PER_BOX_MAX = 1_000;
const SEED_BYTES = 32;
const SETTING = 'signing-key';

interface BoxKeys {
  secret: string;
  /** The version of the directory that had this secret. */
  version: number;
  /** Sessions by id, oldest first. */
  sessions: Map<string, SignedSession>;
  /** The time of the last hello of each signing key, by the box's own clock. The newest key is last. */
  helloMs: Map<string, number>;
}

interface SignedSession {
  seal: GatewaySeal;
  /** The challenge of the session's connection. Messages of the session are refused on other connections. */
  challenge: string;
  order: HelloOrder;
}

/** The part of the hub that names the session in use of each box. */
interface SessionsInUse {
  session(terminalCode: string): { sessionId: string } | undefined;
}

/**
 * Signs messages to boxes and verifies theirs, for all transports (PROTOCOL.md, clause SIG). The store holds the
 * signing key.
 */
export class MessageSigner {
  readonly #world: World;
  readonly #stored: Stored;
  readonly #hub: SessionsInUse;
  readonly #boxes = new Map<string, BoxKeys>();
  #key: SigningKey;

  private constructor(world: World, stored: Stored, hub: SessionsInUse, seed: string) {
    this.#world = world;
    this.#stored = stored;
    this.#hub = hub;
    this.#key = signingKeyOf(seed);
  }

  static async open(world: World, stored: Stored, hub: SessionsInUse): Promise<MessageSigner> {
    const seed = await stored.store.setting(SETTING, () => world.random.secret(SEED_BYTES));
    return new MessageSigner(world, stored, hub, seed);
  }

  /** Returns the thumbprint of the gateway's signing key. */
  get kid(): string {
    return this.#key.kid;
  }

  /** Replaces the signing key. Every session receives the new key with its next message. */
  async rotate(): Promise<void> {
    const seed = this.#world.random.secret(SEED_BYTES);
    await this.#stored.store.replaceSetting(SETTING, seed);
    this.#take(seed);
    void this.#world.place.tell({ about: 'signing-key' });
  }

  /** Reads the signing key that another gateway has stored. */
  async reload(): Promise<void> {
    this.#take(await this.#stored.store.setting(SETTING, () => this.#world.random.secret(SEED_BYTES)));
  }

  #take(seed: string): void {
    const { kid } = this.#key;
    this.#key = signingKeyOf(seed);
    if (kid !== this.kid) this.#world.log.info('signing-key-rotated', { from: kid, to: this.kid });
  }

  /**
   * Signs a message to the box, or returns undefined if its session is not known any more. The caller must send
   * messages in the order of signing.
   */
  sign(terminalCode: string, message: DownMessage): string | undefined {
    const sealed = this.#boxes.get(terminalCode)?.sessions.get(message.sessionId)?.seal.seal(message, this.#key);
    // Signs of life are not logged, because they would displace all other entries.
    if (sealed !== undefined && message.type !== 'heard') this.#world.trafficLog.message(terminalCode, 'box', message);
    return sealed;
  }

  /**
   * Verifies bytes from the box. A hello must contain this challenge. Messages of a box are verified in the order of
   * the calls. Rejects when the store fails.
   */
  async verify(terminalCode: string, challenge: string, bytes: Uint8Array | string): Promise<Opened<UpMessage>> {
    const box = this.#known(terminalCode) ?? (await this.#read(terminalCode));
    const opened = this.#open(terminalCode, box, challenge, bytes);
    if (opened.ok && opened.value.type !== 'alive')
      this.#world.trafficLog.message(terminalCode, 'gateway', opened.value);
    if (!opened.ok || opened.value.type !== 'hello') return opened;
    const hello: OrderedHello = { ...opened.value, order: box?.sessions.get(opened.value.sessionId)?.order };
    return { ok: true, value: hello };
  }

  /** Returns whether the box itself proved that it left this session (PROTOCOL.md, clause PRE-3). */
  async provesGone(terminalCode: string, { online, sessionId, proof = '' }: Presence): Promise<boolean> {
    const secret = (this.#known(terminalCode) ?? (await this.#read(terminalCode)))?.secret;
    return !online && secret !== undefined && equalSecrets(proof, goneProofOf(secret, terminalCode, sessionId));
  }

  #open(
    terminalCode: string,
    box: BoxKeys | undefined,
    challenge: string,
    bytes: Uint8Array | string,
  ): Opened<UpMessage> {
    if (box === undefined)
      return { ok: false, code: 'WRONG_BOX', reason: 'no box with this terminalCode has a secret' };
    const read = readUp(terminalCode, bytes);
    if (!read.ok) return read;
    const { jws, message } = read.value;
    const known = box.sessions.get(message.sessionId);
    if (known === undefined) return this.#greet(terminalCode, box, challenge, read.value);
    const answered = message.type === 'hello' ? jws.head.challenge : known.challenge;
    if (answered !== challenge) return refused('WRONG_SESSION', 'its session is on another connection');
    const opened = known.seal.open(read.value);
    if (opened.ok) known.challenge = challenge;
    return opened;
  }

  #greet(terminalCode: string, box: BoxKeys, challenge: string, read: ReadMessage<UpMessage>): Opened<UpMessage> {
    const greeted = GatewaySeal.greet({ terminalCode, secret: box.secret }, challenge, read, this.#world.clock);
    if (!greeted.ok) return greeted;
    const { seal, hello } = greeted.value;
    const { kid, helloMs = 0 } = read.jws.head;
    const lastMs = box.helloMs.get(kid) ?? -1;
    if (helloMs === lastMs) return refused('MESSAGE_REPLAYED', 'its session has begun before');
    if (helloMs < lastMs) return refused('MESSAGE_REORDERED', 'a later session of its box has begun before');
    addNewest(box.helloMs, kid, helloMs, KEYS_PER_BOX_MAX);
    // The hub may still refuse the new session, so it does not displace the one in use.
    const inUse = this.#hub.session(terminalCode)?.sessionId;
    const order = { kid, helloMs };
    addNewest(box.sessions, hello.sessionId, { seal, challenge, order }, SESSIONS_PER_BOX_MAX, inUse);
    return { ok: true, value: hello };
  }

  /** Returns the keys of a box if its secret cannot have changed since it was read. */
  #known(terminalCode: string): BoxKeys | undefined {
    const known = this.#boxes.get(terminalCode);
    return known?.version === this.#stored.directory.version ? known : undefined;
  }

  /** Reads the secret of a box. A new secret ends the sessions under the old one. */
  async #read(terminalCode: string): Promise<BoxKeys | undefined> {
    const { directory } = this.#stored;
    const { version } = directory;
    const secret = (await directory.box(terminalCode))?.secret;
    if (secret === undefined) return undefined;
    const known = this.#boxes.get(terminalCode);
    if (known?.secret === secret) {
      known.version = version;
      return known;
    }
    const fresh = { secret, version, sessions: new Map(), helloMs: known?.helloMs ?? new Map<string, number>() };
    this.#boxes.set(terminalCode, fresh);
    return fresh;
  }
}

function addNewest<T>(map: Map<string, T>, key: string, value: T, max: number, kept?: string): void {
  map.delete(key);
  map.set(key, value);
  for (const oldest of map.keys()) {
    if (map.size <= max) break;
    if (oldest !== kept) map.delete(oldest);
  }
}

function refused(code: SealRefusal, reason: string): Opened<never> {
  return { ok: false, code, reason };
}
