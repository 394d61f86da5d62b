import { type Hint, type News, type Place, placeAlone } from '../../src/gateway/common/place.ts';

/** Gateways of one database, as far as work is shared: who has which lease, and what they say to each other. */
export class SharedPlaces {
  /** The run that has each lease. */
  readonly leases = new Map<string, string>();
  readonly hints: Hint[] = [];
  readonly told: News[] = [];
  readonly #living = new Set<string>();

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
    for (const [work, holder] of this.leases) if (holder === run) this.leases.delete(work);
  }
}
