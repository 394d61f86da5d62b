/** MQTT topics (PROTOCOL.md, clause TOP). All messages go with QoS 1; only presence is retained. */
const ROOT = 'paybox/v1';

export type BoxChannel = 'down' | 'up' | 'presence';

/** Where a box, or with `+` every box, reads (`down`) and writes (`up`, `presence`). */
export function boxTopic(terminalCode: string, channel: BoxChannel): string {
  return `${ROOT}/boxes/${terminalCode}/${channel}`;
}

/** Where the gateway says that it is there. Boxes read it and wait for it. */
export const GATEWAY_PRESENCE_TOPIC = `${ROOT}/gateway/presence`;

/** The box and channel that a topic names, or `undefined` for any other topic. */
export function parseBoxTopic(topic: string): { terminalCode: string; channel: BoxChannel } | undefined {
  const match = /^paybox\/v1\/boxes\/(VVB\d{6})\/(down|up|presence)$/.exec(topic);
  if (match?.[1] === undefined) return undefined;
  return { terminalCode: match[1], channel: match[2] as BoxChannel };
}

/** The topics that a login may read and write; brokers are configured with exactly these. */
export interface TopicRights {
  read: readonly string[];
  write: readonly string[];
}

/** Topic rights of a box (PROTOCOL.md, clause TOP-3): its own topics and the gateway's presence, without wildcards. */
export function boxRights(terminalCode: string): TopicRights {
  return {
    read: [boxTopic(terminalCode, 'down'), GATEWAY_PRESENCE_TOPIC],
    write: [boxTopic(terminalCode, 'up'), boxTopic(terminalCode, 'presence')],
  };
}

/** Topic rights of the gateway at a broker of its own: the other end of every box's topics. */
export const GATEWAY_RIGHTS: TopicRights = {
  read: [boxTopic('+', 'up'), boxTopic('+', 'presence'), GATEWAY_PRESENCE_TOPIC],
  write: [boxTopic('+', 'down'), GATEWAY_PRESENCE_TOPIC],
};

/** Clause TOP-3, for a topic that a box publishes to. */
export function boxMayPublish(terminalCode: string, topic: string): boolean {
  return boxRights(terminalCode).write.includes(topic);
}

/** Clause TOP-3, for a filter that a box subscribes to. */
export function boxMaySubscribe(terminalCode: string, filter: string): boolean {
  return boxRights(terminalCode).read.includes(filter);
}
