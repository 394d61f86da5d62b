import type { BoxSecretStore } from '../store/repositories/credentials.ts';
import type { RegistryStore } from '../store/repositories/registry.ts';
import type { BoxSecretRow, EnrolledSecret } from '../store/schema/tables.ts';
import type { Store } from '../store/store.ts';
import { SECRET_OF } from './directory.ts';
import type { Vault } from './vault.ts';

/** How many rows are wrapped at once at a start. */
const ROWS_AT_ONCE = 500;

/** Stores the secrets that boxes agreed on at enrolment, wrapped (PROTOCOL.md, clause REG-7). */
export class BoxSecrets {
  readonly #store: BoxSecretStore;
  readonly #registry: RegistryStore;
  readonly #vault: Vault;

  private constructor({ boxSecrets, registry }: Store, vault: Vault) {
    this.#store = boxSecrets;
    this.#registry = registry;
    this.#vault = vault;
  }

  /** Wraps the secrets that an earlier version stored unwrapped. */
  static async open(store: Store, vault: Vault): Promise<BoxSecrets> {
    const secrets = new BoxSecrets(store, vault);
    for (;;) {
      const plain = await store.boxSecrets.plain(ROWS_AT_ONCE);
      for (const row of plain) await secrets.keep(row);
      if (plain.length < ROWS_AT_ONCE) return secrets;
    }
  }

  /** Returns the secret of this box. A box with another serialNumber has none, even under the same terminalCode. */
  async get(terminalCode: string, serialNumber: string): Promise<string | undefined> {
    const wrapped = await this.#store.get(terminalCode, serialNumber);
    return wrapped === undefined ? undefined : this.#vault.unwrap(SECRET_OF.enrolled(terminalCode), wrapped);
  }

  /** Replaces an older secret. Valid once it is durable. */
  async keep(secret: EnrolledSecret): Promise<void> {
    const wrap = await this.wrapping();
    await this.#store.keep(wrap(secret));
  }

  /** Returns a function that makes the row of a secret. The caller stores it. */
  async wrapping(): Promise<(secret: EnrolledSecret) => BoxSecretRow> {
    await this.#vault.prepare(this.#registry);
    return ({ secret, ...row }) => {
      const wrapped = this.#vault.wrap(SECRET_OF.enrolled(row.terminal_code), secret);
      return { ...row, secret: wrapped, wrapped: 1 };
    };
  }

  forget(terminalCode: string): Promise<void> {
    return this.#store.forget(terminalCode);
  }
}
