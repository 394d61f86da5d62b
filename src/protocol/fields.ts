import { z } from 'zod';
import { isPlainText } from '../lib/text.ts';

/** Limits of the fields (PROTOCOL.md, clause LIM). Lengths are characters unless the name says bytes. */
export const LIMITS = {
  /** Tag 54 holds at most 13 characters. */
  amountMax: 9_999_999_999_999,
  bankAccountMax: 19,
  orderIdMax: 64,
  /** Tag 62-08 holds at most 25 characters. */
  contentMax: 25,
  /** Section 2.5 of the service specification. */
  testCallbackContentMax: 19,
  /** The text beside a QR; longer content is refused. */
  pushContentMax: 99,
  userBankNameMax: 70,
  codeFieldMax: 64,
  urlMax: 512,
  /** A VietQR payload; a version 20 QR at ECC L holds 858 bytes, real payloads stay under 300. */
  qrCodeMax: 512,
  httpBodyBytesMax: 65_536,
  messageBytesMax: 16_384,
  ackIdsMax: 100,
  openPushIdsMax: 16,
} as const;

/** Text as people write it: screens, logs and other databases would each do something else with the rest (clause ERR-3). */
export const freeText = (max: number) =>
  z.string().max(max).refine(isPlainText, 'a control character, an invisible one or half a character');

/** `VVB` and six digits. */
export const boxCode = z.string().regex(/^VVB\d{6}$/, 'VVB followed by six digits, as in VVB000001');

export const amountVnd = z.int().min(1).max(LIMITS.amountMax);

/** 1 to 19 ASCII letters or digits: real accounts are not all numeric. */
export const bankAccount = z.string().regex(/^[A-Za-z0-9]{1,19}$/, '1 to 19 letters or digits');

/** Milliseconds since 1970, up to the end of the year 9999: no calendar has words for what is far beyond. */
export const wallTimeMs = z.int().min(0).max(253_402_300_799_999);
