import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { join } from 'node:path';
import { ConfigError, PayboxError, systemCodeOf } from '../../lib/errors.ts';
import { readFileText, replaceOwnFile } from '../../lib/files.ts';
import { makeFolder } from '../../lib/folders.ts';
import type { Random } from '../../lib/random.ts';
import type { RegistryStore } from '../store/repositories/registry.ts';

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const ID_CHARS = 16;
const CIPHER = 'aes-256-gcm';
const KEY_TEXT = /^[A-Za-z0-9_-]{43}\n?$/;

/** Returns the file with the key that wraps secrets of the registry. It belongs beside every backup of the store. */
export function vaultFile(dataDir: string): string {
  return join(dataDir, 'registry.key');
}

/** Wraps the secrets of the registry that must be read back (PROTOCOL.md, clause REG-7). */
export class Vault {
  readonly #file: string;
  readonly #dataDir: string;
  readonly #random: Random;
  #key: Buffer | undefined;
  #preparing: Promise<void> | undefined;

  private constructor(dataDir: string, random: Random, key: Buffer | undefined) {
    this.#dataDir = dataDir;
    this.#file = vaultFile(dataDir);
    this.#random = random;
    this.#key = key;
  }

  /**
   * Opens the vault with the key in dataDir, or else with the key of the cluster. Throws ConfigError when another key
   * wraps the secrets of the store.
   */
  static async open(dataDir: string, registry: RegistryStore, random: Random, keyOfCluster?: Buffer): Promise<Vault> {
    const file = vaultFile(dataDir);
    const key = (await readKey(file)) ?? keyOfCluster;
    assertKey(file, key, await registry.keyId());
    return new Vault(dataDir, random, key);
  }

  /** Makes the key, in its file, if there is none yet. Settles once it is durable. */
  async prepare(registry: RegistryStore): Promise<void> {
    // One at a time: a second key would open nothing that the first has wrapped.
    this.#preparing ??= this.#prepare(registry).catch((error: unknown) => {
      this.#preparing = undefined;
      throw error;
    });
    await this.#preparing;
  }

  async #prepare(registry: RegistryStore): Promise<void> {
    if (this.#key === undefined) {
      const text = this.#random.secret(KEY_BYTES);
      makeFolder(this.#dataDir, 0o700);
      await replaceOwnFile(this.#file, `${text}\n`);
      this.#key = Buffer.from(text, 'base64url');
    }
    await registry.keepKeyId(idOf(this.#key));
  }

  /** Wraps a secret for the row and column that `of` names; no other row can unwrap it. The key must be prepared. */
  wrap(of: string, secret: string): string {
    const iv = Buffer.from(this.#random.secret(IV_BYTES), 'base64url');
    const cipher = createCipheriv(CIPHER, this.#prepared(of), iv).setAAD(Buffer.from(of));
    const wrapped = Buffer.concat([iv, cipher.update(secret, 'utf8'), cipher.final(), cipher.getAuthTag()]);
    return wrapped.toString('base64url');
  }

  /** Unwraps a secret. Throws PayboxError if the row is damaged, or if its secret belongs to another row. */
  unwrap(of: string, wrapped: string): string {
    const bytes = Buffer.from(wrapped, 'base64url');
    try {
      const decipher = createDecipheriv(CIPHER, this.#prepared(of), bytes.subarray(0, IV_BYTES));
      decipher.setAAD(Buffer.from(of)).setAuthTag(bytes.subarray(-TAG_BYTES));
      return decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch (error) {
      const fix = 'rotate it, or restore a copy of the store';
      const what = `the secret ${of} in the store is damaged: ${fix}`;
      throw new PayboxError('STORAGE_FAULT', what, { severity: 'fatal', fix, cause: error });
    }
  }

  #prepared(of: string): Buffer {
    if (this.#key === undefined) throw new Error(`no key for ${of}`);
    return this.#key;
  }
}

/** Returns the id of the key in this dataDir, or undefined without one. Throws ConfigError if the file is not a key. */
export async function vaultFileId(dataDir: string): Promise<string | undefined> {
  const key = await readKey(vaultFile(dataDir));
  return key && idOf(key);
}

/**
 * Throws ConfigError if the key does not have the id `known`, because a start would be refused. The key is the one in
 * this dataDir, or else that of the cluster.
 */
export async function checkVaultFile(dataDir: string, known: string | undefined, ofCluster?: Buffer): Promise<void> {
  const file = vaultFile(dataDir);
  assertKey(file, (await readKey(file)) ?? ofCluster, known);
}

function assertKey(file: string, key: Buffer | undefined, known: string | undefined): void {
  if (known === undefined || (key !== undefined && idOf(key) === known)) return;
  throw new ConfigError(
    `dataDir: ${file} is ${key === undefined ? 'missing' : 'another key'}: the store has secrets of partners and boxes that only its own key opens`,
    'put the file back from beside the backup of the store, or copy it from the gateway that used this store before',
  );
}

async function readKey(file: string): Promise<Buffer | undefined> {
  try {
    const text = await readFileText(file);
    if (KEY_TEXT.test(text)) return Buffer.from(text.trim(), 'base64url');
    throw new ConfigError(`dataDir: ${file} is not a key`, 'put it back from beside the backup of the store');
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

/** Returns an id that distinguishes keys and reveals nothing about them. */
function idOf(key: Buffer): string {
  return createHash('sha256').update('paybox registry key').update(key).digest('hex').slice(0, ID_CHARS);
}
