import { type Hearing, type Hint, type News, type Place, placeAlone } from '../../src/gateway/common/place.ts';

/** Gateways of one database, as far as work is shared: who has which lease, and what they say to each other. */
export class SharedPlaces {
  /** The run that has each lease. */
  readonly leases = new Map<string, string>();
  readonly hints: Hint[] = [];
  readonly told: News[] = [];
  /** The run that has the HTTP stream of each session. */
  readonly streams = new Map<string, string>();
  readonly #living = new Set<string>();
  readonly #hearing = new Map<string, Pick<Hearing, 'answer'>>();

  /** The place of a new run. */
  join(run: string): Place {
    this.#living.add(run);
    return {
      ...placeAlone(run),
      sharing: { name: run, run, application: run, generation: '' },
      lease: async (work) => {
        if (!this.leases.has(work)) this.leases.set(work, run);
        return this.leases.get(work) === run;
      },
      streamOpened: async (_box, sessionId) => void this.streams.set(sessionId, run),
      streamEnded: (_box, sessionId) => {
        if (this.streams.get(sessionId) === run) this.streams.delete(sessionId);
      },
      streamElsewhere: async (_box, sessionId) => {
        const at = this.streams.get(sessionId);
        return at === run ? undefined : at;
      },
      begin: (hearing) => void this.#hearing.set(run, hearing),
      ask: async (of, kind, question) => this.#hearing.get(of)?.answer(kind, question),
      others: () => [...this.#living].filter((it) => it !== run),
      hint: (hint) => void this.hints.push(hint),
      tell: async (news) => {
        this.told.push(news);
        return true;
      },
    };
  }

  /** Frees what a run has, as its burial does. */
  end(run: string): void {
    this.#living.delete(run);
    this.#hearing.delete(run);
    for (const [session, at] of this.streams) if (at === run) this.streams.delete(session);
    for (const [work, holder] of this.leases) if (holder === run) this.leases.delete(work);
  }
}
