import type { IClientOptions, IPublishPacket, MqttClient } from 'mqtt';
import type { InboundMessage } from '../../../src/device/agent/contract.ts';
import { ENROL_TOPIC } from '../../../src/protocol/dialect.ts';
import { decodeVietQr, encodeVietQr } from '../../../src/protocol/vietqr.ts';
import type { Mutant, Panel } from '../box-fixture.ts';

/** A box that speaks the public dialect otherwise. */
export interface DialectMutant extends Mutant {
  /** Whether it must fail: a difference is too little. */
  fails?: boolean;
  /** Its configuration in `link`. */
  link?: object;
  options?: (options: IClientOptions) => IClientOptions;
  /** What it does with its connection. */
  client?: (client: MqttClient, panel: Panel) => void;
  /** Rules that it lacks. */
  lacks?: 'isPayable' | 'staticQrProblem';
}

export const INT_MAX = 2 ** 31 - 1;
export const N12 = JSON.stringify({ notificationType: 'N12' });
export const BOX_TOPIC = /^vietqr\/boxId\//;
export const ENROL_ANSWER = `${ENROL_TOPIC}/response/`;
type Json = Record<string, unknown>;

/** Changes each packet before the box hears it; undefined for one that it does not hear. */
export function hearing(change: (packet: IPublishPacket, client: MqttClient) => IPublishPacket | undefined) {
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
export function reading(change: (notice: Json) => Json | undefined) {
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
export function publishing(
  change: (topic: string, payload: string) => [topic: string, payload: string, qos?: 2] | undefined,
) {
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
export function withoutTopics(
  isLeftOut: (topic: string) => boolean,
  later?: (topics: string[], client: MqttClient) => void,
) {
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
export function sinceStart(
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
export const told = (change: (message: InboundMessage, panel: Panel) => InboundMessage[]): Pick<Mutant, 'wire'> => ({
  wire: (_io, panel) => ({ down: (message) => change(message, panel) }),
});

export const withoutPicture = (name: 'certificate' | 'staticQr') =>
  told((message) => {
    if ((message.type !== 'linked' && message.type !== 'welcome') || message.pictures === undefined) return [message];
    return [{ ...message, pictures: { ...message.pictures, [name]: undefined } }];
  });

export function takingEveryAnswer() {
  let known = '';
  return hearing(({ topic, payload, ...packet }, client) => {
    const boxId = topic.startsWith(ENROL_ANSWER) && /"boxId":"([^"]+)"/.exec(String(payload))?.[1];
    if (boxId && known !== '' && boxId !== known) client.subscribe(`vietqr/boxId/${boxId}`, { qos: 1 });
    if (boxId) known ||= boxId;
    return { topic, payload, ...packet };
  });
}

export function deafAfter(isFatal: (text: string) => boolean) {
  return (client: MqttClient) => {
    let isDeaf = false;
    hearing((packet) => {
      isDeaf ||= isFatal(String(packet.payload));
      return isDeaf ? undefined : packet;
    })(client);
  };
}

/** Its connection ends; the box dials again by itself. */
export function dyingOf(isFatal: (text: string) => boolean) {
  return hearing((packet, client) => {
    if (!isFatal(String(packet.payload))) return packet;
    client.stream.destroy();
    return undefined;
  });
}

export function amountIn({ amount = '' }: Json): number {
  return Number(String(amount).replaceAll(',', ''));
}

export function hearingOneAmount() {
  let shown: number | undefined;
  return reading((it) => {
    const { notificationType } = it;
    if (notificationType === 'N17') shown = amountIn(it);
    if (notificationType === 'N12') shown = undefined;
    return notificationType === 'N05' && shown !== undefined && shown !== amountIn(it) ? undefined : it;
  });
}

/** It means well, and writes the amount that was named into the QR. */
export function redrawing() {
  return told((message, panel) => {
    const read = message.type === 'show' ? decodeVietQr(message.qrCode) : undefined;
    if (message.type !== 'show' || read?.ok !== true || read.value.amount === message.amount) return [message];
    panel.drawn.push({ atMs: 0, qr: encodeVietQr({ ...read.value, amount: message.amount }) });
    return [message];
  });
}

export function forgettingAccount(): Pick<DialectMutant, 'client' | 'panel'> {
  let isForgotten = false;
  return {
    client: hearing((packet) => {
      isForgotten ||= packet.payload.length > 4_000;
      return packet;
    }),
    panel: (drawn) => {
      const last = drawn.at(-1);
      const isStatic = last?.qr !== undefined && /^000201010211/.test(last.qr);
      return isForgotten && isStatic ? { ...last, qr: undefined } : last;
    },
  };
}
