import { isDeepStrictEqual } from 'node:util';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { optionsOf } from '../registry/source-rows.ts';
import type { SourceRow } from '../store/schema/tables.ts';
import type { Asking } from './asking.ts';
import { CatchUp } from './catch-up.ts';
import { waitingInAll } from './credit-routes.ts';
import { SOURCE_KINDS } from './sources/registry.ts';
import type { NamedOptions, QrMaker, Source } from './sources/source.ts';

const ROWS_AT_ONCE = 100;

/** A source that makes QRs. */
export interface Maker {
  source: Source;
  maker: QrMaker;
}

/** Called when another source, or none, makes the QRs of these accounts, or to other virtual accounts. */
type MakersChanged = (accounts: readonly string[]) => Promise<void>;

/** The open sources of money: what hears them, and what asks their lists (PROTOCOL.md, clauses SRC and REG-8). */
export class Sources {
  readonly catchUp: CatchUp;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #makersChanged: MakersChanged;
  /** The rows that the open sources were opened with, by name. */
  readonly #rows = new Map<string, string>();
  readonly #byName = new Map<string, Source | 'disabled'>();
  #reloading: Promise<void> = Promise.resolve();

  private constructor(world: World, stored: Stored, asking: Asking, makersChanged: MakersChanged) {
    this.#world = world;
    this.#stored = stored;
    this.#makersChanged = makersChanged;
    const { store } = stored;
    const waiting = world.place === undefined ? store : waitingInAll(store, world.place.count);
    this.catchUp = new CatchUp(world, waiting, asking);
  }

  static async open(world: World, stored: Stored, asking: Asking, makersChanged: MakersChanged): Promise<Sources> {
    const sources = new Sources(world, stored, asking, makersChanged);
    for (const row of await sources.#allRows()) await sources.#begin(row);
    return sources;
  }

  /** Another shard may have changed rows: reloads the sources that have changed. */
  async refresh(): Promise<void> {
    const rows = new Map((await this.#allRows()).map((it) => [it.name, JSON.stringify(it)]));
    const names = new Set([...rows.keys(), ...this.#rows.keys()]);
    for (const name of names) if (rows.get(name) !== this.#rows.get(name)) await this.reload(name);
  }

  async #allRows(): Promise<SourceRow[]> {
    const all: SourceRow[] = [];
    for (;;) {
      const rows = await this.#stored.store.registry.page('sources', {
        limit: ROWS_AT_ONCE,
        after: all.at(-1)?.name ?? '',
      });
      all.push(...rows);
      if (rows.length < ROWS_AT_ONCE) return all;
    }
  }

  /** The source that is heard at `/hooks/{name}`. */
  find(name: string): Source | 'disabled' | undefined {
    return this.#byName.get(name);
  }

  /** The source that makes the QRs of this account's orders: of several the first by name. */
  makerFor(bankAccount: string): Maker | undefined {
    return this.makers().find(({ maker }) => maker.accounts.includes(bankAccount));
  }

  /** The sources that make QRs, by name. */
  makers(): Maker[] {
    const open = [...this.#byName.values()].filter((it) => it !== 'disabled');
    const byName = open.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return byName.flatMap((source) => (source.maker === undefined ? [] : [{ source, maker: source.maker }]));
  }

  /** The options of a source, secrets included. */
  optionsOf(row: SourceRow): NamedOptions | undefined {
    const { config } = this.#world;
    const { vault } = this.#stored;
    return optionsOf(row, vault) ?? config.sources.find((it) => it.name === row.name);
  }

  /** Opens, closes or replaces a source as its row is now. One after the other, so that the newest row counts. */
  readonly reload = (name: string): Promise<void> => {
    const reloaded = this.#reloading.then(async () => {
      const row = await this.#stored.store.registry.find('sources', name);
      const before = this.#makerOf(name);
      // One that is only replaced stays open meanwhile: no webhook is refused.
      if (row === undefined) this.#rows.delete(name);
      if (row === undefined) this.#put(name, undefined);
      else if (row.disabled === 1) this.#put(name, 'disabled');
      await this.catchUp.remove(name);
      if (row !== undefined) await this.#begin(row);
      this.#world.changes.publish('sources');
      const after = this.#makerOf(name);
      if (isDeepStrictEqual(madeBy(before), madeBy(after))) return;
      await this.#makersChanged([...new Set([...(before?.accounts ?? []), ...(after?.accounts ?? [])])]);
    });
    this.#reloading = reloaded.catch(() => undefined);
    return reloaded;
  };

  /** Replaces what is open under this name, and where the QRs of its accounts may pay to. */
  #put(name: string, source: Source | 'disabled' | undefined): void {
    if (source === undefined) this.#byName.delete(name);
    else this.#byName.set(name, source);
    // Of several sources that make the QRs of an account the first by name counts.
    const makers = this.makers().toReversed();
    const listed = makers.flatMap(({ maker }) => maker.accounts.map((it) => [it, maker.virtualAccounts] as const));
    this.#stored.virtualAccounts.replace(new Map(listed));
  }

  #makerOf(name: string): QrMaker | undefined {
    const source = this.#byName.get(name);
    return source === 'disabled' ? undefined : source?.maker;
  }

  async #begin(row: SourceRow): Promise<void> {
    this.#rows.set(row.name, JSON.stringify(row));
    if (row.disabled === 1) {
      this.#put(row.name, 'disabled');
      return;
    }
    const options = this.optionsOf(row);
    const source = options && SOURCE_KINDS.get(options.kind)?.open(options, this.#world);
    if (source === undefined) return;
    await this.catchUp.add(source);
    this.#put(row.name, source);
  }
}

function madeBy(maker: QrMaker | undefined): unknown {
  return maker && [maker.accounts, maker.virtualAccounts];
}
