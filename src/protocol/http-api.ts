import { z } from 'zod';
import { LIMITS, freeText as text } from './fields.ts';

/**
 * The service's HTTP API (service specification, sections 2 and 4). A schema checks types, and sizes of fields without
 * an error code of their own: its refusal is E46 (PROTOCOL.md, clause ERR-3). Other rules have codes of their own
 * (clauses GEN, SND, CBK). The id of a schema is its name in the OpenAPI of the gateway.
 */

/** A field whose wrong values have their own code, even if they are too long. The limit of the body bounds it. */
const coded = z.string();

/** Validity of a token in seconds (PROTOCOL.md, clause TOK-2). */
export const TOKEN_SECONDS = 300;

export const tokenResponse = z
  .object({
    access_token: z.string(),
    token_type: z.literal('Bearer'),
    expires_in: z.int().describe('seconds'),
  })
  .meta({ id: 'TokenResponse' });

/** `qrType`: 0 dynamic, 1 static, 3 semi-dynamic. */
const QR_TYPES = [0, 1, 3] as const;
/**
 * A text needs this message too. If the gateway reads it as a number (PROTOCOL.md, clause LEN-3), it may only have
 * digits.
 */
const NUMBER_EXPECTED =
  'expected a number, as 79000 (without strict: true also as its digits: no sign, point, separator or leading zero)';

export const generateRequest = z
  .object({
    bankCode: coded,
    bankAccount: coded,
    userBankName: text(LIMITS.userBankNameMax),
    content: coded,
    qrType: z.literal(QR_TYPES, 'expected 0 (dynamic), 1 (static) or 3 (semi-dynamic)').default(0),
    amount: z.number(NUMBER_EXPECTED).optional().describe('required for qrType 0 and 3'),
    orderId: text(LIMITS.orderIdMax).optional().describe('required for qrType 0'),
    transType: coded.optional().describe('C or D; required for qrType 0'),
    terminalCode: coded.optional().describe('required for qrType 1 and 3'),
    serviceCode: text(LIMITS.codeFieldMax).optional().describe('required for qrType 3'),
    subTerminalCode: text(LIMITS.codeFieldMax).optional(),
    sign: text(LIMITS.urlMax).optional(),
    urlLink: text(LIMITS.urlMax).optional(),
    note: text(LIMITS.urlMax).optional(),
    additionalData: z.array(z.record(z.string(), z.unknown())).max(20).optional(),
  })
  .meta({ id: 'GenerateRequest' });

export const generateResponse = z
  .object({
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
  })
  .meta({ id: 'GenerateResponse' });

export const sendQrRequest = z
  .object({
    bankAccount: coded,
    bankCode: coded,
    amount: coded.describe('whole đồng, digits only'),
    content: text(LIMITS.pushContentMax).default(''),
    qrCode: coded,
    terminalCode: coded.default(''),
    serialNumber: coded.default(''),
    orderId: text(LIMITS.orderIdMax).default(''),
    checkSum: coded,
  })
  .meta({ id: 'SendQrRequest' });

/** `message`: the error code; empty after a successful push; the transaction id after a test callback. */
export const statusResponse = z
  .object({ status: z.enum(['SUCCESS', 'FAILED']), message: z.string() })
  .meta({ id: 'StatusResponse' });

export const testCallbackRequest = z
  .object({
    bankAccount: coded,
    content: coded,
    amount: z.number(),
    transType: coded.default('C'),
    bankCode: coded.optional(),
  })
  .meta({ id: 'TestCallbackRequest' });

/** `type`: 0 looks for the orderId in `value`, 1 for the referenceNumber. */
export const checkOrderRequest = z
  .object({
    bankAccount: coded,
    type: z.union([z.number(), coded]).describe('0 or 1, as a number or a text'),
    value: text(LIMITS.referenceNumberMax),
    checkSum: coded.describe('MD5 of bankAccount and user name'),
  })
  .meta({ id: 'CheckOrderRequest' });

