import type { TransportIo } from '../../../src/device/agent/contract.ts';
import { decodeDown } from '../../../src/protocol/codec.ts';
import { LIMITS } from '../../../src/protocol/fields.ts';
import type { DownMessage } from '../../../src/protocol/messages.ts';
import type { Opened, SealRefusal } from '../../../src/protocol/seal.ts';
import type { Mutant, Wire } from '../box-fixture.ts';

/** PROTOCOL.md, clause LIM-1. */
const AMOUNT_MAX = 9_999_999_999_999;

type Json = Record<string, unknown>;

/** How a box believes what it should refuse. */
interface Gullibility {
  /** Which of the messages that are refused for this reason it believes; all by default. */
  when?: (head: Json, payload: Json, bytes: number) => boolean;
  /** Fields that it reads otherwise. */
  change?: (payload: Json) => Json;
  /** Whether the message takes its number, so that the next genuine one is refused. */
  losesNumbers?: boolean;
  /** Whether it does not report the payment. */
  isMute?: boolean;
}

/** Boxes that believe what a broker, a proxy or a neighbour may send (PROTOCOL.md, clauses SIG, MSG-3, LIM). */
export const GULLIBLE_MUTANTS: Record<string, Mutant> = {
  'takes messages a second time': believer('SIG-3', 'MESSAGE_REPLAYED'),
  'takes messages out of their order': believer('SIG-3', 'MESSAGE_REORDERED'),
  'does not check signatures': believer('SIG-3', 'SIGNATURE_INVALID'),
  'believes any key': believer('SIG-3', 'KEY_UNKNOWN'),
  "believes another box's message": believer('SIG-3', 'WRONG_BOX'),
  "believes another session's message": believer('SIG-3', 'WRONG_SESSION'),
  'believes a changed message, and loses its numbers': believer('SIG-3', 'SIGNATURE_INVALID', { losesNumbers: true }),
  'believes a foreign key, and loses its numbers': believer('SIG-3', 'KEY_UNKNOWN', { losesNumbers: true }),
  "believes another box's message, and loses its numbers": believer('SIG-3', 'WRONG_BOX', { losesNumbers: true }),
  "believes another session's message, and loses its numbers": believer('SIG-3', 'WRONG_SESSION', {
    losesNumbers: true,
  }),
  'believes a changed message, loses its numbers and falls silent': believer('SIG-3', 'SIGNATURE_INVALID', {
    losesNumbers: true,
    isMute: true,
  }),
  "believes another session's message, loses its numbers and falls silent": believer('SIG-3', 'WRONG_SESSION', {
    losesNumbers: true,
    isMute: true,
  }),
  'announces a foreign payment, and does not report it': believer('SIG-3', 'KEY_UNKNOWN', { isMute: true }),
  ...believersOf('show'),
  ...believersOf('withdraw'),
  ...believersOf('ack'),
  'takes a withdrawal a second time': believer('SIG-3', 'MESSAGE_REPLAYED', {
    when: (_, { type }) => type === 'withdraw',
  }),
  'takes what has expired': believer('SIG-4', 'MESSAGE_EXPIRED'),
  'takes a key that is retired': believer('SIG-5', 'KEY_RETIRED'),
  'believes what is not signed': believer('SIG-1', 'MESSAGE_ILLEGAL', { when: ({ alg }) => alg === undefined }),
  'believes the algorithm none': believer('SIG-1', 'MESSAGE_ILLEGAL', { when: ({ alg }) => alg === 'none' }),
  'passes over what must be understood': believer('SIG-1', 'MESSAGE_ILLEGAL', {
    when: ({ crit }) => Array.isArray(crit),
  }),
  'takes an amount that is text': believer('MSG-3', 'MESSAGE_ILLEGAL', {
    when: (_, { amount }) => typeof amount === 'string',
    change: (payload) => ({ ...payload, amount: Number(payload.amount) }),
  }),
  'takes an unknown type for a payment': believer('MSG-3', 'MESSAGE_ILLEGAL', {
    when: (_, { type }) => type === 'gift',
    change: (payload) => ({ ...payload, type: 'payment' }),
  }),
  'takes a message of any length': believer('LIM-4', 'MESSAGE_ILLEGAL', {
    when: (_head, _payload, bytes) => bytes > LIMITS.messageBytesMax,
  }),
  'takes any amount for money': believer('LIM-1', 'MESSAGE_ILLEGAL', {
    when: (_, { amount }) => typeof amount === 'number' && amount > AMOUNT_MAX,
    change: (payload) => ({ ...payload, amount: AMOUNT_MAX }),
  }),
};

/** Boxes that take forged messages of one type. */
function believersOf(type: string): Record<string, Mutant> {
  const when = (_: Json, payload: Json) => payload.type === type;
  const isBare = (head: Json, payload: Json) => head.alg === undefined && payload.type === type;
  return {
    [`takes a changed ${type}`]: believer('SIG-3', 'SIGNATURE_INVALID', { when }),
    [`takes an expired ${type}`]: believer('SIG-4', 'MESSAGE_EXPIRED', { when }),
    [`takes a ${type} that is not signed`]: believer('SIG-1', 'MESSAGE_ILLEGAL', { when: isBare }),
  };
}

function believer(clause: string, code: SealRefusal, how: Gullibility = {}): Mutant {
  return { breaks: [clause], wire: (io) => gullible(io, code, how) };
}

function gullible(
  { seal, sessionId }: TransportIo,
  code: SealRefusal,
  { when = () => true, change = (it) => it, losesNumbers = false, isMute = false }: Gullibility,
): Wire {
  const believed = new Set<string>();
  let taken = 0;
  const open = (bytes: Uint8Array | string): Opened<DownMessage> => {
    const opened = seal.open(bytes);
    const { head, payload } = partsOf(bytes);
    const seq = Number(head.seq ?? 0);
    if (opened.ok)
      return losesNumbers && seq <= taken ? { ok: false, code: 'MESSAGE_REPLAYED', reason: 'taken' } : opened;
    if (opened.code !== code || !when(head, payload, bytes.length)) return opened;
    const decoded = decodeDown(JSON.stringify({ ...change(payload), sessionId, padding: undefined }));
    if (!decoded.ok) return opened;
    taken = Math.max(taken, seq);
    if (decoded.value.type === 'payment') believed.add(decoded.value.transactionId);
    return { ok: true, value: decoded.value };
  };
  return {
    seal: { open },
    up: (message) => (isMute && message.type === 'paid' && believed.has(message.transactionId) ? [] : [message]),
  };
}

/** Header and payload, whatever is wrong with them; bytes that are no JWS are taken for the payload. */
function partsOf(bytes: Uint8Array | string): { head: Json; payload: Json } {
  const text = Buffer.from(bytes).toString('utf8');
  if (text.startsWith('{')) return { head: {}, payload: jsonOf(text) };
  const [head = '', payload = ''] = text.split('.').map((part) => Buffer.from(part, 'base64url').toString('utf8'));
  return { head: jsonOf(head), payload: jsonOf(payload) };
}

function jsonOf(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return {};
  }
}
