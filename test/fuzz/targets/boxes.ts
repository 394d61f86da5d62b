import { randomUUID } from 'node:crypto';
import { generate, type IConnectPacket } from 'mqtt-packet';
import { checkSum } from '../../../src/protocol/checksum.ts';
import { BOX_REFUSALS } from '../../../src/protocol/codes.ts';
import { PATHS } from '../../../src/protocol/http-api.ts';
import { loginOf } from '../../../src/protocol/keys.ts';
import { ENDS, type UpBody, type UpMessage } from '../../../src/protocol/messages.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../../src/protocol/topics.ts';
import { anyChar, fc } from '../../support/properties.ts';
import { mutated } from '../bytes.ts';
import { BODIES, BOX1, BOX2, MESSAGES_UP, PARTNER, PRESENCES } from '../corpus.ts';
import { type FuzzedGateway, holdRefusal, openBox, openGateway, unchangedBy } from '../gateway.ts';
import { exchange, requestOf } from '../http.ts';
import { mutatedJson, sampled } from '../json.ts';
import { hold, type Target } from '../target.ts';

/** A message that is no legal one is refused by name and changes nothing; a legal one is for its own session. */
const messages: Target['open'] = async (world) => {
  const gateway = await openGateway(world);
  const box = await openBox(gateway, BOX1, world);
  return unchangedBy(gateway, async (message) => {
    const answer = await box.post(message);
    if (answer.status === 202) return true;
    if (answer.status !== 409) holdRefusal(answer);
    return false;
  });
};

/** As of a message in the corpus, but mostly of the session in use, which only the stage knows. */
const SESSION = /"sessionId":"[^"]*"/;

const ownMessages: Target['open'] = async (world) => {
  const gateway = await openGateway(world);
  const box = await openBox(gateway, BOX1, world);
  const own = `"sessionId":"${box.sessionId}"`;
  return unchangedBy(gateway, async (message) => {
    const answer = await box.post(Buffer.from(message.toString('latin1').replace(SESSION, own), 'latin1'));
    if (answer.status === 202) return true;
    holdRefusal(answer);
    return false;
  });
};

/** What a hostile box says, with numbers where it picks among what there is. */
const said = fc.record({
  type: fc.constantFrom<UpBody['type']>('hello', 'accepted', 'shown', 'rejected', 'ended', 'paid'),
  about: fc.nat(30),
  wrongSession: fc.nat(9).map((it) => it === 0),
  wrongIdentity: fc.nat(9).map((it) => it === 0),
  amount: fc.integer({ min: 1, max: 9_999_999_999_999 }),
  text: fc.string({ unit: anyChar, maxLength: 40 }),
  code: fc.constantFrom(...BOX_REFUSALS),
  how: fc.constantFrom(...ENDS),
  recorded: fc.boolean(),
});
type Said = typeof said extends fc.Arbitrary<infer T> ? T : never;
const conversation = fc.array(said, { minLength: 1, maxLength: 8 });

function bodyOf(it: Said, id: string): UpBody {
  const { type, text } = it;
  const { terminalCode, serialNumber } = it.wrongIdentity ? BOX2 : BOX1;
  switch (type) {
    case 'hello':
      return { type, terminalCode, serialNumber, agentVersion: text, display: text, shownPushId: id };
    case 'rejected':
      return { type, pushId: id, code: it.code, reason: text };
    case 'ended':
      return { type, pushId: id, orderId: text, how: it.how };
    case 'paid':
      return { type, transactionId: id, orderId: text, amount: it.amount, recorded: it.recorded };
    default:
      return { type, pushId: id };
  }
}

interface View {
  orders: { id: string; status: string; box: string | null; pushes: { id: string }[] }[];
  payments: { transactionId: string; amount: number; boxes: unknown[] }[];
}

async function viewOf(gateway: FuzzedGateway): Promise<View> {
  const [, orders = '[]', payments = '[]'] = (await gateway.settled()).split('\n');
  return { orders: JSON.parse(orders), payments: JSON.parse(payments) };
}

/**
 * A registered box says whatever is legal: it can spoil what is on its own screen, and nothing else. No money comes or
 * goes, what is paid stays paid, and the order on the other box stays as it is.
 */
