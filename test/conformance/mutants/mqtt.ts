import type { IClientOptions, MqttClient } from 'mqtt';
import { GATEWAY_PRESENCE_TOPIC } from '../../../src/protocol/topics.ts';

/** A box that uses its broker otherwise. */
export interface MqttMutant {
  breaks: readonly string[];
  /** How it connects. */
  options?: (options: IClientOptions) => IClientOptions;
  /** What it does with its connection. */
  client?: (client: MqttClient) => void;
}

/** Wrong boxes over MQTT (PROTOCOL.md, clauses TOP and PRE). */
export const MQTT_MUTANTS: Record<string, MqttMutant> = {
  'has no last will': { breaks: ['PRE-1'], options: ({ will: _, ...options }) => options },
  'has a client id that tells its session': {
    breaks: ['TOP-6'],
    options: (options) => {
      const { sessionId = '' } = JSON.parse(String(options.will?.payload ?? '{}')) as { sessionId?: string };
      return { ...options, clientId: sessionId.replaceAll('-', '').slice(0, 23) };
    },
  },
  'keeps its subscriptions at the broker': { breaks: ['TOP-1'], options: (options) => ({ ...options, clean: false }) },
  'wants to read everything': {
    breaks: ['TOP-3'],
    client: (client) => {
      client.on('connect', () => client.subscribe('#', { qos: 1 }, () => undefined));
    },
  },
  'does not say how long it may be silent': {
    breaks: ['TOP-4'],
    options: (options) => ({ ...options, keepalive: 0 }),
  },
  'does not care whether its gateway is present': {
    breaks: ['PRE-2'],
    client: (client) => {
      const emit = client.emit.bind(client) as (...given: unknown[]) => boolean;
      let isKnown = false;
      Object.assign(client, {
        emit: (...given: unknown[]) => {
          const isPresence = given[0] === 'message' && given[1] === GATEWAY_PRESENCE_TOPIC;
          if (isPresence && isKnown) return true;
          isKnown ||= isPresence;
          return emit(...given);
        },
      });
    },
  },
};
