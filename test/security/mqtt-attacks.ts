import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { generate, type IConnectPacket, type Packet, parser } from 'mqtt-packet';
import { onTestFinished } from 'vitest';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';

/** Who attacks, with what it has: the login of one box, or none. */
export interface Attacker {
  port: number;
  username?: string;
  password?: string;
}

/** What came of one try. */
export interface Tried {
  /** Messages that came, as topic and payload. */
  received: string[];
  /** Whether the broker let it log in. */
  loggedIn: boolean;
  /** Whether the broker ended the connection. */
  ended: boolean;
}

/** A connection without a word for so long is let be. */
const PATIENCE_MS = 3_000;
const AT_ONCE = 40;
export const PAYLOAD = 'attack';

/** The bytes of packets, also of illegal ones. */
export function bytesOf(...packets: (object | Buffer)[]): Buffer {
  return Buffer.concat(packets.map((it) => (Buffer.isBuffer(it) ? it : generate(it as Packet))));
}

let count = 0;

export function login({ username, password }: Attacker, change: Partial<IConnectPacket> = {}): object {
  count += 1;
  return {
    ...{ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, clientId: `a${count}`, keepalive: 60 },
    ...(username === undefined ? {} : { username, password: Buffer.from(password ?? '') }),
    ...change,
  };
}

/** Sends the bytes over a connection of its own, which stays open when the broker lets it; what came of it, also later. */
async function attempt({ port }: Attacker, bytes: Buffer): Promise<Tried & { socket: Socket }> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  const tried = { received: [] as string[], loggedIn: false, ended: false, socket };
  const done = Promise.withResolvers<void>();
  const read = parser();
  read.on('packet', (packet) => {
    if (packet.cmd === 'publish') tried.received.push(`${packet.topic} ${packet.payload}`);
    if (packet.cmd === 'connack') tried.loggedIn = packet.returnCode === 0 || packet.reasonCode === 0;
    if (packet.cmd === 'pingresp') done.resolve();
  });
  // What the broker answers in another version of the protocol.
  read.on('error', () => undefined);
  socket.on('data', (chunk) => void read.parse(chunk));
  socket.on('error', () => undefined);
  socket.once('close', () => {
    tried.ended = true;
    done.resolve();
  });
  socket.write(Buffer.concat([bytes, generate({ cmd: 'pingreq' })]));
  await Promise.race([done.promise, delay(PATIENCE_MS)]);
  return tried;
}

/** Tries all of them, many at a time. */
export async function tryAll(attacker: Attacker, attacks: readonly Buffer[]): Promise<(Tried & { socket: Socket })[]> {
  const results: (Tried & { socket: Socket })[] = [];
  for (let from = 0; from < attacks.length; from += AT_ONCE) {
    const some = attacks.slice(from, from + AT_ONCE);
    results.push(...(await Promise.all(some.map((bytes) => attempt(attacker, bytes)))));
  }
  return results;
}

const [OWN, VICTIM] = ['VVB000002', 'VVB000001'];
const [DOWN, UP, PRESENCE] = [boxTopic(VICTIM, 'down'), boxTopic(VICTIM, 'up'), boxTopic(VICTIM, 'presence')];

