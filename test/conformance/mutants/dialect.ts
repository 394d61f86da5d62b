import type { IClientOptions, IPublishPacket, MqttClient } from 'mqtt';
import type { InboundMessage } from '../../../src/agent/contract.ts';
import { ENROL_TOPIC } from '../../../src/protocol/dialect.ts';
import type { Mutant, Panel } from '../box-fixture.ts';

/** A box that speaks the public dialect otherwise. */
export interface DialectMutant extends Mutant {
  /** Its configuration in `link`. */
  link?: object;
  options?: (options: IClientOptions) => IClientOptions;
  /** What it does with its connection. */
  client?: (client: MqttClient, panel: Panel) => void;
  /** Rules that it lacks. */
  lacks?: 'isPayable' | 'staticQrProblem';
}

const BOX_TOPIC = /^vietqr\/boxId\//;
const ENROL_ANSWER = `${ENROL_TOPIC}/response/`;
type Json = Record<string, unknown>;

/** Changes each packet before the box hears it; undefined for one that it does not hear. */
function hearing(change: (packet: IPublishPacket, client: MqttClient) => IPublishPacket | undefined) {
  return (client: MqttClient) => {
    let own = client.handleMessage;
    Object.defineProperty(client, 'handleMessage', {
      set: (handle: typeof own) => {
        own = handle;
      },
      get: () => (packet: IPublishPacket, done: () => void) => {
        const changed = change(packet, client);
        if (changed === undefined) done();
        else own.call(client, changed, done);
      },
    });
  };
}

/** Changes each notice before the box hears it. */
function reading(change: (notice: Json) => Json | undefined) {
  return hearing((packet) => {
    try {
      const changed = change(JSON.parse(String(packet.payload)) as Json);
      return changed && { ...packet, payload: JSON.stringify(changed) };
    } catch {
      return packet;
    }
  });
}

/** Changes what the box publishes; undefined for nothing. */
function publishing(change: (topic: string, payload: string) => [topic: string, payload: string, qos?: 2] | undefined) {
  return (client: MqttClient) => {
    const publish = client.publish.bind(client) as (...given: unknown[]) => MqttClient;
    Object.assign(client, {
      publish: (topic: string, payload: string, options: object, ...more: unknown[]) => {
        const changed = change(topic, payload);
        if (changed === undefined) return client;
        const [to, text, qos] = changed;
        return publish(to, text, qos === undefined ? options : { ...options, qos }, ...more);
      },
    });
  };
}

/** Takes topics out of the subscriptions of the box, which believes that it has them. */
function withoutTopics(isLeftOut: (topic: string) => boolean, later?: (topics: string[], client: MqttClient) => void) {
  return (client: MqttClient) => {
    const subscribe = client.subscribeAsync.bind(client);
    Object.assign(client, {
      subscribeAsync: async (topics: string[], options: { qos: 1 }) => {
        later?.(topics.filter(isLeftOut), client);
        const wanted = topics.filter((it) => !isLeftOut(it));
        return wanted.length === 0 ? [] : subscribe(wanted, options);
      },
    });
  };
}

/** Counts the connections of each start of the box. */
function sinceStart(
  change: (client: MqttClient, connections: number) => void,
): Pick<DialectMutant, 'setup' | 'client'> {
  let connections = 0;
  return {
    setup: (setup) => {
      connections = 0;
      return setup;
    },
    client: (client) => {
      connections += 1;
      change(client, connections);
    },
  };
}

/** Changes the messages of the box's own session, which the dialect is translated to. */
const told = (change: (message: InboundMessage, panel: Panel) => InboundMessage[]): Pick<Mutant, 'wire'> => ({
  wire: (_io, panel) => ({ down: (message) => change(message, panel) }),
});

const withoutPicture = (name: 'certificate' | 'staticQr') =>
  told((message) => {
    if ((message.type !== 'linked' && message.type !== 'welcome') || message.pictures === undefined) return [message];
    return [{ ...message, pictures: { ...message.pictures, [name]: undefined } }];
  });

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
  'shows an order for a day': { breaks: ['DIA-5'], link: { qrLifetimeSeconds: 86_400 } },
  'says each payment twice': {
    breaks: ['DIA-6'],
    ...told((message) =>
      message.type === 'payment' ? [message, { ...message, transactionId: crypto.randomUUID() }] : [message],
    ),
  },
  'says a payment again that it is told again': { breaks: ['DIA-6'], link: { repeatWindowSeconds: 0 } },
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
  'hears nothing after a long message': { breaks: ['DIA-8'], client: deafAfter((text) => text.length > 4_000) },
};

function takingEveryAnswer() {
  let known = '';
  return hearing(({ topic, payload, ...packet }, client) => {
    const boxId = topic.startsWith(ENROL_ANSWER) && /"boxId":"([^"]+)"/.exec(String(payload))?.[1];
    if (boxId && known !== '' && boxId !== known) client.subscribe(`vietqr/boxId/${boxId}`, { qos: 1 });
    if (boxId) known ||= boxId;
    return { topic, payload, ...packet };
  });
}

function deafAfter(isFatal: (text: string) => boolean) {
  return (client: MqttClient) => {
    let isDeaf = false;
    hearing((packet) => {
      isDeaf ||= isFatal(String(packet.payload));
      return isDeaf ? undefined : packet;
    })(client);
  };
}
