import { BOX_SILENCE_MAX_MS } from '../../../../protocol/http-api.ts';
import type { Presence } from '../../../../protocol/messages.ts';
import { Mismatch, precondition } from '../../check.ts';
import { noViolation, spec } from '../box-check.ts';
import type { CheckContext } from '../check-context.ts';
import type { TlsIdentities, TlsIdentity } from '../gateway/endpoint.ts';
import { RETURN_MS } from '../subject.ts';

const PRESENCE_MS = 5_000;
/** PROTOCOL.md, clause BOX-HTTP-3. */
const POST_TIMEOUT_MS = 5_000;
const ABSENT_MS = 5_000;
const ALIVE_MS = 12_000;
const SLACK_MS = 2_000;
/** Time within which a login follows its handshake. */
const LOGIN_MS = 2_000;

/** TLS 1.1, and TLS 1.2 without authenticated encryption; OpenSSL allows them at security level 0 only. */
const OLD = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
const WEAK = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:@SECLEVEL=0',
} as const;

const WRONG_TLS: readonly [clause: string, title: string, identity: (all: TlsIdentities) => TlsIdentity][] = [
  ['TLS-1', 'that speaks TLS 1.1 at most', ({ valid }) => ({ ...valid, limits: OLD })],
  ['TLS-1', 'that speaks no authenticated encryption', ({ valid }) => ({ ...valid, limits: WEAK })],
  ['TLS-2', 'with a certificate of another authority', ({ otherAuthority }) => otherAuthority],
  ['TLS-2', 'with a certificate that has expired', ({ expired }) => expired],
  ['TLS-2', 'with a certificate for another host', ({ otherHost }) => otherHost],
];

/** PROTOCOL.md, clauses TLS-1 and TLS-2. */
export const TLS_CHECKS = WRONG_TLS.map(([clause, title, identity]) =>
  spec(clause, `sends nothing to a gateway ${title}`, ['tls'], async (t) => {
    const { gateway } = t;
    const { session, tlsHandshakes } = gateway;
    const logins = gateway.logins.length;
    gateway.useTlsIdentity(identity);
    try {
      gateway.cut();
      const hasTried = () => gateway.tlsHandshakes > tlsHandshakes;
      await precondition('a box that tries to come back', () => t.until('a connection', RETURN_MS, hasTried));
      await t.time.wait(LOGIN_MS);
      if (gateway.logins.length > logins) throw new Mismatch('it logged in there');
    } finally {
      gateway.useTlsIdentity(({ valid }) => valid);
    }
    await t.nextSession(session);
  }),
);

/** A box over MQTT (PROTOCOL.md, clauses TOP and PRE). */
export const MQTT_CHECKS = [
  spec('PRE-1', 'the box is retained as online, in its session, after every connect', ['mqtt'], async (t) => {
    const { sessionId } = await t.reconnect();
    const last = () => t.gateway.mqtt.presences.at(-1);
    await t.until('a presence that says online', PRESENCE_MS, () => last()?.online === true);
    if (last()?.sessionId !== sessionId) throw new Mismatch('its presence is of another session');
  }),
  spec('PRE-1', 'its last will says that the box is offline when its connection breaks', ['mqtt'], async (t) => {
    const { session, mqtt } = t.gateway;
    const isWill = ({ online, sessionId }: Presence) => !online && sessionId === session?.sessionId;
    const from = mqtt.presences.length;
    t.gateway.cut();
    await t.until('a presence that says offline', PRESENCE_MS, () => mqtt.presences.slice(from).some(isWill));
  }),
  spec('PRE-2', 'the box says hello anew after each start of the gateway', ['mqtt'], expectHelloAfterRestart),
  spec('PRE-2', 'the box ends its session when the gateway goes offline, and waits for it', ['mqtt'], async (t) => {
    const { session, mqtt } = t.gateway;
    await mqtt.goOffline();
    try {
      await t.time.wait(ABSENT_MS);
      if (t.gateway.session !== session) throw new Mismatch('it said hello although no gateway is present');
    } finally {
      await mqtt.restart();
    }
    await t.nextSession(session);
  }),
];

