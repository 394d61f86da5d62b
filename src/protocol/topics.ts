/** MQTT topics (PROTOCOL.md, clause TOP). Messages have QoS 1; only presence is retained. */
const ROOT = 'paybox/v1';

export type BoxChannel = 'down' | 'up' | 'presence';

/** Topic that a box, or with `+` every box, reads (`down`) or writes (`up`, `presence`). */
export function boxTopic(terminalCode: string, channel: BoxChannel): string {
  return `${ROOT}/boxes/${terminalCode}/${channel}`;
}

/** Topic of the gateway's presence. Boxes wait for it. */
export const GATEWAY_PRESENCE_TOPIC = `${ROOT}/gateway/presence`;

/** Box and channel of a topic; `undefined` for any other topic. */
export function parseBoxTopic(topic: string): { terminalCode: string; channel: BoxChannel } | undefined {
  const match = /^paybox\/v1\/boxes\/(VVB\d{6})\/(down|up|presence)$/.exec(topic);
  if (match?.[1] === undefined) return undefined;
  return { terminalCode: match[1], channel: match[2] as BoxChannel };
}

/** Topics that a login may read and write. Brokers are configured with exactly these. */
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

/** Topic rights of the gateway: the other end of every box's topics. */
export const GATEWAY_RIGHTS: TopicRights = {
  read: [boxTopic('+', 'up'), boxTopic('+', 'presence'), GATEWAY_PRESENCE_TOPIC],
  write: [boxTopic('+', 'down'), GATEWAY_PRESENCE_TOPIC],
};

/** Whether a box may publish to this topic (clause TOP-3). */
export function boxMayPublish(terminalCode: string, topic: string): boolean {
  return boxRights(terminalCode).write.includes(topic);
}

/** Whether a box may subscribe to this filter (clause TOP-3). */
export function boxMaySubscribe(terminalCode: string, filter: string): boolean {
  return boxRights(terminalCode).read.includes(filter);
}
