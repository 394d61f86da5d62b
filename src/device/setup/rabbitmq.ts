import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { ConfigError } from '../../lib/errors.ts';
import { PACKET_BYTES_MAX } from '../../protocol/packet-limit.ts';
import { GATEWAY_LOGIN, rightsOf } from './brokers.ts';

/* This file makes the files of RabbitMQ 3.10 with its plugin rabbitmq_mqtt. */

const VHOST = '/';
/** Every MQTT topic is a routing key here. */
const EXCHANGE = 'amq.topic';
const SALT_BYTES = 4;
/** A node counts another as dead after about this time without a message. Until then its changes wait. */
const NET_TICK_SECONDS = 5;

/** The part that this code changes. A person's further keys stay. */
const definitions = z.looseObject({
  users: z.array(z.looseObject({ name: z.string() })),
  permissions: z.array(z.looseObject({ user: z.string() })),
  topic_permissions: z.array(z.looseObject({ user: z.string() })),
});

/** Returns a configuration for each node of a RabbitMQ, for the files in `folder`, an absolute path. */
export function rabbitmqConfig(folder: string, port: number, onlyHere: boolean): string {
  return `# RabbitMQ 3.10 with rabbitmq-plugins enable rabbitmq_mqtt, over mutual TLS; the same file for each node.
listeners.tcp = none
mqtt.listeners.tcp = none
mqtt.listeners.ssl.default = ${onlyHere ? '127.0.0.1:' : ''}${port}
ssl_options.cacertfile = ${folder}/ca.pem
ssl_options.certfile = ${folder}/gateway/cert.pem
ssl_options.keyfile = ${folder}/gateway/key.pem
ssl_options.versions.1 = tlsv1.3
ssl_options.versions.2 = tlsv1.2
# Certificate and password are both asked for. This RabbitMQ reads no list of revoked certificates: a lost box is
# kept out by a new password (paybox provision --rotate).
ssl_options.verify = verify_peer
ssl_options.fail_if_no_peer_cert = true
mqtt.allow_anonymous = false
mqtt.vhost = ${VHOST}
mqtt.exchange = ${EXCHANGE}
# Retained messages are each node's own, so one may hold what is long over: boxes ask instead (clause PRE-2).
mqtt.retained_message_store = rabbit_mqtt_retained_msg_store_noop
max_message_size = ${PACKET_BYTES_MAX}
# A node that hangs is given up soon, and rests when it is in the minority.
net_ticktime = ${NET_TICK_SECONDS}
cluster_partition_handling = pause_minority
# Logins, read at each start; for a RabbitMQ that runs: rabbitmqctl import_definitions definitions.json
load_definitions = ${folder}/rabbitmq/definitions.json
# Three nodes find each other by their names, and share a secret in .erlang.cookie:
# cluster_formation.peer_discovery_backend = classic_config
# cluster_formation.classic_config.nodes.1 = rabbit@one
# cluster_formation.classic_config.nodes.2 = rabbit@two
# cluster_formation.classic_config.nodes.3 = rabbit@three
`;
}

/** The definitions of a RabbitMQ without logins. */
export const RABBITMQ_DEFINITIONS = textOf({
  vhosts: [{ name: VHOST }],
  users: [],
  permissions: [],
  topic_permissions: [],
});

/**
 * Adds logins to the definitions with their topic rights, or gives them new passwords. Throws ConfigError for a text that
 * holds no definitions.
 */
export function withRabbitmqUsers(text: string, logins: Readonly<Record<string, string>>, file: string): string {
  const found = definitions.safeParse(parsed(text));
  if (!found.success) throw new ConfigError(`${file}: no definitions of RabbitMQ`, 'correct it, and run this again');
  const { users, permissions, topic_permissions: topics, ...rest } = found.data;
  const isKept = (name: string) => !Object.hasOwn(logins, name);
  const added = Object.entries(logins);
  return textOf({
    ...rest,
    users: [...users.filter(({ name }) => isKept(name)), ...added.map(([name, password]) => userOf(name, password))],
    permissions: [...permissions.filter(({ user }) => isKept(user)), ...added.map(([name]) => permissionsOf(name))],
    topic_permissions: [...topics.filter(({ user }) => isKept(user)), ...added.map(([name]) => topicsOf(name))],
  });
}

function userOf(name: string, password: string) {
  const salt = randomBytes(SALT_BYTES);
  const hash = createHash('sha256').update(salt).update(password).digest();
  return {
    name,
    password_hash: Buffer.concat([salt, hash]).toString('base64'),
    hashing_algorithm: 'rabbit_password_hashing_sha256',
    tags: [],
  };
}

/**
 * Returns the permissions of a login. A connection has its own queue, named by its client id, which begins with the
 * login (clause TOP-6).
 */
function permissionsOf(user: string) {
  const own = `mqtt-subscription-${user}-.*qos[01]`;
  const ownAndAll = `^(${own}|${EXCHANGE.replace('.', '\\.')})$`;
  return { user, vhost: VHOST, configure: `^${own}$`, write: ownAndAll, read: ownAndAll };
}

function topicsOf(user: string) {
  const { read, write } = rightsOf(user);
  // The gateway reads all boxes at once. A wildcard of MQTT is a star in the key.
  const level = user === GATEWAY_LOGIN ? '[^.]+' : '[^.*#]+';
  const keys = (topics: readonly string[]) => `^(${topics.map((it) => keyOf(it, level)).join('|')})$`;
  return { user, vhost: VHOST, exchange: EXCHANGE, write: keys(write), read: keys(read) };
}

function keyOf(topic: string, level: string): string {
  return topic
    .split('/')
    .map((it) => (it === '+' ? level : it))
    .join('\\.');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textOf(content: object): string {
  return `${JSON.stringify(content, undefined, 2)}\n`;
}