/** An order or a payment (PROTOCOL.md, clause CHK-3). Times are seconds since 1970. */
const checkedOrder = z.object({
  referenceNumber: z.string(),
  orderId: z.string(),
  amount: z.int(),
  content: z.string(),
  transType: z.enum(['C', 'D']),
  status: z.literal([0, 1, 2]).describe('0 waits, 1 paid, 2 cancelled or expired'),
  type: z.literal([0, 2]).describe('0 of an order, 2 of none'),
  timeCreated: z.int(),
  timePaid: z.int().describe('0 before it is paid'),
  terminalCode: z.string(),
  note: z.string(),
  refundCount: z.literal(0),
  amountRefunded: z.literal(0),
});

export const checkOrderResponse = z.array(checkedOrder).meta({ id: 'CheckOrderResponse' });

export const cancelQrRequest = z
  .object({
    transactionReceiveId: text(LIMITS.codeFieldMax).describe('the transactionId of the answer of generate'),
  })
  .meta({ id: 'CancelQrRequest' });

/** Payload of the transaction-sync callback (PROTOCOL.md, clause SYN-2). The service mixes the case of its keys. */
export const transactionSync = z
  .object({
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
    /**
     * Present only if both differ: the amount of the order, and the sum paid for it so far (PROTOCOL.md, clause SYN-11).
     */
    orderAmount: z.int().optional(),
    orderPaid: z.int().optional(),
  })
  .meta({ id: 'TransactionSync' });

/** Answer of a partner who has processed a callback (PROTOCOL.md, clause SYN-3). */
export const transactionSyncReply = z
  .object({
    error: z.boolean(),
    errorReason: z.string().nullable(),
    toastMessage: z.string().nullable(),
    object: z.object({ reftransactionid: z.string() }).nullable(),
  })
  .meta({ id: 'TransactionSyncReply' });

export type GenerateRequest = z.infer<typeof generateRequest>;
export type GenerateResponse = z.infer<typeof generateResponse>;
export type SendQrRequest = z.infer<typeof sendQrRequest>;
export type StatusResponse = z.infer<typeof statusResponse>;
export type CheckedOrder = z.infer<typeof checkedOrder>;
export type TestCallbackRequest = z.infer<typeof testCallbackRequest>;
export type TransactionSync = z.infer<typeof transactionSync>;
export type TransactionSyncReply = z.infer<typeof transactionSyncReply>;
export type TokenResponse = z.infer<typeof tokenResponse>;

/**
 * Paths below `{base_url}`: those of the service specification, section 4, and three more of the public service
 * (PROTOCOL.md, clauses CHK and CAN).
 */
export const PATHS = {
  token: '/api/token_generate',
  generate: '/api/qr/generate-customer',
  sendQr: '/api/tid/send-qr',
  testCallback: '/bank/api/test/transaction-callback',
  checkOrder: '/api/transactions/check-order',
  checkEcommerceOrder: '/api/ecommerce-transactions/check-order',
  cancelQr: '/api/tid/cancel-qr',
} as const;

/** Paths of the box's own connection over HTTP (PROTOCOL.md, clause BOX-HTTP), relative to the gateway's origin. */
export const BOX_PATHS = {
  stream: '/box/v1/stream',
  messages: '/box/v1/messages',
} as const;

/** A stream is lost if nothing was read from it for this time (PROTOCOL.md, clause BOX-HTTP-3). */
export const BOX_SILENCE_MAX_MS = 15_000;
/** An event in a box's stream has room for the largest message and the names of its fields. A longer one ends it. */
export const BOX_EVENT_CHARS_MAX = LIMITS.messageBytesMax + 1_024;

/** A refusal has the field and the expected value in this header (PROTOCOL.md, clause ERR-7). */
export const REASON_HEADER = 'x-paybox-reason';
/** An accepted call has its deviations from the specification in this header (PROTOCOL.md, clause LEN-1). */
export const LENIENT_HEADER = 'x-paybox-lenient';
/** An answer has a warning in this header if the call will cause its caller trouble later (PROTOCOL.md, clause GEN-8). */
export const WARNING_HEADER = 'x-paybox-warning';

/** Every request of a box over HTTP names its session in this header. */
export const BOX_SESSION_HEADER = 'paybox-session';

/** A stream's answer has the challenge for the hello on it in this header (PROTOCOL.md, clause SIG-2). */
export const BOX_CHALLENGE_HEADER = 'paybox-challenge';
