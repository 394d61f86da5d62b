import { z } from 'zod';
import { LIMITS, freeText as text } from './fields.ts';

/**
 * The service's HTTP API (service specification, sections 2 and 4). The schemas hold types, and sizes where a field has
 * no code of its own, so that what they refuse is E46 (PROTOCOL.md, clause ERR-3); what a value must be beyond that has
 * codes of its own (clauses GEN, SND, CBK).
 */

/** A field whose wrong values, oversized ones included, have a code of their own; the limit of the body bounds it. */
const coded = z.string();

export const tokenResponse = z.object({
  access_token: z.string(),
  token_type: z.literal('Bearer'),
  expires_in: z.int().describe('seconds'),
});

/** `qrType`: 0 dynamic, 1 static, 3 semi-dynamic. */
const QR_TYPES = [0, 1, 3] as const;

export const generateRequest = z.object({
  bankCode: coded,
  bankAccount: coded,
  userBankName: text(LIMITS.userBankNameMax),
  content: coded,
  qrType: z.literal(QR_TYPES).default(0),
  amount: z.number().optional().describe('required for qrType 0 and 3'),
  orderId: text(LIMITS.orderIdMax).optional().describe('required for qrType 0'),
  transType: coded.optional().describe('C or D; required for qrType 0'),
  terminalCode: coded.optional().describe('required for qrType 1 and 3'),
  serviceCode: text(LIMITS.codeFieldMax).optional().describe('required for qrType 3'),
  subTerminalCode: text(LIMITS.codeFieldMax).optional(),
  sign: text(LIMITS.urlMax).optional(),
  urlLink: text(LIMITS.urlMax).optional(),
  note: text(LIMITS.urlMax).optional(),
  additionalData: z.array(z.record(z.string(), z.unknown())).max(20).optional(),
});

export const generateResponse = z.object({
  bankCode: z.string(),
  bankName: z.string(),
  bankAccount: z.string(),
  userBankName: z.string(),
  amount: z.string(),
  content: z.string(),
  qrCode: z.string(),
  imgId: z.string(),
  existing: z.literal([0, 1]),
  transactionId: z.string(),
  transactionRefId: z.string(),
  qrLink: z.string(),
  terminalCode: z.string(),
  subTerminalCode: z.string(),
  serviceCode: z.string(),
  orderId: z.string(),
  additionalData: z.array(z.record(z.string(), z.unknown())),
});

export const sendQrRequest = z.object({
  bankAccount: coded,
  bankCode: coded,
  amount: coded.describe('whole đồng, digits only'),
  content: text(LIMITS.pushContentMax).default(''),
  qrCode: coded,
  terminalCode: coded.default(''),
  serialNumber: coded.default(''),
  orderId: text(LIMITS.orderIdMax).default(''),
  checkSum: coded,
});

/** `message` is the error code, empty on success of a push, the transaction id on success of a test callback. */
export const statusResponse = z.object({ status: z.enum(['SUCCESS', 'FAILED']), message: z.string() });

export const testCallbackRequest = z.object({
  bankAccount: coded,
  content: coded,
  amount: z.number(),
  transType: coded.default('C'),
  bankCode: coded.optional(),
});

/** The payload of the transaction-sync callback (PROTOCOL.md, clause SYN-2); the mixed case of its keys is the service's. */
export const transactionSync = z.object({
  transactionid: z.string(),
  transactiontime: z.int(),
  referencenumber: z.string(),
  amount: z.int(),
  content: z.string(),
  bankaccount: z.string(),
  transType: z.enum(['C', 'D']),
  orderId: z.string(),
  sign: z.string(),
  terminalCode: z.string(),
  urlLink: z.string(),
  serviceCode: z.string(),
  subTerminalCode: z.string(),
});

/** The answer of a partner to a callback that it has processed (PROTOCOL.md, clause SYN-3). */
export const transactionSyncReply = z.object({
  error: z.boolean(),
  errorReason: z.string(),
  toastMessage: z.string(),
  object: z.object({ reftransactionid: z.string() }),
});

export type GenerateRequest = z.infer<typeof generateRequest>;
export type GenerateResponse = z.infer<typeof generateResponse>;
export type SendQrRequest = z.infer<typeof sendQrRequest>;
export type StatusResponse = z.infer<typeof statusResponse>;
export type TestCallbackRequest = z.infer<typeof testCallbackRequest>;
export type TransactionSync = z.infer<typeof transactionSync>;
export type TokenResponse = z.infer<typeof tokenResponse>;

/** Paths below `{base_url}` (service specification, section 4). */
export const PATHS = {
  token: '/api/token_generate',
  generate: '/api/qr/generate-customer',
  sendQr: '/api/tid/send-qr',
  testCallback: '/bank/api/test/transaction-callback',
} as const;

/** Paths of the box's own connection over HTTP (PROTOCOL.md, clause BOX-HTTP), relative to the gateway's origin. */
export const BOX_PATHS = {
  stream: '/box/v1/stream',
  messages: '/box/v1/messages',
} as const;

/** Both sides say that they are there this often (PROTOCOL.md, clauses MSG-11 and BOX-HTTP-3). */
export const BOX_ALIVE_MS = 10_000;
/** A stream over which nothing was read, or for which nothing was posted, for so long is lost (clause BOX-HTTP-3). */
export const BOX_SILENCE_MAX_MS = 15_000;
/** Two signs of life, and the end of a connection that may hang: then a box shows that it is not heard (clause MSG-11). */
export const BOX_UNHEARD_MAX_MS = 25_000;

/** Header that names the session on every request of a box over HTTP. */
export const BOX_SESSION_HEADER = 'paybox-session';

/** Header of a stream's answer: what the hello on it has to answer (PROTOCOL.md, clause SIG-2). */
export const BOX_CHALLENGE_HEADER = 'paybox-challenge';