const hostileBox: Target['open'] = async (world) => {
  const gateway = await openGateway(world);
  const box = await openBox(gateway, BOX1, world);
  await openBox(gateway, BOX2, world);
  const headers = { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json' };
  const call = (path: string, body: string) => gateway.send(requestOf(`POST /vqr${path}`, headers, Buffer.from(body)));
  const right = JSON.parse(String(BODIES.sendQr[0])) as Record<string, string>;
  const push = async (orderId: string, { terminalCode, serialNumber }: typeof BOX1) => {
    const body = { ...right, orderId, terminalCode, serialNumber };
    const answer = await call(
      PATHS.sendQr,
      JSON.stringify({ ...body, checkSum: checkSum(PARTNER.password, right as never) }),
    );
    hold(answer.body.includes('SUCCESS'), () => `the honest push is answered ${answer.text}`);
  };
  await push('OTHER', BOX2);
  const others = ({ orders }: View) =>
    orders.filter((it) => it.box === BOX2.terminalCode).map((it) => JSON.stringify(it));
  let count = 0;
  return {
    feed: async (input) => {
      const sayings = JSON.parse(input.toString()) as Said[];
      await box.hello();
      if (count % 20 === 0) {
        await push(`OWN${count}`, BOX1);
        await call(PATHS.testCallback, String(BODIES.testCallback[2]));
      }
      count += 1;
      const before = await viewOf(gateway);
      // Those of the other box first.
      const orders = before.orders.toSorted(
        (a, b) => Number(a.box === BOX1.terminalCode) - Number(b.box === BOX1.terminalCode),
      );
      const pushes = orders.flatMap((it) => it.pushes.map(({ id }) => id));
      const known = [...pushes.slice(0, 15), ...before.payments.slice(0, 10).map((it) => it.transactionId)];
      let taken = false;
      for (const it of sayings) {
        const id = known[it.about] ?? randomUUID();
        const head = { v: 1, id: it.about % 2 ? id : randomUUID(), sentAtMs: it.amount } as const;
        const sessionId = it.wrongSession ? randomUUID() : box.sessionId;
        const answer = await box.post(box.sealed({ ...head, sessionId, ...bodyOf(it, id) } as UpMessage));
        hold(answer.status === 202 || it.wrongSession, () => `answered ${answer.text} to ${JSON.stringify(it)}`);
        taken ||= answer.status === 202;
      }
      const after = await viewOf(gateway);
      const money = ({ payments }: View) => JSON.stringify(payments.map((it) => ({ ...it, boxes: it.boxes.length })));
      const paid = ({ orders }: View) => JSON.stringify(orders.filter((it) => it.status === 'paid').map((it) => it.id));
      hold(money(after) === money(before), () => 'a box has made, or changed, a payment');
      hold(paid(after) === paid(before), () => 'a box has changed what is paid');
      hold(others(after).join() === others(before).join(), () => 'a box has changed the order of another');
      return taken;
    },
  };
};

const login = (change: Partial<IConnectPacket> = {}) =>
  generate({
    ...{ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, clean: true, clientId: 'c1', keepalive: 30 },
    ...{ username: BOX1.terminalCode, password: Buffer.from(loginOf(BOX1.secret)), ...change },
  } as IConnectPacket);
const publish = (topic: string, payload: Buffer | string, more: object = {}) =>
  generate({ cmd: 'publish', topic, payload, qos: 1, messageId: 7, dup: false, retain: false, ...more });
const subscribe = (topic: string, qos: 0 | 1 | 2 = 1) =>
  generate({ cmd: 'subscribe', messageId: 8, subscriptions: [{ topic, qos }] });
const up = boxTopic(BOX1.terminalCode, 'up');
const PACKETS = [
  ...MESSAGES_UP.map((message) => publish(up, message)),
  ...PRESENCES.map((presence) => publish(boxTopic(BOX1.terminalCode, 'presence'), presence, { retain: true })),
  ...[
    publish(up, '{}', { qos: 2 }),
    publish(up, '', { qos: 0, messageId: undefined }),
    publish(boxTopic(BOX2.terminalCode, 'down'), '{}'),
  ],
  ...[
    subscribe(boxTopic(BOX1.terminalCode, 'down')),
    subscribe('#'),
    subscribe('a+'),
    subscribe(`$share/x/${up}`),
    subscribe('', 2),
  ],
  generate({ cmd: 'unsubscribe', messageId: 9, unsubscriptions: [GATEWAY_PRESENCE_TOPIC] }),
  ...(['puback', 'pubrec', 'pubrel', 'pubcomp'] as const).map((cmd) => generate({ cmd, messageId: 7 } as never)),
  ...[
    generate({ cmd: 'pingreq' }),
    generate({ cmd: 'disconnect' }),
    login(),
    login({ will: { topic: up, payload: Buffer.from('{}'), qos: 1, retain: true } }),
  ],
];
const PATIENCE_MS = 12;

/** Bytes on the broker's port, before or after a login: no order, payment or other box is touched, and it serves on. */
function broker(before: Buffer): Target['open'] {
  return async (world) => {
    const gateway = await openGateway(world);
    const honest = await openBox(gateway, BOX2, world);
    const compared = async () => {
      // Its honest box says hello anew at each check.
      const [boxes = '[]', ...rest] = (await gateway.state()).replaceAll(/,"since":"[^"]*"/g, '').split('\n');
      const others = (JSON.parse(boxes) as { terminalCode: string }[]).filter(
        (it) => it.terminalCode !== BOX1.terminalCode,
      );
      return JSON.stringify([others, rest]);
    };
    const start = await compared();
    return {
      feed: async (bytes) => {
        const { text } = await exchange(gateway.mqttPort, Buffer.concat([before, bytes]), PATIENCE_MS);
        return text.length > 4;
      },
      check: async () => {
        hold((await compared()) === start, () => 'the state changed');
        hold((await honest.hello()).status === 202, () => 'another box is not served');
        const alive = await exchange(gateway.mqttPort, Buffer.concat([login(), generate({ cmd: 'pingreq' })]), 2_000);
        hold(
          alive.text.endsWith('\xd0\x00'),
          () => `the broker answers a login with ${Buffer.from(alive.text).toString('hex')}`,
        );
      },
    };
  };
}

export const BOXES: Target[] = [
  { name: 'box message over HTTP', inputs: 800, make: (chance) => mutatedJson(MESSAGES_UP, chance), open: messages },
  {
    name: 'box message of the session',
    inputs: 1_000,
    make: (chance) => mutatedJson(MESSAGES_UP, chance),
    open: ownMessages,
  },
  {
    name: 'hostile box',
    inputs: 160,
    make: (chance) => Buffer.from(JSON.stringify(sampled(conversation, chance))),
    open: hostileBox,
  },
  {
    name: 'MQTT before the login',
    inputs: 600,
    make: (chance) => mutated(PACKETS, chance),
    open: broker(Buffer.alloc(0)),
  },
  { name: 'MQTT after the login', inputs: 1_000, make: (chance) => mutated(PACKETS, chance), open: broker(login()) },
];
