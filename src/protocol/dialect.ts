import { createHash } from 'node:crypto';
import { z } from 'zod';
import { type Decoded, decodeWith } from './codec.ts';
import { amountVnd, boxCode, LIMITS } from './fields.ts';
import type { TopicRights } from './topics.ts';

/**
 * The public MQTT dialect of payment boxes, `vietqr` (PROTOCOL.md, clause VQD), for both sides. Salts and logins are
 * configuration. An `input` type is the message on the wire, an `output` type the decoded one.
 */

/** A box asks here for its boxId. Only this topic begins with a slash (clause VQD-2). */
export const ENROL_TOPIC = '/vqr/handle-box';

/** Six bytes in hexadecimal, with colons, dots, dashes or nothing between them. */
export const macAddress = z
  .string()
  .regex(/^[0-9A-Fa-f]{2}(?:[:.-]?[0-9A-Fa-f]{2}){5}$/, 'a MAC address, as 02:00:5E:10:00:01');

/** Returns the twelve digits of a MAC address in upper case: equal for all spellings of one address. */
export function macDigits(macAddr: string): string {
  return withoutSeparators(macAddr).toUpperCase();
}

/** Returns a MAC address in the spelling of the firmware: upper case with colons. */
export function macWithColons(macAddr: string): string {
  return macDigits(macAddr).match(/../g)?.join(':') ?? '';
}

/** Topics of the answer to an enrolment: newer servers name the MAC address as sent, older ones without separators. */
export function enrolAnswerTopics(macAddr: string): string[] {
  return [...new Set([macAddr, withoutSeparators(macAddr)])].map((it) => `${ENROL_TOPIC}/response/${it}`);
}

function withoutSeparators(macAddr: string): string {
  return macAddr.replaceAll(/[:.-]/g, '');
}

/**
 * Returns the lower-case hexadecimal MD5 of the MAC address as sent and the salt that all boxes share (clause VQD-2).
 */
export function macCheckSum(macAddr: string, checkSumSalt: string): string {
  return createHash('md5')
    .update(macAddr + checkSumSalt, 'utf8')
    .digest('hex');
}

/** Returns the boxId of a box code: unpadded base64url of the code and the salt that all boxes share. */
export function boxIdOf(terminalCode: string, boxIdSalt: string): string {
  return Buffer.from(terminalCode + boxIdSalt, 'utf8').toString('base64url');
}

/** Returns the box code in a boxId with any salt, as vending firmware reads it; undefined if there is none. */
export function boxCodeIn(boxId: string): string | undefined {
  const code = boxCode.safeParse(Buffer.from(boxId, 'base64url').toString('utf8').slice(0, 9));
  return code.success ? code.data : undefined;
}

/** Returns the topic of the messages to one box. */
export function boxIdTopic(boxId: string): string {
  return `vietqr/boxId/${boxId}`;
}

const short = z.string().max(LIMITS.urlMax);
/** A field that a server may leave out or send as null. */
const optionalText = short.nullish().transform((it) => it ?? '');

export const enrolRequest = z.object({ macAddr: macAddress, checkSum: z.string().max(LIMITS.codeFieldMax) });
export type EnrolRequest = z.output<typeof enrolRequest>;

export const enrolAnswer = z.object({
  /** Shown as a QR, for the merchant's app to scan. */
  qrCertificate: short.min(1),
  boxId: z.string().regex(/^[A-Za-z0-9_-]{1,256}$/, 'letters, digits, - and _'),
});
export type EnrolAnswer = z.output<typeof enrolAnswer>;

/** Whole đồng, in groups as `50,000` or `50.000`, perhaps with `+`, a fraction `.0` and the currency. */
const AMOUNT_TEXT = /^\+?(\d{1,3}(?:([.,])\d{3}(?:\2\d{3})*)?|\d+)(?:\.0{1,2})?\s*(?:VND|VNĐ|đ|₫)?$/iu;

