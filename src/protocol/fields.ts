import { z } from 'zod';
import { isPlainText } from '../lib/text.ts';

/** Limits of the fields (PROTOCOL.md, clause LIM): characters, unless the name says bytes. */
export const LIMITS = {
  /** Tag 54 holds at most 13 characters. */
  amountMax: 9_999_999_999_999,
  /** A sum that was paid for an order: its difference from the order's amount is at most an amount. */
  paidMax: 2 * 9_999_999_999_999,
  bankAccountMax: 19,
  orderIdMax: 64,
  /** Tag 62-08 holds at most 25 characters. */
  contentMax: 25,
  /** The decoder accepts a longer purpose in a QR that somebody else made. */
  readPurposeMax: 99,
  /** Section 2.5 of the service specification sets this limit. */
  testCallbackContentMax: 19,
  /** Limits the text beside a QR. The gateway refuses a longer content. */
  pushContentMax: 99,
  userBankNameMax: 70,
  codeFieldMax: 64,
  /** A reference number contains a user name and an id. */
  referenceNumberMax: 128,
  urlMax: 512,
  /** A VietQR payload. A version 20 QR at ECC L has room for 858 bytes; real payloads have fewer than 300. */
  qrCodeMax: 512,
  httpBodyBytesMax: 65_536,
  messageBytesMax: 16_384,
  /** Arrays and objects in one another. */
  jsonDepthMax: 32,
  ackIdsMax: 100,
  openPushIdsMax: 16,
} as const;

/**
 * Text as people write it. Screens, logs and databases would each treat other characters differently (clause ERR-3).
 */
export const freeText = (max: number) =>
  z.string().max(max).refine(isPlainText, 'a control character, an invisible one or half a character');

/** The two codes that name a box. */
export interface BoxName {
  terminalCode: string;
  serialNumber: string;
}

/** Accepts `VVB` and six digits. */
export const boxCode = z.string().regex(/^VVB\d{6}$/, 'VVB followed by six digits, as in VVB000001');

export const amountVnd = z.int().min(1).max(LIMITS.amountMax);

/** 1 to 19 ASCII letters or digits: not all real accounts are numeric. */
export const bankAccount = z.string().regex(/^[A-Za-z0-9]{1,19}$/, '1 to 19 letters or digits');

/** Milliseconds since 1970, until the end of the year 9999: far later times cannot be written as a date. */
export const wallTimeMs = z.int().min(0).max(253_402_300_799_999);
