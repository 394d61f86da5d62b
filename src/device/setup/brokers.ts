import { createHash, pbkdf2Sync, randomBytes } from 'node:crypto';
import { DIALECT_GATEWAY_RIGHTS, DIALECT_RIGHTS } from '../../protocol/dialect.ts';
import { PACKET_BYTES_MAX } from '../../protocol/packet-limit.ts';
import { boxRights, gatewayRights, type TopicRights } from '../../protocol/topics.ts';

/** The gateway's login at an external broker, and the name in its certificate there. */
export const GATEWAY_LOGIN = 'gateway';

/** The login that boxes of the public dialect and hosts share, as vietqrBoxes.login.username. */
export const VIETQR_LOGIN = 'vietqr-boxes';

/** This is Mosquitto's default. The passwords have 256 random bits, so more rounds would not protect them better. */
const MOSQUITTO_ITERATIONS = 101;
const MOSQUITTO_SALT_BYTES = 12;
const MOSQUITTO_HASH_BYTES = 64;
const EMQX_SALT_BYTES = 16;
/** Returns the topic rights in every lane, for a broker that gateways may share (PROTOCOL.md, clause SHA-1). */
function inEveryLane(rightsIn: (lane: 0 | '+') => TopicRights): TopicRights {
  const [alone, others] = [rightsIn(0), rightsIn('+')];
  return { read: [...alone.read, ...others.read], write: [...alone.write, ...others.write] };
}

const GATEWAY_RIGHTS = inEveryLane(gatewayRights);

/**
 * Returns the topic rights of a login, for a broker with rights by name: of the gateway, of the shared login of the
 * dialect, or of a box.
 */
export function rightsOf(login: string): TopicRights {
  if (login === VIETQR_LOGIN) return DIALECT_RIGHTS;
  if (login !== GATEWAY_LOGIN) return boxRightsAnywhere(login);
  const [own, dialect] = [GATEWAY_RIGHTS, DIALECT_GATEWAY_RIGHTS];
  return { read: [...own.read, ...dialect.read], write: [...own.write, ...dialect.write] };
}

const boxRightsAnywhere = (terminalCode: string) => inEveryLane((lane) => boxRights(terminalCode, lane));

/** Returns the topic rights for Mosquitto (mosquitto.conf(5), acl_file); `%u` is the login name. */
export function mosquittoAcl(): string {
  const lines = (word: string, { read, write }: TopicRights) => [
    ...read.map((topic) => `${word} read ${topic}`),
    ...write.map((topic) => `${word} write ${topic}`),
  ];
  return text(
    '# acl_file of Mosquitto 2: the gateway, and every box its own topics (PROTOCOL.md, clause TOP-3).',
    `user ${GATEWAY_LOGIN}`,
    ...lines('topic', GATEWAY_RIGHTS),
    ...lines('topic', DIALECT_GATEWAY_RIGHTS),
    '',
    '# Boxes and hosts of the public MQTT dialect, if you make this login for them (clause VQD-1).',
    `user ${VIETQR_LOGIN}`,
    ...lines('topic', DIALECT_RIGHTS),
    '',
    '# Mosquitto warns of the two patterns without a login. They stay, because topic lines apply to no box that logs in.',
    ...lines('pattern', boxRightsAnywhere('%u')),
  );
}

/** Returns a line of Mosquitto's password_file: PBKDF2 with SHA-512. */
export function mosquittoPassword(name: string, password: string): string {
  const salt = randomBytes(MOSQUITTO_SALT_BYTES);
  const hash = pbkdf2Sync(password, salt, MOSQUITTO_ITERATIONS, MOSQUITTO_HASH_BYTES, 'sha512');
  return `${name}:$7$${MOSQUITTO_ITERATIONS}$${salt.toString('base64')}$${hash.toString('base64')}`;
}

