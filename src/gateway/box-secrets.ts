import type { BoxSecretStore } from '../store/repositories/credentials.ts';
import type { RegistryStore } from '../store/repositories/registry.ts';
import type { BoxSecretRow } from '../store/schema/tables.ts';
import { SECRET_OF } from './directory.ts';
import type { Vault } from './vault.ts';

/** Rows that are wrapped in one go at a start. */
const ROWS_AT_ONCE = 500;

interface BoxSecretsDeps {
  store: BoxSecretStore;
  registry: Pick<RegistryStore, 'keepKeyId'>;
  vault: Vault;
}

/** Secrets that boxes agreed on at enrolment, wrapped in the store (PROTOCOL.md, clause REG-7). */
export class BoxSecrets {
  readonly #deps: BoxSecretsDeps;

  private constructor(deps: BoxSecretsDeps) {
    this.#deps = deps;
  }

  /** Wraps what an earlier version has stored plain. */
  static async open(deps: BoxSecretsDeps): Promise<BoxSecrets> {
    const secrets = new BoxSecrets(deps);
    for (;;) {
      const plain = await deps.store.plain(ROWS_AT_ONCE);
      for (const row of plain) await secrets.keep(row);
      if (plain.length < ROWS_AT_ONCE) return secrets;
    }
  }

  /** The secret of this box. A box with another serialNumber has none, even under the same terminalCode. */
  async get(terminalCode: string, serialNumber: string): Promise<string | undefined> {
    const wrapped = await this.#deps.store.get(terminalCode, serialNumber);
    return wrapped === undefined ? undefined : this.#deps.vault.unwrap(SECRET_OF.enrolled(terminalCode), wrapped);
  }

  /** Replaces an older secret. Valid once it is durable. */
  async keep({ secret, ...row }: Omit<BoxSecretRow, 'wrapped'>): Promise<void> {
    const { store, registry, vault } = this.#deps;
    await vault.prepare(registry);
    const wrapped = vault.wrap(SECRET_OF.enrolled(row.terminal_code), secret);
    await store.keep({ ...row, secret: wrapped, wrapped: 1 });
  }

  forget(terminalCode: string): Promise<void> {
    return this.#deps.store.forget(terminalCode);
  }
}