/** A box over HTTP (PROTOCOL.md, clause BOX-HTTP). */
export const HTTP_CHECKS = [
  spec(
    'BOX-HTTP-1',
    'the box opens another stream when its stream ends, for the new challenge',
    ['http'],
    expectHelloAfterRestart,
  ),
  spec('BOX-HTTP-2', 'a report that was answered 503 comes again in the next session', ['http'], async (t) => {
    const { session, http } = t.gateway;
    const before = http.refused;
    http.refusesWith = 503;
    const payment = t.payment();
    t.send(payment);
    await t.until('a post', 10_000, () => http.refused > before);
    http.refusesWith = undefined;
    await t.nextSession(session, RETURN_MS);
    await t.paid(payment.transactionId);
  }),
  spec('BOX-HTTP-3', 'a box that reads nothing for 15 s opens another stream', ['http', 'slow'], async (t) => {
    const { session, http } = t.gateway;
    await signOfLife(t);
    http.isSilent = true;
    await expectStreamEnds(t, BOX_SILENCE_MAX_MS);
    http.isSilent = false;
    await t.nextSession(session);
  }),
  spec('BOX-HTTP-3', 'a post that is not answered within 5 s ends the session', ['http', 'slow'], async (t) => {
    const { session, http } = t.gateway;
    await signOfLife(t);
    http.refusesWith = 'hang';
    const payment = t.payment();
    t.send(payment);
    await expectStreamEnds(t, POST_TIMEOUT_MS);
    http.refusesWith = undefined;
    await t.nextSession(session);
    await t.paid(payment.transactionId);
  }),
  spec('BOX-HTTP-4', 'a box comes back after 401, and after 409 without its stream', ['http'], async (t) => {
    const { http } = t.gateway;
    for (const status of [401, 409] as const) {
      const { session } = t.gateway;
      http.refusesWith = status;
      const before = http.refused;
      t.gateway.cut();
      await t.until(`a request to be answered ${status}`, RETURN_MS, () => http.refused > before);
      http.refusesWith = undefined;
      await t.nextSession(session);
    }
  }),
];

async function expectHelloAfterRestart(t: CheckContext): Promise<void> {
  const { session } = t.gateway;
  await t.gateway.restart();
  await t.nextSession(session, RETURN_MS);
}

/**
 * Waits for a sign of life. The next is due 10 s later, so a box that only misses the answer (MSG-11) needs 20 s from
 * now on.
 */
async function signOfLife(t: CheckContext): Promise<void> {
  await precondition('a sign of life', () => t.receive('a sign of life', ['alive'], () => true, ALIVE_MS));
}

async function expectStreamEnds(t: CheckContext, withinMs: number): Promise<void> {
  const { session } = t.gateway;
  await t.until('the end of the stream', withinMs + SLACK_MS, () => session?.connection.isOpen === false);
}

/** Violations that the gateway saw in all checks; run after them. */
export const VIOLATION_CHECKS = [
  noViolation('TOP-1', 'speaks MQTT 3.1.1 with QoS 1 and clean sessions', ['mqtt']),
  noViolation('TOP-2', 'logs in with its terminalCode and the password that its secret gives', []),
  noViolation('TOP-3', 'publishes to and subscribes to its own topics only', ['mqtt']),
  noViolation('TOP-4', 'asks for a keepalive of 1 s to 600 s', ['mqtt']),
  noViolation('TOP-6', 'has a client id that does not tell its session', ['mqtt']),
  noViolation('PRE-1', 'has a last will and a birth that fit each other, retained, before each hello', ['mqtt']),
  noViolation('PRE-2', 'sends nothing while no gateway is present', ['mqtt']),
  noViolation('BOX-HTTP-1', 'names its session in each request, and uses no other paths', ['http']),
  noViolation('BOX-HTTP-2', 'posts messages as application/jose', ['http']),
  noViolation('BOX-HTTP-4', 'its messages are of the session that their header names', ['http']),
  noViolation('SIG-1', 'signs every message, numbered from 1 without a gap, its time never going back', []),
  noViolation('SIG-2', 'introduces its key in every hello, for the challenge, later than in the one before', []),
  noViolation('MSG-1', 'every message is as its schema says', []),
  noViolation('MSG-2', 'sends hello, accepted, shown, rejected, ended, paid and alive, and nothing else', []),
  noViolation('MSG-4', 'begins every session with one hello of this box, and waits for the welcome', []),
  noViolation('MSG-6', 'does not flood the gateway', []),
  noViolation('LIM-5', 'calls itself VVB and six digits', []),
  noViolation('LIM-4', 'no message is longer than 16,384 bytes', []),
];
