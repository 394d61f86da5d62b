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

/** Topic rights of a box (PROTOCOL.md, clause TOP-3): exactly its own topics, without wildcards. */
export function boxMayPublish(terminalCode: string, topic: string): boolean {
  return topic === boxTopic(terminalCode, 'up') || topic === boxTopic(terminalCode, 'presence');
}

/** Topic rights of a box (PROTOCOL.md, clause TOP-3): its own messages and the gateway's presence. */
export function boxMaySubscribe(terminalCode: string, filter: string): boolean {
  return filter === boxTopic(terminalCode, 'down') || filter === GATEWAY_PRESENCE_TOPIC;
}