/** Returns a Mosquitto configuration for the files in `folder`, an absolute path. */
export function mosquittoConfig(folder: string, port: number, onlyHere: boolean): string {
  return `# Mosquitto 2 over mutual TLS: mosquitto -c mosquitto.conf. Its user must be able to read these files.
listener ${port}${onlyHere ? ' 127.0.0.1' : ''}
allow_anonymous false
# Keeps packets from the gateway that are larger than a box may send (PROTOCOL.md, clause LIM-4).
max_packet_size ${PACKET_BYTES_MAX}
# Sends each message at once. Otherwise it waits for the acknowledgement of the one before, up to 40 ms.
set_tcp_nodelay true
acl_file ${folder}/mosquitto/acl
cafile ${folder}/ca.pem
crlfile ${folder}/ca.crl
certfile ${folder}/gateway/cert.pem
keyfile ${folder}/gateway/key.pem
tls_version tlsv1.2
# The name in a certificate is the login; passwords are not looked at.
require_certificate true
use_identity_as_username true
# For boxes without certificates, in place of the two lines above:
# password_file ${folder}/mosquitto/passwords
`;
}

/** Returns the topic rights for EMQX 5.5 or newer, as Erlang terms (authorization type file). */
export function emqxAcl(): string {
  const anyOf = (who: string, action: string, topics: readonly string[]) =>
    `{allow, ${who}, ${action}, [${topics.map((topic) => `"${topic}"`).join(', ')}]}.`;
  const gateway = `{username, "${GATEWAY_LOGIN}"}`;
  const shared = `{username, "${VIETQR_LOGIN}"}`;
  // The rule puts the name into topics, so it must not contain wildcards.
  const boxes = '{username, {re, "^VVB[0-9]{6}$"}}';
  const box = boxRightsAnywhere('$' + '{username}');
  const [up, presence] = [box.write.filter((it) => !isRetained(it)), box.write.filter(isRetained)];
  return text(
    '%% acl.conf of EMQX 5.5 or newer: the gateway, and every box its own topics (PROTOCOL.md, clause TOP-3).',
    '%% Beside it: authorization.no_match = deny; for mutual TLS on the listener verify = verify_peer,',
    `%% fail_if_no_peer_cert = true, mqtt.peer_cert_as_username = cn; mqtt.max_packet_size = ${PACKET_BYTES_MAX / 1_024}KB.`,
    anyOf(gateway, 'subscribe', [...GATEWAY_RIGHTS.read, ...DIALECT_GATEWAY_RIGHTS.read]),
    anyOf(gateway, 'publish', [...GATEWAY_RIGHTS.write, ...DIALECT_GATEWAY_RIGHTS.write]),
    '%% Boxes and hosts of the public MQTT dialect, if you make this login for them (clause VQD-1).',
    anyOf(shared, 'subscribe', DIALECT_RIGHTS.read),
    anyOf(shared, 'publish', DIALECT_RIGHTS.write),
    anyOf(boxes, 'subscribe', box.read),
    anyOf(boxes, '{publish, [{retain, false}]}', up),
    anyOf(boxes, 'publish', presence),
    '{deny, all}.',
  );
}

export const EMQX_USERS_HEAD = 'user_id,password_hash,salt,is_superuser';

/** Returns a line for the user import of EMQX's built-in database, for sha256 with salt_position = suffix. */
export function emqxUser(name: string, password: string): string {
  const salt = randomBytes(EMQX_SALT_BYTES).toString('hex');
  const hash = createHash('sha256').update(password).update(salt).digest('hex');
  return `${name},${hash},${salt},false`;
}

/** Appends lines. Removes earlier lines with the same names. */
export function withLines(lines: string, added: readonly string[]): string {
  const names = new Set(added.map(nameIn));
  const kept = lines.split('\n').filter((it) => it !== '' && !names.has(nameIn(it)));
  return text(...kept, ...added);
}

/** Returns the start of a line, up to the end of its name. */
function nameIn(line: string): string {
  return /^[^:,]+[:,]/.exec(line)?.[0] ?? line;
}

function isRetained(topic: string): boolean {
  return topic.endsWith('/presence');
}

function text(...lines: string[]): string {
  return `${lines.join('\n')}\n`;
}
