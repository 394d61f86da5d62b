import { hashSync } from 'bcryptjs';
import { rightsOf } from './brokers.ts';

/* This file makes the files of NATS 2.9 with JetStream and MQTT. */

/**
 * This is the smallest number. The passwords have 256 random bits, so more rounds would not protect them better, and
 * each login pays for them.
 */
const BCRYPT_ROUNDS = 4;
/** NATS delivers a subscription with QoS 1 by these subjects. */
const DELIVERIES = '$MQTT.sub.>';
const USERS_END = ']';

/** Returns a configuration that all nodes of a NATS share, for the files in `folder`, an absolute path. */
export function natsConfig(folder: string): string {
  return `# NATS 2.9 as a broker of MQTT over mutual TLS: nats-server -c nats.conf. Each node has a node.conf of its own.
include "./node.conf"
mqtt {
  listen: $mqtt_listen
  # Certificate and password are both asked for. NATS reads no list of revoked certificates: a lost box is kept out
  # by a new password (paybox provision --rotate).
  tls {
    ca_file: "${folder}/ca.pem"
    cert_file: "${folder}/gateway/cert.pem"
    key_file: "${folder}/gateway/key.pem"
    verify: true
  }
  # As many as there are nodes, at most 3. Subscriptions are on one node each: on three, each would take half a
  # second to make. Who is not heard after the end of a node subscribes anew (PROTOCOL.md, clauses MSG-11 and PRE-5).
  stream_replicas: $replicas
  consumer_replicas: 1
  consumer_memory_storage: true
}
# A node that hangs is given up soon.
ping_interval: "2s"
ping_max: 2
authorization {
  include "./users.conf"
}
`;
}

/** Returns the part of a configuration that differs between the nodes: an example for the first of three. */
export function natsNode(port: number, onlyHere: boolean): string {
  return `# This node alone: its name, folder and addresses.
server_name: one
mqtt_listen: "${onlyHere ? '127.0.0.1' : '0.0.0.0'}:${port}"
replicas: 1
listen: "127.0.0.1:4222"
jetstream {
  store_dir: "/var/lib/nats"
}
# With three nodes replicas: 3 above, and:
# cluster {
#   name: paybox
#   listen: "0.0.0.0:6222"
#   routes: ["nats://one:6222", "nats://two:6222", "nats://three:6222"]
# }
`;
}

/** A file of logins for NATS, with no login in it. */
export const NATS_USERS = text('# Logins and their rights, one a line.', 'users = [', USERS_END);

/** Adds logins with their topic rights, or gives them new passwords. */
export function withNatsUsers(users: string, logins: Readonly<Record<string, string>>): string {
  const isKept = (line: string) => {
    const name = /user: "([^"]+)"/.exec(line)?.[1];
    return line !== '' && line !== USERS_END && (name === undefined || !Object.hasOwn(logins, name));
  };
  const added = Object.entries(logins).map(([name, password]) => lineOf(name, password));
  return text(...users.split('\n').filter(isKept), ...added, USERS_END);
}

function lineOf(user: string, password: string): string {
  const { read, write } = rightsOf(user);
  const subjects = (topics: readonly string[]) => JSON.stringify(topics.map(subjectOf));
  const rights = `publish: ${subjects(write)}, subscribe: ${subjects([...read, DELIVERIES])}`;
  // NATS recognizes a hash by this prefix. For passwords of less than 72 bytes both prefixes mean the same.
  const hash = hashSync(password, BCRYPT_ROUNDS).replace(/^\$2b\$/, '$2a$$');
  return `  { user: "${user}", password: "${hash}", permissions: { ${rights} } }`;
}

/** Returns a topic as NATS writes it: with dots, and an empty first level is a slash. */
function subjectOf(topic: string): string {
  return topic.replaceAll('/', '.').replace(/^\./, '/.').replaceAll('+', '*');
}

function text(...lines: string[]): string {
  return `${lines.join('\n')}\n`;
}
