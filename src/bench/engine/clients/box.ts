import { createParser } from 'eventsource-parser';
import { z } from 'zod';
import { ConfigError, PayboxError } from '../../../lib/errors.ts';
import { authorizationHeader, type HttpAnswer, openHttp } from '../../../lib/http-client.ts';
import type { ActiveFaultView, FaultOrder } from '../../../protocol/faults.ts';
import { activeFaultsIn, endedFault, FAULTS, jsonOf, orderedFault, request } from './http.ts';

const boxStatus = z.looseObject({
  terminalCode: z.string(),
  serialNumber: z.string(),
  state: z.string(),
  online: z.boolean(),
});

const statusEvent = z.looseObject({ status: z.unknown() });

/** An event with the status of a box has at most this many characters. */
const EVENT_CHARS_MAX = 1_000_000;
const ANNOUNCEMENTS = /^paybox_box_announcements_total (\d+)$/m;

/** The `/status` of a box. Boxes of other makers may report more or fewer fields. */
export type BoxStatus = z.output<typeof boxStatus>;

/** Reads and orders by a box's own HTTP pages. */
export class BoxClient {
  readonly terminalCode: string;
  readonly serialNumber: string;
  /** Origin of the box's pages. */
  readonly url: string;
  readonly #headers: Record<string, string>;

  /**
   * Makes a client. `url` is the origin of the box's pages, for example `http://127.0.0.1:8810`; `token` is its
   * `http.token` (threat THR-30).
   */
  constructor(url: string, identity: { terminalCode: string; serialNumber: string }, token?: string) {
    this.url = url.replace(/\/+$/, '');
    this.#headers = authorizationHeader(token);
    this.terminalCode = identity.terminalCode;
    this.serialNumber = identity.serialNumber;
  }

  /** Asks a box for its identity. Throws MissingPeerError when no box answers, ConfigError when the token is wrong. */
  static async find(url: string, token?: string): Promise<BoxClient> {
    const { terminalCode, serialNumber } = await new BoxClient(
      url,
      { terminalCode: '', serialNumber: '' },
      token,
    ).status();
    return new BoxClient(url, { terminalCode, serialNumber }, token);
  }

  /**
   * Returns the box's `/status`. Throws MissingPeerError when the box is off, ConfigError when the token is wrong (as
   * all methods here do), and PayboxError when the answer is not a valid status.
   */
  async status(): Promise<BoxStatus> {
    const url = `${this.url}/status`;
    const parsed = boxStatus.safeParse(jsonOf(url, await this.#ask(url)));
    if (parsed.success) return parsed.data;
    throw new PayboxError('REFUSED', `${url} did not answer with the status of a box`, { severity: 'fatal' });
  }

  async text(): Promise<string> {
    const { body } = await this.#ask(`${this.url}/screen.txt`);
    return body.toString('utf8');
  }

  /** Returns the display's content as a PNG file; undefined before the first frame. */
  async picture(): Promise<Uint8Array | undefined> {
    const { status, body } = await this.#ask(`${this.url}/screen.png`);
    return status === 200 ? body : undefined;
  }

  async press(key: string): Promise<void> {
    const url = `${this.url}/keys/${key}`;
    const { status } = await this.#ask(url, 'POST');
    if (status !== 204) throw new PayboxError('REFUSED', `${url} answered ${status}`, { severity: 'fatal' });
  }

  /** Returns the number of payments announced since the box started; undefined for a box that does not count them. */
  async announcements(): Promise<number | undefined> {
    const { status, body } = await this.#ask(`${this.url}/metrics`);
    const [, count] = (status === 200 && ANNOUNCEMENTS.exec(body.toString('utf8'))) || [];
    return count === undefined ? undefined : Number(count);
  }

  /** Returns the active faults; undefined for a box that takes no fault orders. */
  async faults(): Promise<ActiveFaultView[] | undefined> {
    const url = `${this.url}/_mock/${FAULTS}`;
    return activeFaultsIn(url, await this.#ask(url));
  }

  /**
   * Orders a fault. Throws PayboxError when the box refuses. The order is in the query string, because a box accepts no
   * request bodies.
   */
  async orderFault({ fault, seconds, times, chance, seed }: FaultOrder): Promise<ActiveFaultView> {
    const how = new URLSearchParams();
    for (const [key, value] of Object.entries({ seconds, times, chance, seed })) {
      if (value !== undefined) how.set(key, String(value));
    }
    const url = `${this.url}/_mock/${FAULTS}/${fault}?${how}`;
    return orderedFault(url, await this.#ask(url, 'POST'));
  }

  /** Ends a fault. A fault that is already over is no error. */
  async endFault(id: string): Promise<void> {
    const url = `${this.url}/_mock/${FAULTS}/${encodeURIComponent(id)}`;
    endedFault(url, await this.#ask(url, 'DELETE'));
  }

  /** Calls `onStatus` with each status event until the signal aborts or the box ends the stream. */
  async watch(onStatus: (status: unknown) => void, signal: AbortSignal): Promise<void> {
    const url = `${this.url}/events`;
    const stream = await openHttp(url, { headers: this.#headers, signal });
    const parser = createParser({
      maxBufferSize: EVENT_CHARS_MAX,
      onError: (error) => error.type === 'max-buffer-size-exceeded' && stream.destroy(error),
      onEvent: ({ data }) => {
        const told = statusEvent.safeParse(JSON.parse(data));
        if (told.success) onStatus(told.data.status);
      },
    });
    try {
      assertOpen(url, stream.statusCode ?? 0);
      for await (const text of stream.setEncoding('utf8')) parser.feed(String(text));
    } finally {
      stream.destroy();
    }
  }

  async #ask(url: string, method = 'GET'): Promise<HttpAnswer> {
    const answer = await request(url, { method, headers: this.#headers });
    assertOpen(url, answer.status);
    return answer;
  }
}

function assertOpen(url: string, status: number): void {
  if (status !== 401 && status !== 403) return;
  throw new ConfigError(
    `${url} answered ${status}: give http.token of the box with --box-token-file`,
    'set one in its configuration where it has none',
  );
}
