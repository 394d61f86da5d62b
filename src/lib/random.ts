import { randomBytes, randomUUID } from 'node:crypto';

/** Gives random values. A seeded version makes runs repeatable. */
export interface Random {
  /** Returns a fresh version 4 UUID. */
  uuid(): string;
  /** Returns a number in [0, 1). */
  fraction(): number;
  /** Returns `bytes` random bytes as unpadded base64url, for secrets. */
  secret(bytes: number): string;
}

export const systemRandom: Random = {
  uuid: () => randomUUID(),
  fraction: () => Math.random(),
  secret: (bytes) => randomBytes(bytes).toString('base64url'),
};

const HEX = 16;

/**
 * Returns random numbers that depend on the seed only (mulberry32), so that tests can repeat a run. Never use it for
 * secrets.
 */
export function seededRandom(seed: number): Random {
  let state = Math.imul(seed, 0x9e3779b1) | 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(fraction() * limit);
  return {
    fraction,
    uuid: () => 'xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx'.replaceAll('x', () => below(HEX).toString(HEX)),
    secret: (bytes) => Buffer.from(Array.from({ length: bytes }, () => below(256))).toString('base64url'),
  };
}
