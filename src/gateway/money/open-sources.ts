import { isDeepStrictEqual } from 'node:util';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import { optionsOf } from '../registry/source-rows.ts';
import type { SourceRow } from '../store/schema/tables.ts';
import type { Asking } from './asking.ts';
import { CatchUp } from './catch-up.ts';
import { SOURCE_KINDS } from './sources/registry.ts';
import type { NamedOptions, QrMaker, Source } from './sources/source.ts';

export interface Maker {
  source: Source;
  maker: QrMaker;
}

/** Called when other sources make the QRs of these accounts, or when those QRs pay to other virtual accounts. */
type MakersChanged = (accounts: readonly string[]) => Promise<void>;

/**
 * Holds the open sources: their webhooks, their lists and the QRs that they make (PROTOCOL.md, clauses SRC and REG-8).
 */
export class Sources {
  readonly catchUp: CatchUp;
  readonly #world: World;
  readonly #stored: Stored;
  readonly #makersChanged: MakersChanged;
  /** The row of each open source when it was opened, by name. */
  readonly #rows = new Map<string, string>();
  readonly #byName = new Map<string, Source | 'disabled'>();
  #reloading: Promise<void> = Promise.resolve();

  private constructor(world: World, stored: Stored, asking: Asking, makersChanged: MakersChanged) {
    this.#world = world;
    this.#stored = stored;
    this.#makersChanged = makersChanged;
    this.catchUp = new CatchUp(world, stored.store, asking);
  }

  static async open(world: World, stored: Stored, asking: Asking, makersChanged: MakersChanged): Promise<Sources> {
    const sources = new Sources(world, stored, asking, makersChanged);
    for (const row of await sources.#allRows()) await sources.#begin(row);
    return sources;
  }

  /** Reloads the sources whose rows another gateway has changed. */
  async refresh(): Promise<void> {
    const rows = new Map((await this.#allRows()).map((it) => [it.name, JSON.stringify(it)]));
    const names = new Set([...rows.keys(), ...this.#rows.keys()]);
    for (const name of names) if (rows.get(name) !== this.#rows.get(name)) await this.reload(name);
  }

  #allRows(): Promise<SourceRow[]> {
    return Array.fromAsync(this.#stored.store.registry.each('sources'));
  }

  /** Returns the source that is called at `/hooks/{name}`. */
  find(name: string): Source | 'disabled' | undefined {
    return this.#byName.get(name);
  }

  /** Returns the source that makes the QRs of this account's orders. Of several, the first by name wins. */
  makerFor(bankAccount: string): Maker | undefined {
    return this.makers().find(({ maker }) => maker.accounts.includes(bankAccount));
  }

  /** Returns the sources that make QRs, by name. */
  makers(): Maker[] {
    const open = [...this.#byName.values()].filter((it) => it !== 'disabled');
    const byName = open.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    return byName.flatMap((source) => (source.maker === undefined ? [] : [{ source, maker: source.maker }]));
  }

  /** Returns the options of a source, including its secrets. */
  optionsOf(row: SourceRow): NamedOptions | undefined {
    const { vault } = this.#stored;
    return optionsOf(row, vault) ?? this.#world.config.sources.find((it) => it.name === row.name);
  }

  /** Opens, closes or replaces a source as its row says. Calls run one after the other, so that the newest row wins. */
  readonly reload = (name: string): Promise<void> => {
    const reloaded = this.#reloading.then(async () => {
      const row = await this.#stored.store.registry.find('sources', name);
      const before = this.#makerOf(name);
      // A source that is only replaced stays open, so that the gateway refuses no webhook meanwhile.
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

  /** Replaces the open source of this name, and the virtual accounts that QRs may pay to. */
  #put(name: string, source: Source | 'disabled' | undefined): void {
    if (source === undefined) this.#byName.delete(name);
    else this.#byName.set(name, source);
    // A map keeps the last entry of a key. The list is reversed, so that the first source by name wins.
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
