import type { InboundMessage } from '../../../src/device/agent/contract.ts';
import {
  amountIn,
  BOX_TOPIC,
  type DialectMutant,
  deafAfter,
  dyingOf,
  ENROL_ANSWER,
  forgettingAccount,
  hearing,
  hearingOneAmount,
  INT_MAX,
  N12,
  publishing,
  reading,
  redrawing,
  sinceStart,
  takingEveryAnswer,
  told,
  withoutPicture,
  withoutTopics,
} from './dialect-habits.ts';

/** Wrong boxes of the dialect (PROTOCOL.md, clauses VQD-1, VQD-2, VQD-4 and DIA-1 to DIA-8). */
export const DIALECT_MUTANTS: Record<string, DialectMutant> = {
  'reads what is said to all boxes': {
    breaks: ['VQD-1'],
    client: (client) => {
      client.on('connect', () => client.subscribe('vietqr/boxId/+', { qos: 1 }));
    },
  },
  'believes what is said to all boxes': {
    breaks: ['DIA-8', 'VQD-1'],
    client: (client) => {
      let own = '';
      client.on('connect', () => client.subscribe('vietqr/boxId/+', { qos: 1 }));
      client.on('packetsend', (packet) => {
        const topics = packet.cmd === 'subscribe' ? packet.subscriptions.map(({ topic }) => topic) : [];
        own = topics.find((it) => BOX_TOPIC.test(it) && !it.endsWith('+')) ?? own;
      });
      hearing((packet) => (BOX_TOPIC.test(packet.topic) ? { ...packet, topic: own } : packet))(client);
    },
  },
  'has a login of its own': { breaks: ['VQD-1'], link: { username: 'VVB000001' } },
  'enrols with QoS 2': { breaks: ['VQD-1'], client: publishing((topic, payload) => [topic, payload, 2]) },
  'tells the service what it shows': {
    breaks: ['VQD-1'],
    client: (client) => {
      client.on('connect', () => client.publish('vietqr/boxId/status', '{}', { qos: 1 }));
    },
  },
  'has another salt': { breaks: ['VQD-2'], link: { checkSumSalt: 'another-sample-salt' } },
  'enrols on a topic without the leading slash': {
    breaks: ['VQD-2'],
    client: publishing((topic, payload) => [topic.slice(1), payload]),
  },
  'names its MAC address otherwise': {
    breaks: ['VQD-2'],
    client: publishing((topic, payload) => [topic, payload.replace('macAddr', 'mac')]),
  },
  'writes its checkSum in capitals': {
    breaks: ['VQD-2'],
    client: publishing((topic, payload) => {
      const { checkSum, ...rest } = JSON.parse(payload) as { checkSum: string };
      return [topic, JSON.stringify({ ...rest, checkSum: checkSum.toUpperCase() })];
    }),
  },
  'takes N00 for the end of a QR': {
    breaks: ['VQD-4'],
    client: reading((it) => (it.notificationType === 'N00' ? { ...it, notificationType: 'N12' } : it)),
  },
  'takes every type for a QR': {
    breaks: ['VQD-4'],
    client: reading((it) =>
      /^N(0[1-4]|13|22)$/.test(String(it.notificationType)) ? { ...it, notificationType: 'N17' } : it,
    ),
  },
  'reads amounts in groups only': {
    breaks: ['VQD-4'],
    client: reading((it) => (it.notificationType === 'N17' && !/,/.test(String(it.amount)) ? undefined : it)),
  },
  'wants every field of N16': {
    breaks: ['VQD-4'],
    client: reading((it) => (it.notificationType === 'N16' && it.terminalName === null ? undefined : it)),
  },
  'enrols before it listens for the answer': {
    breaks: ['DIA-1'],
    client: withoutTopics(
      (topic) => topic.startsWith(ENROL_ANSWER),
      (topics, client) => {
        const listen = () => topics.length > 0 && client.subscribe(topics, { qos: 1 });
        // The event comes before the packet.
        client.on('packetsend', (packet) => packet.cmd === 'publish' && queueMicrotask(listen));
      },
    ),
  },
  'listens to one spelling of its MAC address': {
    breaks: ['DIA-1'],
    client: withoutTopics((topic) => topic.startsWith(ENROL_ANSWER) && !topic.includes(':')),
  },
  'keeps its session at the broker': { breaks: ['DIA-1'], options: (options) => ({ ...options, clean: false }) },
  'does not listen again after a reconnect': {
    breaks: ['DIA-1'],
    ...sinceStart((client, connections) => connections > 1 && withoutTopics((it) => BOX_TOPIC.test(it))(client)),
  },
  'asks for its boxId once': {
    breaks: ['DIA-1'],
    client: (client) => {
      let asked = 0;
      publishing((topic, payload) => {
        asked += 1;
        return asked === 1 ? [topic, payload] : undefined;
      })(client);
    },
  },
  'shows no certificate': { breaks: ['DIA-2'], ...withoutPicture('certificate') },
  'shows a certificate that a wallet could pay': { breaks: ['DIA-2'], lacks: 'isPayable' },
  'takes every answer for its own': { breaks: ['DIA-3'], client: takingEveryAnswer() },
  'forgets its account when it restarts': {
    breaks: ['DIA-3'],
    setup: (setup) => ({
      ...setup,
      link: {
        ...setup.link,
        open: (io, signal) => {
          const memory = { read: async () => undefined, write: (text: string) => io.box.memory.write(text) };
          return setup.link.open({ ...io, box: { ...io.box, memory } }, signal);
        },
      },
    }),
  },
  'shows no static QR': { breaks: ['DIA-4'], ...withoutPicture('staticQr') },
  'shows the static QR of anybody': { breaks: ['DIA-4'], lacks: 'staticQrProblem' },
  'shows no order': { breaks: ['DIA-5'], ...told((message) => (message.type === 'show' ? [] : [message])) },
  'keeps the older order': {
    breaks: ['DIA-5'],
    wire: () => {
      let isShowing = false;
      const down = (message: InboundMessage) => {
        if (message.type === 'withdraw' || message.type === 'payment') isShowing = false;
        if (message.type !== 'show') return [message];
        const isFirst = !isShowing;
        isShowing = true;
        return isFirst ? [message] : [];
      };
      return { down };
    },
  },
  'does not know N12': { breaks: ['DIA-5'], ...told((message) => (message.type === 'withdraw' ? [] : [message])) },
  'shows whatever QR it is sent': {
    breaks: ['DIA-5'],
    ...told((message, panel) => {
      if (message.type === 'show') panel.drawn.push({ atMs: 0, qr: message.qrCode });
      return [message];
    }),
  },
  'writes the QR of an order that it may not show anew': { breaks: ['DIA-5'], fails: true, ...redrawing() },
  'counts đồng in 32 bits': {
    breaks: ['DIA-5', 'DIA-6'],
    fails: true,
    client: reading((it) => ({ ...it, ...(amountIn(it) > INT_MAX && { amount: String(amountIn(it) % INT_MAX) }) })),
  },
  'shows an order for a day': { breaks: ['DIA-5'], link: { qrLifetimeSeconds: 86_400 } },
  'says each payment twice': {
    breaks: ['DIA-6'],
    ...told((message) =>
      message.type === 'payment' ? [message, { ...message, transactionId: crypto.randomUUID() }] : [message],
    ),
  },
  'says a payment again that it is told again': { breaks: ['DIA-6'], link: { repeatWindowSeconds: 0 } },
  'takes an equal amount for a payment said before': {
    breaks: ['DIA-6'],
    fails: true,
    client: reading((it) => (it.notificationType === 'N05' ? { ...it, message: 'Da nhan tien' } : it)),
  },
  'hears only the payment of the order on its screen': { breaks: ['DIA-6'], fails: true, client: hearingOneAmount() },
  'knows no payments': { breaks: ['DIA-6'], ...told((message) => (message.type === 'payment' ? [] : [message])) },
  'ends its order at any payment': {
    breaks: ['DIA-6'],
    wire: () => {
      let pushId: string | null = null;
      const down = (message: InboundMessage) => {
        if (message.type === 'show') pushId = message.pushId;
        return message.type === 'payment' ? [{ ...message, pushId }] : [message];
      };
      return { down };
    },
  },
  'shows its static QR to the end of days': {
    breaks: ['DIA-7'],
    client: (client, panel) => {
      client.on('close', () => {
        panel.isFrozen = true;
      });
      client.on('connect', () => {
        panel.isFrozen = false;
      });
    },
  },
  'believes what the broker retains': {
    breaks: ['DIA-8'],
    client: hearing((packet) => ({ ...packet, retain: false })),
  },
  'hears nothing after a message that means nothing': { breaks: ['DIA-8'], client: deafAfter((text) => text === '{') },
  'dies of a message that means nothing, and is back soon': {
    breaks: ['DIA-8'],
    fails: true,
    client: dyingOf((text) => text === '{'),
  },
  'dies of a long message, and is back soon': {
    breaks: ['DIA-8'],
    fails: true,
    client: dyingOf((text) => text.length > 4_000),
  },
  'forgets its order after a message that means nothing': {
    breaks: ['DIA-8'],
    fails: true,
    client: hearing((packet) => (String(packet.payload) === '{' ? { ...packet, payload: N12 } : packet)),
  },
  'forgets its account after a long message': { breaks: ['DIA-8'], fails: true, ...forgettingAccount() },
  'hears nothing after a long message': { breaks: ['DIA-8'], client: deafAfter((text) => text.length > 4_000) },
};
