import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { Callers } from '../../../src/lib/callers.ts';
import { reasonOf } from '../../../src/lib/errors.ts';
import { readProxyHeader } from '../../../src/lib/proxy-protocol.ts';
import { type Decoded, decodeDown, decodePresence, decodeUp } from '../../../src/protocol/codec.ts';
import { crc16 } from '../../../src/protocol/crc16.ts';
import { LIMITS } from '../../../src/protocol/fields.ts';
import {
  boxMayPublish,
  boxMaySubscribe,
  boxTopic,
  GATEWAY_PRESENCE_TOPIC,
  parseBoxTopic,
} from '../../../src/protocol/topics.ts';
import { decodeVietQr, encodeVietQr } from '../../../src/protocol/vietqr.ts';
import { proxyV2 } from '../../support/callers.ts';
import { mutated } from '../bytes.ts';
import { BOX1, BOX2, MESSAGES_DOWN, MESSAGES_UP, PAYLOADS, PRESENCES } from '../corpus.ts';
import { mutatedJson } from '../json.ts';
import { Broken, hold, holdNamed, pure, type Target } from '../target.ts';

/** Apart from -0, which JSON writes as 0. */
const sameJson = (a: object, b: object) => JSON.stringify(a) === JSON.stringify(b);

/** A message is refused in one line, or is legal by what it decodes to. */
export function decoded(decode: (bytes: Uint8Array | string) => Decoded<object>) {
  return pure((input) => {
    const fromBytes = decode(input);
    if (!fromBytes.ok) {
      hold(!/[\n\r]/.test(fromBytes.reason), () => `more than a line: ${fromBytes.reason}`);
      // A missing field is called undefined in the log, which is read by those who write programs.
      holdNamed(fromBytes.reason.replaceAll('received undefined', ''));
      return false;
    }
    const again = decode(JSON.stringify(fromBytes.value));
    hold(again.ok && sameJson(again.value, fromBytes.value), () => 'what was decoded is not legal');
    hold(isDeepStrictEqual(decode(input.toString()), fromBytes), () => 'text and bytes are not decoded alike');
    hold(Object.getPrototypeOf(fromBytes.value) === Object.prototype, () => 'a message with a prototype of its own');
    return true;
  });
}

const TOPICS = [
  ...(['up', 'down', 'presence'] as const).flatMap((channel) => [
    boxTopic(BOX1.terminalCode, channel),
    boxTopic(BOX2.terminalCode, channel),
  ]),
  ...[GATEWAY_PRESENCE_TOPIC, '#', '+', 'a+', '$SYS/#', `$share/all/${boxTopic(BOX2.terminalCode, 'down')}`, '/', ''],
].map((topic) => Buffer.from(topic));

/** A topic filter that would match a topic, by MQTT 3.1.1, section 4.7. */
function matches(filter: string, topic: string): boolean {
  const [wanted, given] = [filter.split('/'), topic.split('/')];
  const at = wanted.indexOf('#');
  const head = at < 0 ? wanted : wanted.slice(0, at);
  return (
    (at >= 0 || wanted.length === given.length) && head.every((level, index) => level === '+' || level === given[index])
  );
}

const topics: Target['open'] = pure((input) => {
  const topic = input.toString();
  const own = [boxTopic(BOX1.terminalCode, 'up'), boxTopic(BOX1.terminalCode, 'presence')];
  hold(boxMayPublish(BOX1.terminalCode, topic) === own.includes(topic), () => `rights to publish to ${topic}`);
  const others = (['up', 'down', 'presence'] as const).map((channel) => boxTopic(BOX2.terminalCode, channel));
  const maySubscribe = boxMaySubscribe(BOX1.terminalCode, topic);
  hold(!maySubscribe || !others.some((it) => matches(topic, it)), () => `${topic} reads what is another box's`);
  const parsed = parseBoxTopic(topic);
  if (parsed === undefined) return false;
  hold(boxTopic(parsed.terminalCode, parsed.channel, parsed.lane) === topic, () => `${topic} is read as another topic`);
  return true;
});