/** Names of what belongs to others, some written so that a careless reader would not see that. */
const NAMES = [
  ...[DOWN, UP, PRESENCE, boxTopic(OWN, 'presence').replace(OWN, 'VVB000003'), `${DOWN}/`, `/${DOWN}`, `${UP}/`],
  ...[`/${UP}`, `${DOWN}\0`, `${DOWN} `, ` ${DOWN}`, DOWN.toUpperCase(), DOWN.toLowerCase(), UP.toUpperCase()],
  ...[DOWN.replace('paybox', 'рaybox'), DOWN.replace('VVB', 'ＶＶＢ'), DOWN.replace('000001', '٠٠٠٠٠١')],
  ...[DOWN.replace('/down', '\u200b/down'), DOWN.replace('/v1', '//v1'), DOWN.replace('/boxes', '/./boxes')],
  ...[DOWN.replace(VICTIM, `${OWN}/../${VICTIM}`), DOWN.replace('/', '%2f'), DOWN.replaceAll('/', '\\')],
  ...['paybox/v1/boxes/%u/down', 'paybox/v1/boxes/%c/down', '%u', '%c', 'paybox/v1/boxes//down', 'paybox/v1/boxes'],
  ...['$SYS/broker/clients/connected', '$SYS', `$share/g/${DOWN}`, `$share/${DOWN}`, `$queue/${DOWN}`, `$queue/${UP}`],
  ...[`$delayed/1/${DOWN}`, `$exclusive/${DOWN}`, `$retain/${DOWN}`, `$local/${DOWN}`, `$share/g/${UP}`, `$dp/${DOWN}`],
  ...['', ' ', '/', '//', '\0', '\ufeff', 'held', 'x'.repeat(65_535), 'é'.repeat(300), '\ud800', `${DOWN}/VVB000002`],
];
const WILDCARDS = [
  ...[
    '#',
    '+',
    '+/#',
    '/#',
    '#/',
    '#/a',
    'a/#/b',
    'a+',
    '+a',
    'a#',
    '##',
    '++',
    '+/+/+/+/+',
    '+/+/+/+/down',
    '+/+/+/+',
  ],
  ...['paybox/#', 'paybox/+', 'paybox/+/#', 'paybox/v1/#', 'paybox/v1/+/+/down', 'paybox/v1/boxes/#'],
  ...['paybox/v1/boxes/+', 'paybox/v1/boxes/+/#', 'paybox/v1/boxes/+/down', 'paybox/v1/boxes/+/up'],
  ...['paybox/v1/boxes/+/presence', 'paybox/v1/boxes/VVB+/down', 'paybox/v1/boxes/VVB00000+/down', `${DOWN}/#`],
  ...[`${DOWN}/+`, `${DOWN}#`, `paybox/v1/boxes/${VICTIM}/#`, `paybox/v1/boxes/${VICTIM}/+`, 'paybox/v1/gateway/#'],
  ...[`paybox/v1/boxes/${OWN}/#`, `paybox/v1/boxes/${OWN}/+`, 'paybox/v1/gateway/+', 'paybox/+/boxes/+/down'],
  ...['$SYS/#', '$SYS/+', '$SYS/broker/log/#', '$+/#', '$share/g/#', '$share/g/paybox/#', '$share/g/+/#', '$share//#'],
  ...[
    '$share/+/#',
    '$share/#',
    '$share',
    '$share/g',
    '$share/g/',
    '$queue/#',
    '$queue/+/#',
    '$delayed/#',
    '$$share/g/#',
  ],
];
const QOS = [0, 1, 2] as const;
const OWN_DOWN = boxTopic(OWN, 'down');

/** Reads of all that is not its own, alone and between what is. */
export function reads(attacker: Attacker): Buffer[] {
  const filters = [...NAMES, ...WILDCARDS, boxTopic(OWN, 'up'), boxTopic(OWN, 'presence')];
  const one = (...subscriptions: { topic: string; qos: number }[]) =>
    bytesOf(login(attacker), { cmd: 'subscribe', messageId: 7, subscriptions });
  return filters.flatMap((topic) => [
    ...QOS.map((qos) => one({ topic, qos })),
    one({ topic: OWN_DOWN, qos: 1 }, { topic, qos: 1 }, { topic: GATEWAY_PRESENCE_TOPIC, qos: 0 }),
    bytesOf(login(attacker), { cmd: 'unsubscribe', messageId: 8, unsubscriptions: [topic] }),
  ]);
}

/** Writes to all that is not its own, each of both halves of QoS 2 among them. */
export function writes(attacker: Attacker): Buffer[] {
  const topics = [...NAMES, ...WILDCARDS, GATEWAY_PRESENCE_TOPIC, `${GATEWAY_PRESENCE_TOPIC}/`, OWN_DOWN];
  return topics.flatMap((topic) =>
    QOS.flatMap((qos) =>
      [true, false].map((retain) =>
        bytesOf(
          login(attacker),
          { cmd: 'publish', topic, payload: PAYLOAD, qos, retain, dup: qos > 0 && retain, messageId: 9 },
          ...(qos === 2 ? [{ cmd: 'pubrel', messageId: 9 }] : []),
        ),
      ),
    ),
  );
}

/** Last wills that would speak for others when the connection is cut. */
export function wills(attacker: Attacker): Buffer[] {
  const topics = [...NAMES, GATEWAY_PRESENCE_TOPIC, OWN_DOWN, ...WILDCARDS.slice(0, 3)].filter((it) => it !== '');
  return topics.flatMap((topic) =>
    QOS.flatMap((qos) =>
      [true, false].map((retain) =>
        bytesOf(login(attacker, { will: { topic, payload: Buffer.from(PAYLOAD), qos, retain } })),
      ),
    ),
  );
}

