import { issuesOf } from '../../protocol/codec.ts';
import { newSecret } from '../../protocol/secret.ts';
import { SECRET_OF } from '../common/directory.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';
import type { Vault } from '../common/vault.ts';
import type { World } from '../common/world.ts';
import { SOURCE_KINDS, sourceOptions } from '../money/sources/registry.ts';
import type { NamedOptions } from '../money/sources/source.ts';
import type { RegistryStore } from '../store/repositories/registry.ts';
import type { SourceRow } from '../store/schema/tables.ts';
import type { Rotation } from './bodies.ts';
import type { Admin, RowChange } from './changes.ts';
import { type Made, Rows } from './rows.ts';

/** The store may have this many sources. Each is open, and fetches its list by itself. */
const SOURCES_MAX = 100;
const KEY_BYTES = 32;

/** Opens, closes or replaces the connection to a source, as its row is now. */
export type Reload = (name: string) => Promise<void>;

/** Changes of the sources of money by admins (PROTOCOL.md, clause REG-8). */
export class SourceRows extends Rows<'sources'> {
  readonly #reload: Reload;

  constructor(world: World, stored: Stored, reload: Reload) {
    super(world, stored, 'sources');
    this.#reload = reload;
  }

  override async add(by: Admin, options: NamedOptions): Promise<Result<Made>> {
    const { vault, store } = this.stored;
    const { name, kind } = options;
    const problem = this.changes.modeProblem('sources', options);
    if (problem !== undefined) return problem;
    await vault.prepare(store.registry);
    const row = { name, kind, options: this.#wrap(options), ...this.changes.fresh() };
    return this.#reloaded(name, await this.changes.add(by, 'sources', row, (trx) => this.#isFree(trx, options)));
  }

  /** Replaces the keys that are named, each as a whole. Null removes one. */
  override change(by: Admin, name: string, change: object): Promise<Result<Made>> {
    return this.#replace(by, name, (options) => {
      if ('kind' in change || 'name' in change)
        return refuse('E46', 'expected other keys than kind and name: add another source');
      const merged = Object.entries({ ...options, ...change }).filter(([, value]) => value !== null);
      const read = sourceOptions.safeParse(Object.fromEntries(merged));
      if (!read.success) return refuse('E46', issuesOf(read.error));
      const problem = this.changes.modeProblem('sources', read.data);
      if (problem !== undefined) return problem;
      const columns = { options: this.#wrap(read.data) };
      return accept({ what: 'changed', columns, detail: { keys: Object.keys(change) } });
    });
  }

  /** Replaces the key of a source, and returns the new one if the gateway has made it. */
  override async rotate(by: Admin, name: string, { key }: Rotation): Promise<Result<Made>> {
    const fresh = newSecret(this.world.random, KEY_BYTES);
    const rotated = await this.#replace(by, name, (options) => {
      const changed = SOURCE_KINDS.get(options.kind)?.rotate(options, key, () => fresh);
      if (changed === undefined) return refuse('E46', 'key: expected the new one, which the provider makes');
      const problem = this.changes.modeProblem('sources', changed.options);
      return problem ?? accept({ what: 'rotated', columns: { options: this.#wrap(changed.options) }, detail: {} });
    });
    return rotated.ok ? accept(key === undefined ? { key: fresh } : {}) : rotated;
  }

  /** Stops receiving and asking a disabled source. One that is enabled again catches up. */
  protected override disabled(name: string): Promise<void> {
    return this.#reload(name);
  }

  protected override removed(name: string): Promise<void> {
    return this.#reload(name);
  }

  async #replace(
    by: Admin,
    name: string,
    changeOf: (options: NamedOptions) => Result<RowChange>,
  ): Promise<Result<Made>> {
    const changed = await this.changes.change(by, 'sources', name, (row) => {
      const options = optionsOf(row, this.stored.vault);
      return options === undefined ? refuse('E96', 'expected a source with options') : changeOf(options);
    });
    return this.#reloaded(name, changed);
  }

  async #isFree(trx: RegistryStore, { name, kind }: NamedOptions) {
    const before = await trx.kindOfSource(name);
    if (before !== undefined && before !== kind) {
      return refuse('NAME_TAKEN', `name: ${name} was of kind ${before}, whose ids could be taken for those of ${kind}`);
    }
    const own = await trx.page('sources', { limit: SOURCES_MAX });
    if (own.length === SOURCES_MAX) return refuse('E46', `expected at most ${SOURCES_MAX} sources`);
    await trx.keepKindOfSource(name, kind);
    return undefined;
  }

  async #reloaded(name: string, changed: Result<unknown>): Promise<Result<Made>> {
    if (!changed.ok) return changed;
    await this.#reload(name);
    return accept({});
  }

  #wrap(options: NamedOptions): string {
    return this.stored.vault.wrap(SECRET_OF.source(options.name), JSON.stringify(options));
  }
}

/** Returns the options of a source that the store manages. Undefined for a source of the file. */
export function optionsOf({ name, options }: SourceRow, vault: Vault): NamedOptions | undefined {
  if (options === null) return undefined;
  return sourceOptions.parse(JSON.parse(vault.unwrap(SECRET_OF.source(name), options)));
}
