import { z } from 'zod';
import type { Random } from '../lib/random.ts';

const CHARS_MAX = 200;
/** 128 bits in each usual form of a secret. Words have about 2 bits a character. */
const FORMS = [/^[0-9A-Fa-f]{32,}$/, /^(?=.*[a-z])(?=.*[A-Z])\S{22,}$/, /^.{64,}$/];
/** A run of small letters this long is a word: in 43 random characters of base64 it occurs once in 50,000. */
const WORDS = /[a-z]{15}/;
/**
 * Fewer different characters are a pattern: only one in 10,000,000 random values of 32 hexadecimal digits has so few.
 */
const DIFFERENT_MIN = 8;

/** The required form of a secret, and how to make one. */
export const SECRET_EXPECTED =
  'expected a secret of 128 bits: 32 hexadecimal digits, 22 characters with letters of both cases, or 64 of any kind; make one with: openssl rand -base64 24';

/**
 * Returns whether a secret has 128 bits, so that it cannot be guessed, not even from a value derived from it
 * (PROTOCOL.md, clause TOP-2). Patterns and long words are refused.
 */
export function isStrongSecret(text: string): boolean {
  const isPattern = new Set(text).size < DIFFERENT_MIN || WORDS.test(text);
  return !isPattern && FORMS.some((form) => form.test(text));
}

const TRIES_MAX = 10;

/**
 * Returns a new secret of this many bytes, as base64url. It avoids one in 50,000 random texts, because that one looks
 * like a word.
 */
export function newSecret(random: Random, bytes = 24): string {
  let secret = random.secret(bytes);
  for (let tries = 1; tries < TRIES_MAX && !isStrongSecret(secret); tries += 1) secret = random.secret(bytes);
  return secret;
}

/** A secret in a file of a person. */
export const strongSecret = z.string().max(CHARS_MAX).refine(isStrongSecret, SECRET_EXPECTED);

/** The samples in the configuration files. Most begin with `sample`, and the others are listed here. */
const SAMPLE = /^\s*(sample(-.*)?|change-me|a-long-random-text|whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw)\s*$/i;

/** Returns whether it is a sample of this project, which is public. */
export function isSampleSecret(secret: string | undefined): boolean {
  return secret !== undefined && SAMPLE.test(secret);
}