/** Returns an amount in the spelling of the dialect: `50,000`. */
export function amountText(amount: number): string {
  return String(amount).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Returns the amount in đồng that a text names; undefined if it names none. */
export function amountOfText(text: string): number | undefined {
  const digits = AMOUNT_TEXT.exec(text.trim())?.[1]?.replaceAll(/[.,]/g, '');
  const amount = amountVnd.safeParse(Number(digits));
  return amount.success ? amount.data : undefined;
}

/** A grouped text, or a number as some builds send it. */
const amount = z.union([z.string().max(LIMITS.codeFieldMax), z.number()]).transform((it, context) => {
  const found = amountOfText(String(it));
  if (found === undefined) context.addIssue({ code: 'custom', message: 'expected whole đồng, as 50,000' });
  return found ?? z.NEVER;
});

const linked = z.object({
  notificationType: z.literal('N16'),
  bankAccount: short.min(1),
  bankShortName: optionalText,
  userBankName: optionalText,
  terminalCode: optionalText,
  terminalName: optionalText,
  qrCode: z.string().min(1).max(LIMITS.qrCodeMax),
  bankCode: optionalText,
  /** Always sent empty. */
  imgBank: optionalText,
  homePage: optionalText,
});
const shown = z.object({
  notificationType: z.literal('N17'),
  amount,
  qrCode: z.string().min(1).max(LIMITS.qrCodeMax),
});
const paid = z.object({ notificationType: z.literal('N05'), amount, message: optionalText });
const cancelled = z.object({ notificationType: z.literal('N12'), transactionReceiveId: optionalText });
const connected = z.object({ notificationType: z.literal('N00') });

/**
 * Messages to a box: N16 its account with a static QR, N17 a dynamic QR, N05 a payment, N12 the end of the dynamic QR,
 * N00 connected. None has an id or an expiry, and a box answers none.
 */
export const boxNotice = z.discriminatedUnion('notificationType', [linked, shown, paid, cancelled, connected]);
export type BoxNotice = z.output<typeof boxNotice>;
export type WireNotice = z.input<typeof boxNotice>;

/** Decodes a message on a box's topic; other types than the five are refused. Never throws. */
export function decodeNotice(bytes: Uint8Array | string): Decoded<BoxNotice> {
  return decodeWith(boxNotice, bytes);
}

/** Decodes the request of a box that enrols. Never throws. */
export function decodeEnrolRequest(bytes: Uint8Array | string): Decoded<EnrolRequest> {
  return decodeWith(enrolRequest, bytes);
}

/** Decodes the answer to an enrolment. Never throws. */
export function decodeEnrolAnswer(bytes: Uint8Array | string): Decoded<EnrolAnswer> {
  return decodeWith(enrolAnswer, bytes);
}

/** Firmware drops a longer packet without a word (clause VQD-4). */
export const FIRMWARE_PACKET_BYTES_MAX = 1024;

/** Returns bytes of the MQTT packet that carries this payload with QoS 1. */
export function packetBytes(topic: string, payload: string): number {
  const rest = 2 + Buffer.byteLength(topic) + 2 + Buffer.byteLength(payload);
  return 1 + (rest < 128 ? 1 : rest < 16_384 ? 2 : 3) + rest;
}

/** A call of a host, a program that uses the service over MQTT (clause VQD-7). */
export type HostCall = 'generate' | 'status' | 'testCallback';

const HOST_TOPICS: readonly { call: HostCall; ask: string; answers: readonly string[]; named: boolean }[] = [
  { call: 'generate', ask: 'vietqr/request', answers: ['vietqr/response'], named: true },
  { call: 'generate', ask: 'vietqr/requestQR', answers: ['vietqr/responseQR'], named: true },
  { call: 'status', ask: 'vietqr/request-status', answers: ['vietqr/response-status'], named: true },
  {
    call: 'testCallback',
    ask: 'vietqr/test/transaction-callback',
    answers: ['vietqr/response/transaction-callback', 'vietqr/transaction-callback/response'],
    named: false,
  },
];

/** Names a topic on which a host asks, and the topics of its answer. */
export interface HostTopic {
  call: HostCall;
  /** The code in the topic; empty if there is none. */
  terminalCode: string;
  /** Returns the topics of the answer. The terminalCode of the body counts before that of the topic. */
  answersFor(terminalCode: string): string[];
}

/** Returns the call that belongs to a topic; undefined for any other topic. */
export function parseHostTopic(topic: string): HostTopic | undefined {
  for (const { call, ask, answers, named } of HOST_TOPICS) {
    const code = topic.startsWith(`${ask}/`) ? topic.slice(ask.length + 1) : '';
    if (named ? code === '' || !isOneLevel(code) : topic !== ask) continue;
    return { call, terminalCode: code, answersFor: (it) => answers.map((to) => (named ? `${to}/${it}` : to)) };
  }
  return undefined;
}

/**
 * Returns whether a text can be one level of a topic. Brokers end connections for control characters and
 * non-characters.
 */
export function isOneLevel(text: string): boolean {
  return /^[^/+#\p{C}]{1,256}$/u.test(text);
}

/** Returns the topic on which hosts receive the payments of a terminal. */
export function paidTopic(terminalCode: string): string {
  return `vietqr/bdsd/${terminalCode}`;
}

/** The message on that topic. `timePaid` is `dd/MM/yyyy HH:mm:ss` in Vietnam's time. */
export const paidToHost = z.object({
  bankAccount: z.string(),
  amount: z.number(),
  timePaid: z.string(),
  transType: z.enum(['C', 'D']),
  referenceNumber: z.string(),
  content: z.string(),
  orderId: z.string(),
  status: z.literal(1),
});
export type PaidToHost = z.output<typeof paidToHost>;

/**
 * The gateway does not answer these calls. A host whose broker refuses them would lose its connection (clause VQD-7).
 */
const UNANSWERED_TOPICS = ['vietqr/cash', 'vietqr/refund-request'];
const oneOf = (topics: readonly string[]) => topics.map((it) => `${it}/+`);
const asks = HOST_TOPICS.map(({ ask, named }) => (named ? `${ask}/+` : ask));

/** Topic rights of the login that boxes and hosts share (clause VQD-1). */
export const DIALECT_RIGHTS: TopicRights = {
  read: [
    ...oneOf([`${ENROL_TOPIC}/response`, 'vietqr/boxId', 'vietqr/bdsd']),
    ...HOST_TOPICS.flatMap(({ answers, named }) => (named ? oneOf(answers) : answers)),
  ],
  write: [ENROL_TOPIC, ...asks, ...oneOf(UNANSWERED_TOPICS)],
};

/** Topic rights of a gateway with such boxes: the other end. */
export const DIALECT_GATEWAY_RIGHTS: TopicRights = { read: [ENROL_TOPIC, ...asks], write: DIALECT_RIGHTS.read };

/** Returns whether the rights allow a topic without wildcards. In them `+` stands for one level. */
export function isAmong(rights: readonly string[], topic: string): boolean {
  const levels = topic.split('/');
  return rights.some((it) => {
    const wanted = it.split('/');
    return wanted.length === levels.length && wanted.every((name, at) => fits(name, levels[at] ?? ''));
  });
}

function fits(wanted: string, level: string): boolean {
  return wanted === '+' ? isOneLevel(level) : wanted === level;
}
