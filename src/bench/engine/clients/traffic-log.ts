import type { Clock } from '../../../lib/clock.ts';
import { ConfigError, PayboxError } from '../../../lib/errors.ts';
import { authorizationHeader, parseJson } from '../../../lib/http-client.ts';
import { WIRE_PAGE_MAX, type WireEntry, type WirePage, wirePage } from '../../../protocol/wire.ts';
import { request } from './http.ts';

/** One entry of the gateway's traffic log, with its time converted to the reader's clock. */
export type LoggedTraffic = WireEntry & { atMs: number };

/** The entries since the last read. */
export interface NewTraffic {
  entries: LoggedTraffic[];
  /** The number of entries that the gateway dropped before they were read. */
  lost: number;
  /** True if the gateway has restarted since the last read. A restart clears its log. */
  restarted: boolean;
}

/** One call reads at most this many pages, which is more than the gateway stores. */
const PAGES_MAX = 100;

/** Reads a gateway's traffic log (`/_mock/wire`) in parts. */
export class TrafficLogClient {
  readonly #origin: string;
  readonly #headers: Record<string, string>;
  readonly #clock: Clock;
  #run: string | undefined;
  #since: number | string = 0;
  /** The offset from the gateway's time to the clock's time. */
  #aheadMs = 0;

  /** Makes a reader. A gateway on another machine needs `adminToken`. `clock` is the clock of the entries' times. */
  constructor({ origin, adminToken }: { origin: string; adminToken?: string | undefined }, clock: Clock) {
    this.#origin = origin;
    this.#headers = authorizationHeader(adminToken);
    this.#clock = clock;
  }

  /**
   * Returns all new entries. Throws MissingPeerError when no gateway answers, ConfigError when it has no traffic log or
   * requires another token.
   */
  async readNew(): Promise<NewTraffic> {
    const heard: LoggedTraffic[] = [];
    let lost = 0;
    let restarted = false;
    for (let pages = 0; pages < PAGES_MAX; pages += 1) {
      const askedMs = this.#clock.monotonicMs();
      const page = await this.#page();
      if (page.run !== this.#run) {
        restarted = this.#run !== undefined;
        this.#aheadMs = (askedMs + this.#clock.monotonicMs()) / 2 - page.upMs;
        const isFromTheStart = this.#since === 0;
        this.#run = page.run;
        this.#since = 0;
        if (!isFromTheStart) continue;
      }
      this.#since = page.next;
      lost += page.lost;
      heard.push(...page.entries.map((entry) => ({ ...entry, atMs: entry.upMs + this.#aheadMs })));
      if (page.entries.length === 0) break;
    }
    return { entries: heard, lost, restarted };
  }

  async #page(): Promise<WirePage> {
    const url = `${this.#origin}/_mock/wire?since=${this.#since}&limit=${WIRE_PAGE_MAX}`;
    const { status, body } = await request(url, { headers: this.#headers });
    if (status === 401) {
      throw new ConfigError(
        `the gateway at ${this.#origin} shows its traffic log to admins only`,
        'run it on the machine of the gateway, or give its adminToken with --admin-token-file',
      );
    }
    if (status >= 500) {
      throw new PayboxError('REFUSED', `${url} answered ${status}`, { severity: 'retryable' });
    }
    const parsed = wirePage.safeParse(parseJson(body));
    if (status === 200 && parsed.success) return parsed.data;
    throw new ConfigError(
      `${this.#origin} is not a paybox gateway with a traffic log: /_mock/wire answered ${status}`,
      'give the origin of a paybox gateway of this version, as http://127.0.0.1:8800',
    );
  }
}
