import { z } from 'zod';
import { due, linkedAccount } from './messages.ts';

// The answers below `/_mock` of a gateway. Its OpenAPI document is made from these schemas.

const time = z.string().describe('ISO 8601, UTC');
const amount = z.int().describe('whole đồng');
const text = z.string();
const test = z.boolean().describe('of a sandbox: no money, whatever the gateway is now (clause MOD-3)');

/** A change that was made. */
export const done = z.strictObject({ status: z.literal('SUCCESS'), message: text });

export const aboutAnswer = z.strictObject({
  baseUrl: text,
  sandbox: z.boolean(),
  mode: z.enum(['sandbox', 'live']),
  partner: z
    .strictObject({
      username: text,
      password: text.nullable().describe('only that of the demo, which is public'),
      hasCallback: z.boolean(),
    })
    .nullable(),
  account: linkedAccount.nullable(),
  box: z.strictObject({ terminalCode: text, serialNumber: text }).nullable(),
  boxPage: text.nullable().describe('address of the page of this box'),
  lastBackupAt: time.nullable(),
});

export const boxAnswer = z.strictObject({
  terminalCode: text,
  serialNumber: text,
  account: linkedAccount.nullable(),
  dialect: text.optional(),
  confirms: z
    .boolean()
    .describe('false: SUCCESS means that the QR was sent while the box was connected (clause VQD-5)'),
  hasSecret: z.boolean().describe('false: the box waits for enrolment'),
  online: z.boolean(),
  transport: text.nullable(),
  sessionId: text.nullable(),
  since: time.nullable(),
  agentVersion: text.nullable(),
  display: text.nullable(),
});

export const orderAnswer = z.strictObject({
  id: text,
  orderId: text,
  partner: text,
  status: text.describe('sent: it was sent to a connected box that confirms nothing'),
  unconfirmed: z.boolean().describe('whether its box confirms nothing'),
  failure: text.nullable().describe('code of its newest push, if that failed'),
  bankAccount: text,
  bankCode: text,
  userBankName: text,
  amount,
  content: text,
  transType: text,
  qrCode: text,
  box: text.nullable(),
  shownOn: text.nullable(),
  createdAt: time.nullable(),
  updatedAt: time.nullable(),
  expiresAt: time.nullable(),
  paidAt: time.nullable(),
  pushes: z.array(
    z.strictObject({
      id: text,
      terminalCode: text,
      status: text,
      code: text.nullable(),
      createdAt: time.nullable(),
      confirmedAt: time.nullable(),
      endedAt: time.nullable(),
    }),
  ),
  paidAmount: amount,
});

/** Two facts of a payment that only a source can tell. */
const sides = { late: z.boolean(), due: due.nullable().describe('if less or more was paid than its order asks for') };

export const paymentAnswer = z.strictObject({
  transactionId: text,
  referenceNumber: text,
  order: text.nullable().describe('id of its order'),
  orderId: text,
  partner: text,
  bankAccount: text,
  bankCode: text,
  amount,
  content: text,
  transType: text,
  paidAt: time.nullable(),
  test,
  source: text.nullable().describe('null: a test callback or an admin'),
  ...sides,
  boxes: z.array(
    z.strictObject({
      terminalCode: text,
      since: time.nullable().describe('from when on the box must announce it'),
      online: z.boolean(),
      registered: z.boolean().describe('false: the box was removed, and reports nothing any more'),
      late: z.boolean().describe('the box lists it, and announces nothing (clauses MSG-13 and MSG-14)'),
      toldAt: time.nullable(),
      reportedAt: time.nullable(),
      recorded: z.boolean().nullable(),
      unconfirmed: text.nullable().optional().describe('of a box that confirms nothing: whether it was sent'),
    }),
  ),
  callback: z.strictObject({ id: text, status: text, warning: text.nullable() }).nullable(),
});

export const creditAnswer = z.strictObject({
  id: text,
  source: text,
  sourceId: text,
  reference: text,
  bankAccount: text,
  virtualAccount: text,
  amount,
  text,
  bankTime: time.nullable(),
  receivedAt: time.nullable(),
  ...sides,
  transactionId: text.nullable().describe('null: its account is not in the system, or it is too old'),
  orderId: text.describe('empty: of an order without one, or of no order'),
  test,
});

export const callbackAnswer = z.strictObject({
  id: text,
  transactionId: text,
  partner: text,
  url: text,
  status: z.enum(['pending', 'delivered', 'failed']),
  warning: text.nullable(),
  createdAt: time.nullable(),
  nextAttemptAt: time.nullable(),
  attemptCount: z.int().describe('of all attempts; attempts has the newest ones'),
  attempts: z.array(
    z.strictObject({
      id: text,
      byHand: z.boolean(),
      startedAt: time.nullable(),
      durationMs: z.number(),
      request: z.strictObject({ method: text, url: text, headers: z.unknown(), body: text }),
      response: z.strictObject({ status: z.int(), body: text.nullable() }).nullable(),
      error: text.nullable(),
    }),
  ),
  test,
});

export const backlogAnswer = z.strictObject({
  waiting: z.int(),
  failed: z.int(),
  oldestWaitingSeconds: z.int(),
  partners: z.array(z.strictObject({ partner: text, waiting: z.int(), failed: z.int() })),
});

export const resentAnswer = done.extend({ callbacks: z.int(), more: z.boolean().describe('whether others are left') });

export const sourceAnswer = z.strictObject({
  name: text,
  kind: text,
  list: z.boolean().describe('whether it offers a list'),
  lastWebhook: time.nullable(),
  lastCatchUp: time.nullable(),
  agreedUpTo: time.nullable(),
  found: z.int().describe('credits found in lists before a webhook told of them'),
  problem: text.nullable(),
});

/** A box that asks to enrol. */
export const enrolmentAnswer = z.strictObject({
  terminalCode: text,
  serialNumber: text,
  requests: z
    .int()
    .describe('more than 1: somebody else uses the name of this box, and only the code shows which is it'),
  from: z.array(text).describe('addresses'),
  since: time,
  replaces: z.boolean().describe('whether acceptance replaces a secret that the box already has'),
});

export type About = z.output<typeof aboutAnswer>;
export type BoxView = z.output<typeof boxAnswer>;
export type OrderView = z.output<typeof orderAnswer>;
export type PaymentView = z.output<typeof paymentAnswer>;
export type CreditView = z.output<typeof creditAnswer>;
export type CallbackView = z.output<typeof callbackAnswer>;
export type EnrolmentView = z.output<typeof enrolmentAnswer>;
export type SourceView = z.output<typeof sourceAnswer>;
