import { BOX_SILENCE_MAX_MS } from '../../../protocol/http-api.ts';
import type { Presence } from '../../../protocol/messages.ts';
import { Mismatch } from '../../check.ts';
import { boxCheck, watched } from '../box-check.ts';
import { RETURN_MS } from '../subject.ts';

const PRESENCE_MS = 5_000;
/** PROTOCOL.md, clause BOX-HTTP-3. */
const POST_TIMEOUT_MS = 5_000;
const ABSENT_MS = 5_000;

/** A box over MQTT (PROTOCOL.md, clauses TOP and PRE). */
export const MQTT_CHECKS = [
  boxCheck(
    'PRE-1',
    'the box is retained as online, in its session, after every connect',
    async (trial) => {
      const { sessionId } = await trial.reconnected();
      const last = () => trial.gateway.mqtt.presences.at(-1);
      await trial.until('a presence that says online', PRESENCE_MS, () => last()?.online === true);
      if (last()?.sessionId !== sessionId) throw new Mismatch('its presence is of another session');
    },
    { needs: ['mqtt'] },
  ),
  boxCheck(
    'PRE-1',
    'a last will says that the box is gone when its connection breaks',
    async (trial) => {
      const { session, mqtt } = trial.gateway;
      const isWill = ({ online, sessionId }: Presence) => !online && sessionId === session?.sessionId;
      const from = mqtt.presences.length;
      trial.gateway.cut();
      await trial.until('a presence that says offline', PRESENCE_MS, () => mqtt.presences.slice(from).some(isWill));
    },
    { needs: ['mqtt'] },
  ),
  boxCheck(
    'PRE-2',
    'the box says hello anew to each run of the gateway',
    async (trial) => {
      const { session } = trial.gateway;
      await trial.gateway.restart();
      await trial.nextSession(session, RETURN_MS);
    },
    { needs: ['mqtt'] },
  ),
  boxCheck(
    'PRE-2',
    'the box ends its session when the gateway leaves, and waits for one',
    async (trial) => {
      const { session, mqtt } = trial.gateway;
      await mqtt.goOffline();
      try {
        await trial.time.wait(ABSENT_MS);
        if (trial.gateway.session !== session) throw new Mismatch('it said hello although no gateway is present');
      } finally {
        await mqtt.restart();
      }
      await trial.nextSession(session);
    },
    { needs: ['mqtt'] },
  ),
];

/** A box over HTTP (PROTOCOL.md, clause BOX-HTTP). */
export const HTTP_CHECKS = [
  boxCheck(
    'BOX-HTTP-1',
    'the box opens another stream when its stream ends, and answers the new challenge',
    async (trial) => {
      const { session } = trial.gateway;
      await trial.gateway.restart();
      await trial.nextSession(session, RETURN_MS);
    },
    { needs: ['http'] },
  ),
  boxCheck(
    'BOX-HTTP-2',
    'a box whose message was not taken for want of room sends what it owes in the next session',
    async (trial) => {
      const { session, http } = trial.gateway;
      const before = http.refused;
      http.refusesWith = 503;
      const payment = trial.payment();
      trial.tell(payment);
      await trial.until('a post', 10_000, () => http.refused > before);
      http.refusesWith = undefined;
      await trial.nextSession(session, RETURN_MS);
      await trial.paid(payment.transactionId);
    },
    { needs: ['http'] },
  ),
  boxCheck(
    'BOX-HTTP-3',
    'a box that reads nothing for 15 s opens anew',
    async (trial) => {
      const { session, http } = trial.gateway;
      http.isSilent = true;
      const fromMs = trial.nowMs;
      await trial.until('another stream', BOX_SILENCE_MAX_MS + RETURN_MS, () => http.streamAtMs > fromMs);
      http.isSilent = false;
      await trial.nextSession(session);
    },
    { needs: ['http', 'time'] },
  ),
  boxCheck(
    'BOX-HTTP-3',
    'a post that is not answered within 5 s ends the session',
    async (trial) => {
      const { session, http } = trial.gateway;
      http.refusesWith = 'hang';
      const payment = trial.payment();
      trial.tell(payment);
      const fromMs = trial.nowMs;
      await trial.until('another stream', POST_TIMEOUT_MS + RETURN_MS, () => http.streamAtMs > fromMs);
      http.refusesWith = undefined;
      await trial.nextSession(session);
      await trial.paid(payment.transactionId);
    },
    { needs: ['http', 'time'] },
  ),
  boxCheck(
    'BOX-HTTP-4',
    'a box that is told 401, or 409 without its stream, comes back',
    async (trial) => {
      const { http } = trial.gateway;
      for (const status of [401, 409] as const) {
        const { session } = trial.gateway;
        http.refusesWith = status;
        const before = http.refused;
        trial.gateway.cut();
        await trial.until(`a request to be answered ${status}`, RETURN_MS, () => http.refused > before);
        http.refusesWith = undefined;
        await trial.nextSession(session);
      }
    },
    { needs: ['http'] },
  ),
];

/** What was seen of the box in all that came before: to be run after the others. */
export const WATCHED_CHECKS = [
  watched('TOP-1', 'speaks MQTT 3.1.1 with QoS 1 and clean sessions', ['mqtt']),
  watched('TOP-2', 'logs in with its terminalCode and the password that its secret gives'),
  watched('TOP-3', 'publishes to and subscribes to its own topics only', ['mqtt']),
  watched('TOP-4', 'asks for a keepalive of 1 s to 600 s', ['mqtt']),
  watched('TOP-6', 'has a client id that does not tell its session', ['mqtt']),
  watched('PRE-1', 'has a last will and a birth that fit each other, retained, before each hello', ['mqtt']),
  watched('PRE-2', 'says nothing while no gateway is present', ['mqtt']),
  watched('BOX-HTTP-1', 'names its session in each request, and uses no other paths', ['http']),
  watched('BOX-HTTP-2', 'posts messages as application/jose', ['http']),
  watched('BOX-HTTP-4', 'its messages are of the session that their header names', ['http']),
  watched('SIG-1', 'every message was sealed, numbered from 1 without a gap, its time never going back'),
  watched('SIG-2', 'every hello introduced its key under the secret, for the challenge, and later than the one before'),
  watched('MSG-1', 'every message was as its schema says'),
  watched('MSG-2', 'said hello, accepted, shown, rejected, ended, paid and alive, and nothing else'),
  watched('MSG-4', 'every session began with one hello of this box, and nothing was said before the welcome'),
  watched('MSG-6', 'did not flood the gateway'),
  watched('LIM-5', 'calls itself VVB and six digits'),
  watched('LIM-4', 'no message was longer than 16,384 bytes'),
];
