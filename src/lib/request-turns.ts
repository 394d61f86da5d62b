import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { FairQueue } from './fair-queue.ts';

/**
 * A server begins this many requests in one turn of the event loop. Others wait for the next turn, because Node reads
 * new connections and their requests only between turns.
 */
const BEGUN_PER_TURN_MAX = 8;
/** A chunked body may have this much framing, enough for some 600 chunks. A body of the largest size needs few. */
const FRAMING_BYTES_MAX = 4_096;
/** These bytes end a head, and a chunked body (RFC 9112, sections 2.1 and 7.1). */
const END_OF_HEAD = Buffer.from('\r\n\r\n');
const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;
/** A head may follow one blank line (RFC 9112, section 2.2). More blank lines would keep an idle connection open. */
const BLANK_BYTES_MAX = 2;

/**
 * Lets the connections of a server take turns (PROTOCOL.md, threat THR-1). Node parses all requests that a client has
 * sent at once and starts all their handlers, so one burst would block other clients until its last answer. Here a
 * connection has one request at a time: the parser receives the next one after the client has read the previous answer.
 * The rest stays in the socket's buffer, and then with the sender.
 */
export class RequestTurns {
  /** Answers a connection that sent no acceptable request, and ends it. */
  readonly refuse: (socket: Socket, reason: string) => void;
  readonly #waiting = new FairQueue<() => void>();
  readonly #readers = new WeakMap<Socket, RequestReader>();
  #begun = 0;
  #isScheduled = false;

  constructor(refuse: (socket: Socket, reason: string) => void) {
    this.refuse = refuse;
  }

  /**
   * Reads the bytes of a connection from now on. Call it after the server has seen the connection. `address` is the
   * caller's. It is left out for a proxy that forwards requests of several callers: they take turns by `whenMayBegin`.
   */
  add(socket: Socket, address: string | undefined): void {
    this.#readers.set(socket, new RequestReader(socket, address, this));
  }

  /** Notes that a request has begun. Call it before the handler. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#readers.get(request.socket)?.begin(request, response);
  }

  /** Calls `begin` when a request of this address may begin, at once if it may now. */
  whenMayBegin(address: string, begin: () => void): void {
    if (this.mayBegin(address, begin)) begin();
  }

  /** Returns whether a request of this address may begin now. If not, it calls `later` as soon as it may. */
  mayBegin(address: string, later: () => void): boolean {
    this.#schedule();
    if (this.#waiting.size === 0 && this.#begun < BEGUN_PER_TURN_MAX) {
      this.#begun += 1;
      return true;
    }
    this.#waiting.add(address, later);
    return false;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#begun = 0;
      this.#beginNext();
    });
  }

  #beginNext(): void {
    while (this.#begun < BEGUN_PER_TURN_MAX) {
      const begin = this.#waiting.take();
      if (begin === undefined) return;
      this.#begun += 1;
      begin();
    }
    this.#schedule();
  }
}

/** Passes the bytes of one connection to Node's parser, one request at a time. */
class RequestReader {
  readonly #socket: Socket;
  readonly #turns: RequestTurns;
  readonly #parse: (bytes: Buffer) => void;
  /** The address of the caller. He needs a turn for each head. Undefined for a proxy. */
  readonly #address: string | undefined;
  /** Holds the last parsed request until its body is read and its answer sent. */
  #request: IncomingMessage | undefined;
  #isAnswered = false;
  /** Bytes of the body that have not arrived yet; undefined for a chunked body. */
  #bodyLeft: number | undefined;
  #chunks = new ChunkMeter();
  /** The parsed bytes end with this many bytes of END_OF_HEAD. */
  #matched = 0;
  #isRefused = false;
  /** True while the parser has a part of the next head. */
  #isInHead = false;
  /** Counts the bytes of blank lines since the last head. */
  #blankBytes = 0;
  /** The next head has not asked for a turn, waits for one, or may be parsed. */
  #turn: 'none' | 'waiting' | 'given' = 'none';

