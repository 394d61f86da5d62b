import { z } from 'zod';

const CHARS_MAX = 200;
/** 128 bits in each of the ways that secrets are written in. Words have some 2 bits a character. */
const FORMS = [/^[0-9A-Fa-f]{32,}$/, /^(?=.*[a-z])(?=.*[A-Z])\S{22,}$/, /^.{64,}$/];
/** So long a run of small letters is words: in 43 random characters of base64 it is one in 50,000. */
const WORDS = /[a-z]{15}/;
/** Fewer are a pattern: of 32 random hexadecimal digits, one in 10,000,000 has so few. */
const DIFFERENT_MIN = 8;

/** The form of a secret, and how to make one. */
export const SECRET_EXPECTED =
  'expected a secret of 128 bits: 32 hexadecimal digits, 22 characters with letters of both cases, or 64 of any kind; make one with: openssl rand -base64 24';

/**
 * Whether a text is as long as one has to be that cannot be guessed, also by who is told what is derived from it
 * (PROTOCOL.md, clause TOP-2). What a person thinks up is refused unless it is as long as that, whatever is in it.
 */
export function isStrongSecret(text: string): boolean {
  const isPattern = new Set(text).size < DIFFERENT_MIN || WORDS.test(text);
  return !isPattern && FORMS.some((form) => form.test(text));
}

/** A secret that a person writes into a file. */
export const strongSecret = z.string().max(CHARS_MAX).refine(isStrongSecret, SECRET_EXPECTED);

/** Whether it is one of the samples of this project, which everybody knows. */
export function isSampleSecret(secret: string | undefined): boolean {
  return secret !== undefined && /^sample-/i.test(secret);
}
