/**
 * MQTT topics begin so (PROTOCOL.md, clauses TOP and SHA). Messages have QoS 1, and only presence is retained. A
 * gateway alone is shard 0, whose topics are older than shards.
 */
const ROOT = 'paybox/v1';
const SHARDS_ROOT = 'paybox/v2';

/** Shards of a cluster at most; they are numbered from 0. */
export const SHARDS_MAX = 1024;

/** The number of a shard; `+` stands for each one but 0. */
type Shard = number | '+';

export type BoxChannel = 'down' | 'up' | 'presence';

function rootOf(shard: Shard): string {
  return shard === 0 ? ROOT : `${SHARDS_ROOT}/${shard}`;
}

/** Returns the topic that a box, or with `+` every box, reads (`down`) or writes (`up`, `presence`) in a shard. */
export function boxTopic(terminalCode: string, channel: BoxChannel, shard: Shard = 0): string {
  return `${rootOf(shard)}/boxes/${terminalCode}/${channel}`;
}

/** Returns the topic of the presence of a shard's gateway. Boxes wait for it. */
export function gatewayPresenceTopic(shard: Shard = 0): string {
  return `${rootOf(shard)}/gateway/presence`;
}

/** A gateway alone, or shard 0, has its presence on this topic. The presence contains the number of shards. */
export const GATEWAY_PRESENCE_TOPIC = gatewayPresenceTopic();

const BOX_TOPIC = /^paybox\/(?:v1|v2\/([1-9]\d{0,3}))\/boxes\/(VVB\d{6})\/(down|up|presence)$/;

/** Parses a topic into shard, box and channel; `undefined` for any other topic. */
export function parseBoxTopic(topic: string): { shard: number; terminalCode: string; channel: BoxChannel } | undefined {
  const match = BOX_TOPIC.exec(topic);
  const shard = Number(match?.[1] ?? 0);
  if (match?.[2] === undefined || shard >= SHARDS_MAX) return undefined;
  return { shard, terminalCode: match[2], channel: match[3] as BoxChannel };
}

/** Topics that a login may read and write. Brokers are configured with exactly these. */
export interface TopicRights {
  read: readonly string[];
  write: readonly string[];
}

/**
 * Returns the topic rights of a box in a shard (PROTOCOL.md, clause TOP-3): its own topics and the gateway's presence.
 */
export function boxRights(terminalCode: string, shard: Shard = 0): TopicRights {
  return {
    read: [boxTopic(terminalCode, 'down', shard), gatewayPresenceTopic(shard)],
    write: [boxTopic(terminalCode, 'up', shard), boxTopic(terminalCode, 'presence', shard)],
  };
}

/** Returns the topic rights of a shard's gateway: the other end of every box's topics. */
export function gatewayRights(shard: Shard = 0): TopicRights {
  const presence = gatewayPresenceTopic(shard);
  return {
    read: [boxTopic('+', 'up', shard), boxTopic('+', 'presence', shard), presence],
    write: [boxTopic('+', 'down', shard), presence],
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