/** Logins as somebody else, or in a way that the broker should not know; each tries to read and write at once. */
export function masks(attacker: Attacker, victimClientIds: readonly string[]): Buffer[] {
  const { username: own = '', password = '' } = attacker;
  const names = [
    VICTIM,
    'gateway',
    '',
    '#',
    '+',
    `${own}/${VICTIM}`,
    `${own}/../${VICTIM}`,
    `${VICTIM}\0`,
    `${VICTIM} `,
  ];
  const asOther = [...names, VICTIM.toLowerCase(), '%u', '%c', 'root', 'admin', 'ＶＶＢ000001'].flatMap((username) =>
    [password, '', own, VICTIM, '\0', password.slice(1)].map((it) => ({ username, password: Buffer.from(it) })),
  );
  const takeovers = [...victimClientIds, VICTIM, `${VICTIM}/x`, '', 'x'.repeat(10_000), '\0', '#', '../x'].map(
    (clientId) => ({ clientId }),
  );
  const versions = [3, 4, 5].flatMap((protocolVersion) =>
    ['MQIsdp', 'MQTT'].map((protocolId) => ({ protocolId, protocolVersion })),
  );
  const kept = { clean: false, clientId: 'kept' };
  const will = { will: { topic: DOWN, payload: Buffer.from(PAYLOAD), qos: 1, retain: true } };
  const changes = [...asOther, ...versions, kept, { ...kept, ...will }, { keepalive: 0 }, { keepalive: 65_535 }];
  const act = (protocolVersion = 4) =>
    [
      { cmd: 'subscribe', messageId: 7, subscriptions: [{ topic: DOWN, qos: 1 }] },
      { cmd: 'publish', topic: DOWN, payload: PAYLOAD, qos: 1, retain: true, dup: false, messageId: 8 },
    ].map((it) => generate(it as Packet, { protocolVersion }));
  // One whose login is right reads and writes nothing here, or its own connection would be ended for that.
  const right = takeovers.map((change) => bytesOf(login(attacker, change as Partial<IConnectPacket>)));
  const all = changes as (Partial<IConnectPacket> & { protocolVersion?: 3 | 4 | 5 })[];
  return [...right, ...all.map((it) => Buffer.concat([made(login(attacker, it)), ...act(it.protocolVersion)]))];
}

/** A pair that MQTT does not know is written by hand: the name of one version with the number of the other. */
function made(packet: object): Buffer {
  const { protocolId, protocolVersion } = packet as IConnectPacket;
  if (protocolId !== 'MQIsdp' && protocolVersion !== 3) return generate(packet as Packet);
  const legal = generate({ ...packet, protocolId: 'MQIsdp', protocolVersion: 3 } as Packet);
  const version = Buffer.from([protocolVersion ?? 0]);
  return protocolId === 'MQIsdp' ? Buffer.concat([legal.subarray(0, 10), version, legal.subarray(11)]) : legal;
}

/** Packets out of their order, or against the rules of MQTT. */
export function disorders(attacker: Attacker): Buffer[] {
  const enter = () => generate(login(attacker) as Packet);
  const read = generate({ cmd: 'subscribe', messageId: 7, subscriptions: [{ topic: DOWN, qos: 1 }] } as Packet);
  const write = generate({ cmd: 'publish', topic: DOWN, payload: PAYLOAD, qos: 2, messageId: 7 } as Packet);
  const acks = (['puback', 'pubrec', 'pubrel', 'pubcomp'] as const).map((cmd) =>
    generate({ cmd, messageId: 7 } as Packet),
  );
  const ping = generate({ cmd: 'pingreq' });
  const hex = [
    ...['d000', '20020000', '9003000700', 'b0020007', '82020007', 'a2020007', '3000', '30020000', '3203000007', '36'],
    ...[
      '8206000700016103',
      '820600070001610f',
      '800600070001610',
      '3600',
      'f000',
      '00',
      '1000',
      '10ff',
      '10ffffffff7f',
    ],
    ...['30ffffff7f', '30ffffffffff01', '320500016100', '3205000161ffff', '62020000', 'e001ff', 'c001ff', '32ff7f'],
  ].map((it) => Buffer.from(it, 'hex'));
  const big = (bytes: number, topic: string) =>
    generate({ cmd: 'publish', topic, payload: Buffer.alloc(bytes, 'x'), qos: 1, messageId: 7 } as Packet);
  return [
    ...[read, write, ping, ...acks, ...hex],
    ...[
      Buffer.concat([read, write, enter()]),
      Buffer.concat([enter(), enter()]),
      Buffer.concat([enter(), read, enter()]),
    ],
    ...acks.flatMap((ack) => [Buffer.concat([enter(), ack]), Buffer.concat([enter(), write, ack, ack])]),
    ...hex.map((it) => Buffer.concat([enter(), it])),
    Buffer.concat([enter(), ...Array.from({ length: 2_000 }, () => ping)]),
    Buffer.concat([enter(), generate({ cmd: 'disconnect' }), read, write]),
    ...[20_000, 300_000].flatMap((bytes) =>
      [DOWN, UP, boxTopic(OWN, 'up')].map((topic) => Buffer.concat([enter(), big(bytes, topic)])),
    ),
    Buffer.from('GET /status HTTP/1.1\r\nHost: x\r\n\r\n'),
  ];
}
