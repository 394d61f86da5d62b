import { TLSSocket } from 'node:tls';
import type { AedesOptions, AuthenticateError, Client } from 'aedes';
import { reasonOf } from '../../lib/errors.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { DIALECT_RIGHTS, isAmong } from '../../protocol/dialect.ts';
import { LimitedSocket } from '../../protocol/packet-limit.ts';
import { isStrongSecret } from '../../protocol/secret.ts';
import { boxMayPublish, boxMaySubscribe, boxTopic } from '../../protocol/topics.ts';
import { boxPasswordOf } from '../common/logins.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';

/** How many subscriptions one connection may have. A box has two, a host a few. */
const SUBSCRIPTIONS_MAX = 64;
/** A QoS 2 message is stored until its handshake ends, which may never happen. */
const QOS_MAX = 1;
/** The CONNACK codes of MQTT for an unavailable server, wrong credentials and missing rights. */
const UNAVAILABLE = 3;
const BAD_CREDENTIALS = 4;
const NOT_AUTHORIZED = 5;

/** The gateway's own login. Boxes do not know it. */
export interface BrokerLogin {
  username: string;
  password: string;
}

/** Returns the checks of each login at the broker (PROTOCOL.md, clauses TOP-2, TOP-3, VQD-1 and TOK-6). */
export function rights({ config, random, log }: World, stored: Stored, login: BrokerLogin): AedesOptions {
  const shared = config.vietqrBoxes?.login;
  const { mayPublish, maySubscribe } = topicRights(shared?.username);
  const subscribed = new WeakMap<Client, number>();
  const refuse = (event: string, box: string | undefined, fields: Record<string, string>) =>
    log.warn(event, { box, ...fields });
  return {
    preConnect: (_client, packet, done) => {
      const { will, username } = packet;
      if (will === undefined || username === login.username || mayPublish(username ?? '', will)) {
        done(null, true);
        return;
      }
      refuse('mqtt-login-refused', username, { reason: `a last will on ${will.topic} is not allowed` });
      done(new Error('the last will is not allowed'), false);
    },
    authenticate: (client, username, password, done) => {
      const answer = (reason: LoginProblem | undefined) => {
        if (reason === undefined) {
          // The broker chooses the ids. Otherwise a client that copies another's id would end its connection.
          Object.assign(client, { id: `${username}/${random.uuid()}` });
          done(null, true);
          return;
        }
        refuse('mqtt-login-refused', username, { client: client.id, address: addressOf(client), reason: reason.text });
        done(Object.assign(new Error(reason.text), { returnCode: reason.code }) as AuthenticateError, false);
      };
      loginProblem(stored, shared, login, client, username, password?.toString('utf8')).then(answer, (error: unknown) =>
        answer({ text: `the store failed: ${reasonOf(error)}`, code: UNAVAILABLE }),
      );
    },
    authorizePublish: (client, packet, done) => {
      const box = client === null ? undefined : boxOf(client);
      if (box === login.username || (box !== undefined && mayPublish(box, packet))) {
        // Some hosts set the retain flag by mistake for the QoS. A retained request would be answered again and again.
        if (box === shared?.username) packet.retain = false;
        done(null);
        return;
      }
      const reason = packet.qos > QOS_MAX ? `QoS ${packet.qos}` : 'not a topic of this box';
      refuse('mqtt-publish-refused', box, { topic: packet.topic, reason });
      done(new Error('publish refused'));
    },
    authorizeSubscribe: (client, subscription, done) => {
      const box = boxOf(client);
      const count = (subscribed.get(client) ?? 0) + 1;
      if (box === login.username || (maySubscribe(box, subscription.topic) && count <= SUBSCRIPTIONS_MAX)) {
        subscribed.set(client, count);
        done(null, subscription);
        return;
      }
      refuse('mqtt-subscribe-refused', box, { topic: subscription.topic, reason: 'not a topic of this box' });
      done(null, null);
    },
    // The broker checks again when it forwards a message: a push or payment must never reach a foreign box.
    authorizeForward: (client, packet) => {
      const box = boxOf(client);
      return box === login.username || maySubscribe(box, packet.topic) ? packet : null;
    },
  };
}

/**
 * Returns which login may publish a message or last will, and which may subscribe (clauses TOP-3 and VQD-1). A retained
 * message on `up` is refused: every later gateway would receive it.
 */
function topicRights(shared: string | undefined) {
  return {
    mayPublish: (username: string, packet: { topic: string; qos?: number | undefined; retain?: boolean }) => {
      const { topic, qos = 0, retain } = packet;
      if (qos > QOS_MAX) return false;
      if (username === shared) return isAmong(DIALECT_RIGHTS.write, topic);
      return boxMayPublish(username, topic) && (retain !== true || topic === boxTopic(username, 'presence'));
    },
    maySubscribe: (username: string, topic: string) =>
      username === shared ? isAmong(DIALECT_RIGHTS.read, topic) : boxMaySubscribe(username, topic),
  };
}

interface LoginProblem {
  text: string;
  code: number;
}

async function loginProblem(
  { directory, logins }: Stored,
  shared: BrokerLogin | undefined,
  login: BrokerLogin,
  client: Client,
  username = '',
  password: string | undefined,
): Promise<LoginProblem | undefined> {
  const wrong = { text: 'unknown box or wrong secret', code: BAD_CREDENTIALS };
  // The gateway's own login works only inside this process. Wrong logins of others do not limit it.
  if (username === login.username && !(client.conn instanceof LimitedSocket)) {
    return equalSecrets(password ?? '', login.password) ? undefined : wrong;
  }
  const isShared = username === shared?.username;
  const expected = isShared ? shared.password : boxPasswordOf((await directory.box(username))?.secret);
  const isStrong = !isShared || isStrongSecret(shared.password);
  const verdict = logins.check({ kind: 'box', username, isStrong, secret: password, expected }, addressOf(client));
  if (!verdict.ok && verdict.retryAfterSeconds > 0) return { text: 'too many wrong logins', code: UNAVAILABLE };
  if (!verdict.ok) return wrong;
  const certified = certifiedName(client);
  if (certified !== undefined && certified !== username) {
    return { text: `the certificate is that of ${certified || 'nobody'}`, code: NOT_AUTHORIZED };
  }
  if (!client.clean) return { text: 'clean session is required', code: NOT_AUTHORIZED };
  return undefined;
}

/**
 * Returns the name in the client's certificate: empty if there is not exactly one, undefined if no certificate was
 * requested.
 */
function certifiedName({ conn }: Client): string | undefined {
  if (!(conn instanceof LimitedSocket && conn.socket instanceof TLSSocket && conn.socket.authorized)) return undefined;
  const name: unknown = conn.socket.getPeerCertificate().subject?.CN;
  return typeof name === 'string' ? name : '';
}

/** Returns the IP address of the client. It is empty for the gateway itself, which is in this process. */
export function addressOf({ conn }: Client): string {
  return conn instanceof LimitedSocket ? conn.address : '';
}

/** Returns the user name of a client: the first part of its id. */
export function boxOf(client: Client): string {
  return client.id.split('/', 1)[0] ?? '';
}