  constructor(socket: Socket, address: string | undefined, turns: RequestTurns) {
    this.#socket = socket;
    this.#address = address;
    this.#turns = turns;
    // Node's server parses the bytes that it receives in `data`. With another listener it reads through the stream.
    const listeners = socket.listeners('data') as ((bytes: Buffer) => void)[];
    this.#parse = (bytes) => {
      for (const parse of listeners) parse(bytes);
    };
    socket.removeAllListeners('data');
    socket.on('data', (bytes: Buffer) => this.#take(bytes));
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    const { 'content-length': length } = request.headers;
    this.#request = request;
    this.#isAnswered = false;
    this.#bodyLeft = length === undefined ? undefined : Number(length);
    this.#chunks = new ChunkMeter();
    response.once('close', () => {
      if (this.#request === request) this.#isAnswered = true;
      this.#goOn();
    });
  }

  #take(bytes: Buffer): void {
    let rest = bytes;
    // A connection that was refused or has ended receives no more answers.
    while (rest.length > 0 && !this.#socket.destroyed && !this.#socket.writableEnded) {
      rest = this.#withoutBlankLines(rest);
      if (this.#isRefused || rest.length === 0) return;
      const length = this.#readable(rest);
      if (this.#isRefused) return;
      if (length === 0) {
        // The order matters: a flowing stream would emit the bytes again at once.
        this.#socket.pause();
        this.#socket.unshift(rest);
        return;
      }
      this.#parse(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  }

  #goOn(): void {
    if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** Removes blank lines before a head. A client that sends only blank lines is refused. */
  #withoutBlankLines(bytes: Buffer): Buffer {
    const isBusy = this.#request !== undefined && !(this.#request.complete && this.#isAnswered);
    if (this.#isInHead || isBusy) return bytes;
    const first = bytes.findIndex((byte) => byte !== CARRIAGE_RETURN && byte !== LINE_FEED);
    const blank = first === -1 ? bytes.length : first;
    this.#blankBytes += blank;
    if (this.#blankBytes > BLANK_BYTES_MAX) this.#refuse('blank lines only');
    return bytes.subarray(blank);
  }

  /** Refuses the connection. The reader parses none of its further bytes. */
  #refuse(reason: string): void {
    this.#isRefused = true;
    this.#turns.refuse(this.#socket, reason);
  }

  /** Returns how many of these bytes may be parsed now. After 0 the reader continues once more may be. */
  #readable(bytes: Buffer): number {
    if (this.#request?.complete === false) return this.#bodyLength(bytes);
    if (this.#request !== undefined && !this.#isAnswered) return 0;
    this.#request = undefined;
    const { length, matched } = pastEnd(bytes, this.#matched);
    const isWhole = matched === END_OF_HEAD.length;
    if (isWhole && !this.#hasTurn()) return 0;
    this.#matched = matched % END_OF_HEAD.length;
    this.#isInHead = !isWhole;
    this.#blankBytes = 0;
    return length;
  }

  #bodyLength(bytes: Buffer): number {
    if (this.#bodyLeft !== undefined && this.#bodyLeft > 0) {
      const length = Math.min(this.#bodyLeft, bytes.length);
      this.#bodyLeft -= length;
      return length;
    }
    const { length, matched } = pastEnd(bytes, this.#matched);
    this.#matched = matched % END_OF_HEAD.length;
    this.#chunks.take(bytes.subarray(0, length));
    if (this.#chunks.framingBytes > FRAMING_BYTES_MAX) this.#refuse('the body has too many chunks');
    return length;
  }

  /** Returns whether the next head has its turn, and asks for one if not. */
  #hasTurn(): boolean {
    if (this.#turn === 'waiting') return false;
    if (this.#turn === 'given') {
      this.#turn = 'none';
      return true;
    }
    // If the client does not read an answer of Node itself, as for a head without Host, no response emits `close`.
    if (this.#socket.writableNeedDrain) {
      this.#turn = 'waiting';
      this.#socket.once('drain', () => {
        this.#turn = 'none';
        this.#goOn();
      });
      return false;
    }
    const later = () => {
      this.#turn = 'given';
      this.#goOn();
    };
    if (this.#address === undefined || this.#turns.mayBegin(this.#address, later)) return true;
    this.#turn = 'waiting';
    return false;
  }
}

/**
 * Returns the length of these bytes up to the end of the first END_OF_HEAD, or of all bytes if there is none. Also
 * returns how many bytes of END_OF_HEAD they end with.
 */
function pastEnd(bytes: Buffer, matchedBefore: number): { length: number; matched: number } {
  let matched = matchedBefore;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    matched = byte === END_OF_HEAD[matched] ? matched + 1 : byte === CARRIAGE_RETURN ? 1 : 0;
    if (matched === END_OF_HEAD.length) return { length: at + 1, matched };
  }
  return { length: bytes.length, matched };
}

/** The parser refuses a larger size. This limit only keeps the number finite. */
const SIZE_MAX = 2 ** 32;

/**
 * Measures the framing of a chunked body: sizes, extensions, line ends and trailers (RFC 9112, section 7.1). Node's
 * parser emits an event for each chunk, so a small body in one-byte chunks costs as much as thousands of bodies.
 */
class ChunkMeter {
  /** Framing bytes counted so far. */
  framingBytes = 0;
  #reads: 'size' | 'rest of line' | 'data' | 'end of data' = 'size';
  #dataLeft = 0;

  /** Counts the next bytes of the body. The caller passes none from after its end. */
  take(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      if (this.#reads === 'data') {
        const taken = Math.min(this.#dataLeft, bytes.length - at);
        this.#dataLeft -= taken;
        at += taken;
        if (this.#dataLeft === 0) this.#reads = 'end of data';
      } else {
        this.#takeFraming(bytes[at] ?? 0);
        at += 1;
      }
    }
  }

  #takeFraming(byte: number): void {
    this.framingBytes += 1;
    if (byte === LINE_FEED) {
      this.#reads = this.#reads !== 'end of data' && this.#dataLeft > 0 ? 'data' : 'size';
      return;
    }
    const digit = this.#reads === 'size' ? Number.parseInt(String.fromCharCode(byte), 16) : Number.NaN;
    if (Number.isNaN(digit)) this.#reads = this.#reads === 'size' ? 'rest of line' : this.#reads;
    else this.#dataLeft = Math.min(SIZE_MAX, this.#dataLeft * 16 + digit);
  }
}