/** A refusal names its tag; what is taken says the same when it is written anew. */
const vietQr: Target['open'] = pure((input) => {
  const result = decodeVietQr(input.toString('latin1'));
  if (!result.ok) {
    hold(/^\d\d(-\d\d)*$/.test(result.tag) && !/\n/.test(result.reason), () => `tag ${result.tag}: ${result.reason}`);
    holdNamed(result.reason);
    return false;
  }
  // Longer purposes are read and not written (PROTOCOL.md, clause QRP-2).
  if ((result.value.purpose?.length ?? 0) > LIMITS.contentMax) return true;
  const again = decodeVietQr(encodeVietQr(result.value));
  hold(again.ok && isDeepStrictEqual(again.value, result.value), () => 'what was taken is not written as it was read');
  return true;
});

/** Every second payload gets the CRC that it should have, or none would come further than that. */
function sealed(payload: Buffer): Buffer {
  const covered = payload.toString('latin1').slice(0, -4);
  return Buffer.from(covered + crc16(covered), 'latin1');
}

const PROXY_HEADERS = [
  proxyV2({ source: '198.51.100.9' }),
  proxyV2({ source: '2001:db8:0:0:0:0:0:9', extra: Buffer.from('0400024142', 'hex') }),
  proxyV2({ command: 0x20 }),
];

/** A header has an end within what came, and names an address or nobody. */
const proxyHeaders: Target['open'] = pure((input) => {
  try {
    const header = readProxyHeader(input);
    if (header === undefined) return false;
    hold(header.bytes >= 16 && header.bytes <= input.length, () => `${header.bytes} bytes of ${input.length}`);
    hold(header.caller === undefined || isIP(header.caller) !== 0, () => `a caller at ${header.caller}`);
    return true;
  } catch (error) {
    if (error instanceof Broken) throw error;
    holdNamed(reasonOf(error));
    return false;
  }
});

/** Whatever a header names, the caller is an address, and that of the proxy where it names none. */
const forwarded: Target['open'] = () => {
  const callers = new Callers(['10.0.0.0/8']);
  return {
    feed: (input) => {
      const socket = { remoteAddress: '10.0.0.1', remotePort: 1 };
      const headers = { 'x-forwarded-for': input.toString('latin1') };
      const caller = callers.ofPassedOn({ socket, headers } as unknown as IncomingMessage) ?? '';
      hold(isIP(caller) !== 0, () => `a caller at ${caller}`);
      return caller !== '10.0.0.1';
    },
  };
};

const FORWARDED = ['198.51.100.9, 10.0.0.2', '[2001:db8::9]:443', '1.2.3.4:5, 10.1.1.1', 'unknown'].map((it) =>
  Buffer.from(it),
);

export const PROTOCOL: Target[] = [
  {
    name: 'message to a box',
    inputs: 7_000,
    make: (chance) => mutatedJson(MESSAGES_DOWN, chance),
    open: decoded(decodeDown),
  },
  {
    name: 'message from a box',
    inputs: 7_000,
    make: (chance) => mutatedJson(MESSAGES_UP, chance),
    open: decoded(decodeUp),
  },
  { name: 'presence', inputs: 3_000, make: (chance) => mutatedJson(PRESENCES, chance), open: decoded(decodePresence) },
  { name: 'PROXY header', inputs: 1_500, make: (chance) => mutated(PROXY_HEADERS, chance), open: proxyHeaders },
  { name: 'X-Forwarded-For', inputs: 1_000, make: (chance) => mutated(FORWARDED, chance), open: forwarded },
  { name: 'topic', inputs: 3_000, make: (chance) => mutated(TOPICS, chance), open: topics },
  {
    name: 'QR payload',
    inputs: 9_500,
    make: (chance) => {
      const payload = mutated(PAYLOADS, chance);
      return chance.chance(0.5) ? sealed(payload) : payload;
    },
    open: vietQr,
  },
];
