/**
 * MQTT topics begin so (PROTOCOL.md, clauses TOP and SHA). Messages have QoS 1, and only presence is retained. A
 * gateway alone has lane 0.
 */
const ROOT = 'paybox/v1';
const LANES_ROOT = 'paybox/v2';

/** Lanes at most; they are numbered from 0. */
export const LANES_MAX = 1024;

/** The number of a lane; `+` stands for each one but 0. */
type Lane = number | '+';

export type BoxChannel = 'down' | 'up' | 'presence';

function rootOf(lane: Lane): string {
  return lane === 0 ? ROOT : `${LANES_ROOT}/${lane}`;
}

/** Returns the topic that a box, or with `+` every box, reads (`down`) or writes (`up`, `presence`) in a lane. */
export function boxTopic(terminalCode: string, channel: BoxChannel, lane: Lane = 0): string {
  return `${rootOf(lane)}/boxes/${terminalCode}/${channel}`;
}

/** Returns the topic of the presence of a lane's gateway. Boxes wait for it. */
export function gatewayPresenceTopic(lane: Lane = 0): string {
  return `${rootOf(lane)}/gateway/presence`;
}

/**
 * Returns the topic on which the gateway of a lane hears the other gateways (clause SHA-1). The rights of presence, which
 * brokers have for every lane, let only gateways write there.
 */
export function gatewaysTopic(lane: number): string {
  return `${LANES_ROOT}/gateways-${lane}/gateway/presence`;
}

/** A gateway alone, or lane 0, has its presence on this topic. The presence contains the number of lanes. */
export const GATEWAY_PRESENCE_TOPIC = gatewayPresenceTopic();

const BOX_TOPIC = /^paybox\/(?:v1|v2\/([1-9]\d{0,3}))\/boxes\/(VVB\d{6})\/(down|up|presence)$/;

/** Parses a topic into lane, box and channel; `undefined` for any other topic. */
export function parseBoxTopic(topic: string): { lane: number; terminalCode: string; channel: BoxChannel } | undefined {
  const match = BOX_TOPIC.exec(topic);
  const lane = Number(match?.[1] ?? 0);
  if (match?.[2] === undefined || lane >= LANES_MAX) return undefined;
  return { lane, terminalCode: match[2], channel: match[3] as BoxChannel };
}

/** Topics that a login may read and write. Brokers are configured with exactly these. */
export interface TopicRights {
  read: readonly string[];
  write: readonly string[];
}

/**
 * Returns the topic rights of a box in a lane (PROTOCOL.md, clause TOP-3): its own topics and the gateway's presence.
 */
export function boxRights(terminalCode: string, lane: Lane = 0): TopicRights {
  return {
    read: [boxTopic(terminalCode, 'down', lane), gatewayPresenceTopic(lane)],
    write: [boxTopic(terminalCode, 'up', lane), boxTopic(terminalCode, 'presence', lane)],
  };
}

/** Returns the topic rights of a lane's gateway: the other end of every box's topics. */
export function gatewayRights(lane: Lane = 0): TopicRights {
  const presence = gatewayPresenceTopic(lane);
  return {
    read: [boxTopic('+', 'up', lane), boxTopic('+', 'presence', lane), presence],
    write: [boxTopic('+', 'down', lane), presence],
  };
}

/** Returns whether a box may publish to this topic at a gateway alone (clause TOP-3). */
export function boxMayPublish(terminalCode: string, topic: string): boolean {
  return boxRights(terminalCode).write.includes(topic);
}

/** Returns whether a box may subscribe to this filter at a gateway alone (clause TOP-3). */
export function boxMaySubscribe(terminalCode: string, filter: string): boolean {
  return boxRights(terminalCode).read.includes(filter);
}
