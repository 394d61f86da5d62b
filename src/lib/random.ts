import { randomBytes, randomUUID } from 'node:crypto';

/** Randomness, injected: a seeded twin makes runs repeatable. */
export interface Random {
  /** A fresh version 4 UUID. */
  uuid(): string;
  /** A number in [0, 1). */
  fraction(): number;
  /** `bytes` random bytes as unpadded base64url, for secrets. */
  secret(bytes: number): string;
}

export const systemRandom: Random = {
  uuid: () => randomUUID(),
  fraction: () => Math.random(),
  secret: (bytes) => randomBytes(bytes).toString('base64url'),
};
