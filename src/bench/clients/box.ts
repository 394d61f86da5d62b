import { EventSourceParserStream } from 'eventsource-parser/stream';
import { z } from 'zod';
import { ConfigError, PayboxError } from '../../lib/errors.ts';
import { authorizationHeader, type HttpAnswer } from '../../lib/http-client.ts';
import type { FaultOrder, StandingFault } from '../../protocol/faults.ts';
import { endedFault, FAULTS, orderedFault, standingIn } from './faults.ts';
import { jsonOf, request } from './http.ts';

const boxStatus = z.looseObject({
  terminalCode: z.string(),
  serialNumber: z.string(),
  state: z.string(),
  online: z.boolean(),
});

const ANNOUNCEMENTS = /^paybox_box_announcements_total (\d+)$/m;

/** A box's `/status`, of which other makers' may hold more or less. */
export type BoxStatus = z.output<typeof boxStatus>;

/** A box as everybody may speak to it: over its own pages. */
export class BoxClient {
  readonly terminalCode: string;
  readonly serialNumber: string;
  /** The origin of its pages. */
  readonly url: string;
  readonly #headers: Record<string, string>;

  /** `url` is the origin of its pages, as `http://127.0.0.1:8810`; `token` its `http.token` (PROTOCOL.md, threat THR-30). */
  constructor(url: string, identity: { terminalCode: string; serialNumber: string }, token?: string) {
    this.url = url.replace(/\/+$/, '');
    this.#headers = authorizationHeader(token);
    this.terminalCode = identity.terminalCode;
    this.serialNumber = identity.serialNumber;
  }

  /** Asks the box who it is. Throws MissingPeerError when no box answers there, ConfigError when it wants another token. */
  static async find(url: string, token?: string): Promise<BoxClient> {
    const { terminalCode, serialNumber } = await new BoxClient(
      url,
      { terminalCode: '', serialNumber: '' },
      token,
    ).status();
    return new BoxClient(url, { terminalCode, serialNumber }, token);
  }

  /**
   * Throws MissingPeerError when it is off, ConfigError when it wants another token, as all here do, and PayboxError when
   * it answers what is no status.
   */
  async status(): Promise<BoxStatus> {
    const url = `${this.url}/status`;
    const parsed = boxStatus.safeParse(jsonOf(url, await this.#ask(url)));
    if (parsed.success) return parsed.data;
    throw new PayboxError('REFUSED', `${url} answered what is no status of a box`, { severity: 'fatal' });
  }

  async text(): Promise<string> {
    const { body } = await this.#ask(`${this.url}/screen.txt`);
    return body.toString('utf8');
  }

  /** What its display shows, as a PNG file; undefined before there is anything. */
  async picture(): Promise<Uint8Array | undefined> {
    const { status, body } = await this.#ask(`${this.url}/screen.png`);
    return status === 200 ? body : undefined;
  }

  async press(key: string): Promise<void> {
    const url = `${this.url}/keys/${key}`;
    const { status } = await this.#ask(url, 'POST');
    if (status !== 204) throw new PayboxError('REFUSED', `${url} answered ${status}`, { severity: 'fatal' });
  }

  /** How many payments it has announced since it started; undefined for one that does not count them. */
  async announcements(): Promise<number | undefined> {
    const { status, body } = await this.#ask(`${this.url}/metrics`);
    const [, count] = (status === 200 && ANNOUNCEMENTS.exec(body.toString('utf8'))) || [];
    return count === undefined ? undefined : Number(count);
  }

  /** The faults that stand; undefined where none can be ordered. */
  async faults(): Promise<StandingFault[] | undefined> {
    const url = `${this.url}/_mock/${FAULTS}`;
    return standingIn(url, await this.#ask(url));
  }

  /** Throws PayboxError when the box refuses. What it orders is said in the address: a box takes no bodies. */
  async orderFault({ fault, seconds, times, chance, seed }: FaultOrder): Promise<StandingFault> {
    const how = new URLSearchParams();
    for (const [key, value] of Object.entries({ seconds, times, chance, seed })) {
      if (value !== undefined) how.set(key, String(value));
    }
    const url = `${this.url}/_mock/${FAULTS}/${fault}?${how}`;
    return orderedFault(url, await this.#ask(url, 'POST'));
  }

  /** One that is over is ended already. */
  async endFault(id: string): Promise<void> {
    const url = `${this.url}/_mock/${FAULTS}/${encodeURIComponent(id)}`;
    endedFault(url, await this.#ask(url, 'DELETE'));
  }

  /** Hears each status that the box tells of by itself, until the signal or the box ends it. */
  async watch(onStatus: (status: unknown) => void, signal: AbortSignal): Promise<void> {
    const url = `${this.url}/events`;
    const response = await fetch(url, { headers: this.#headers, signal });
    assertOpen(url, response.status);
    const events = response.body?.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
    for await (const { data } of events ?? []) {
      const told = z.looseObject({ status: z.unknown() }).safeParse(JSON.parse(data));
      if (told.success) onStatus(told.data.status);
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
