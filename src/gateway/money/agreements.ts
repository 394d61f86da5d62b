import { z } from 'zod';
import { parseJson } from '../../lib/http-client.ts';
import type { World } from '../common/world.ts';
import { CREDIT_FRESH_MS } from '../store/repositories/credit-sides.ts';
import type { Settings } from '../store/store.ts';

/** The last agreement with a source. It survives a restart, and another gateway goes on from it. */
const agreement = z.object({
  /** Every credit of the list up to this time is in the store. */
  agreedUpToMs: z.number(),
  /** When a gateway last read a list to its end. */
  agreedAtMs: z.number().nullable(),
  /** How many credits were found in lists before a webhook reported them. */
  found: z.int(),
  /** The reason why the last list could not be read. */
  problem: z.string().nullable().default(null),
  /** When the source last called a webhook. It has a setting of its own; only earlier versions stored it here. */
  toldAtMs: z.number().nullable().default(null),
});
export type Agreement = z.output<typeof agreement>;

/** The state of a source as the admin sees it. Times are milliseconds since 1970. */
export interface SourceStatus extends Omit<Agreement, 'agreedUpToMs'> {
  name: string;
  kind: string;
  hasList: boolean;
  agreedUpToMs: number | null;
}

/** Stores the agreements with sources. Only the gateway that asks a source writes its agreement. */
export class Agreements {
  readonly #world: World;
  readonly #store: Settings;

  constructor(world: World, store: Settings) {
    this.#world = world;
    this.#store = store;
  }

  /** Returns the agreement with a source, or stores a new one. */
  async open(source: string): Promise<Agreement> {
    const agreedUpToMs = this.#world.clock.wallMs() - CREDIT_FRESH_MS;
    const fresh = { agreedUpToMs, agreedAtMs: null, found: 0, toldAtMs: null, problem: null };
    await this.#store.setting(toldSettingOf(source), () => '');
    return read(await this.#store.setting(settingOf(source), () => JSON.stringify(fresh))) ?? fresh;
  }

  save(source: string, kept: Agreement): Promise<void> {
    return this.#store.replaceSetting(settingOf(source), JSON.stringify(kept));
  }

  /** Stores when a source last called a webhook of this gateway. */
  saveTold(source: string, atMs: number): Promise<void> {
    return this.#store.replaceSetting(toldSettingOf(source), String(atMs));
  }

  /** Returns the stored agreements with these sources, with the newest time of a webhook. */
  async of(sources: readonly string[]): Promise<ReadonlyMap<string, Agreement>> {
    const kept = await this.#store.settingsNamed(sources.flatMap((it) => [settingOf(it), toldSettingOf(it)]));
    return new Map(
      sources.flatMap((source) => {
        const known = read(kept.get(settingOf(source)));
        if (known === undefined) return [];
        const toldAtMs = newest(known.toldAtMs, Number(kept.get(toldSettingOf(source)) ?? 0));
        return [[source, { ...known, toldAtMs }] as const];
      }),
    );
  }
}

/** Returns the newest of some times. Null if there is none. */
export function newest(...timesMs: readonly (number | null)[]): number | null {
  return Math.max(...timesMs.map((it) => it ?? 0)) || null;
}

function settingOf(source: string): string {
  return `source-${source}`;
}

/** Names the setting that each gateway writes whose webhook is called. */
function toldSettingOf(source: string): string {
  return `source-told-${source}`;
}

function read(kept: string | undefined): Agreement | undefined {
  return agreement.safeParse(parseJson(kept ?? '')).data;
}
