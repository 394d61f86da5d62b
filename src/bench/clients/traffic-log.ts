import type { Clock } from '../../lib/clock.ts';
import { ConfigError, PayboxError } from '../../lib/errors.ts';
import { authorizationHeader, parseJson } from '../../lib/http-client.ts';
import { WIRE_PAGE_MAX, type WireEntry, type WirePage, wirePage } from '../../protocol/wire.ts';
import { request } from './http.ts';

/** An entry of the gateway's wire, on the clock of whoever listens. */
export type LoggedTraffic = WireEntry & { atMs: number };

/** What was heard since the last time. */
export interface NewTraffic {
  entries: LoggedTraffic[];
  /** Entries that the gateway has forgotten before they were asked for. */
  lost: number;
  /** Whether the gateway was started anew since, so that it has forgotten what it said before it ended. */
  restarted: boolean;
}

/** Pages in one go: more than the gateway keeps. */
const PAGES_MAX = 100;

/** What a gateway hears and says (`/_mock/wire`), read part by part. */
export class TrafficLogClient {
  readonly #origin: string;
  readonly #headers: Record<string, string>;
  readonly #clock: Clock;
  #run: string | undefined;
  #since = 0;
  /** What is added to the gateway's time for that of the clock. */
  #aheadMs = 0;

  /** `adminToken` is for a gateway on another machine; `clock` dates what is heard. */
  constructor({ origin, adminToken }: { origin: string; adminToken?: string | undefined }, clock: Clock) {
    this.#origin = origin;
    this.#headers = authorizationHeader(adminToken);
    this.#clock = clock;
  }

  /**
   * All that is new. Throws MissingPeerError when no gateway answers, ConfigError for what is no gateway of this kind, or
   * one that wants to know who asks.
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
        `the gateway at ${this.#origin} tells this to admins only`,
        'run it on the machine of the gateway, or name its adminToken with --admin-token-file',
      );
    }
    if (status >= 500) {
      throw new PayboxError('REFUSED', `${url} answered ${status}`, { severity: 'retryable' });
    }
    const parsed = wirePage.safeParse(parseJson(body));
    if (status === 200 && parsed.success) return parsed.data;
    throw new ConfigError(
      `${this.#origin} is no gateway that tells of its messages: it has no /_mock/wire (it answered ${status})`,
      'name the origin of a paybox gateway of this version, as http://127.0.0.1:8800',
    );
  }
}
