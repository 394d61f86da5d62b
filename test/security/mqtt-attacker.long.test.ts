import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { ACCOUNT, BOX1, BOX2, push, qrFor, SEND_QR, type TestGateway, testGateway } from '../gateway/harness.ts';
import { loginAs } from '../gateway/mqtt-login.ts';
import { connectFakeBox, type FakeBoxIdentity } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { plainly, startMosquitto } from './mosquitto.ts';
import { type Attacker, disorders, masks, PAYLOAD, reads, type Tried, tryAll, wills, writes } from './mqtt-attacks.ts';

const { missing, note } = without(PROGRAMS.mosquitto);
const linked = ({ terminalCode, serialNumber, secret }: FakeBoxIdentity) => ({
  ...{ terminalCode, serialNumber, secret, account: ACCOUNT.bankAccount },
});

interface Stage {
  isEmbedded: boolean;
  gateway: TestGateway;
  mqttUrl: string;
  box1: FakeBoxIdentity;
  box2: FakeBoxIdentity;
}

async function embedded(): Promise<Stage> {
  const gateway = await testGateway();
  return { isEmbedded: true, gateway, mqttUrl: gateway.mqttUrl ?? '', box1: BOX1, box2: BOX2 };
}

/** Mosquitto with the topic rights and passwords made for it. */
async function mosquitto(): Promise<Stage> {
  const { made, url } = await startMosquitto(plainly);
  const mqttUrl = url.replace('mqtts:', 'mqtt:');
  const password = /password: (\S+)/.exec(await readFile(`${made.path}/gateway/gateway.yaml`, 'utf8'))?.[1] ?? '';
  const [box1, box2] = [linked(await made.box(1)), linked(await made.box(2))];
  const config = { boxes: [box1, box2], mqtt: { url: mqttUrl, username: 'gateway', password } };
  return { isEmbedded: false, gateway: await testGateway({ config }), mqttUrl, box1, box2 };
}

const BROKERS: [string, () => Promise<Stage>, boolean][] = [
  ['the embedded broker', embedded, false],
  [`Mosquitto with the topic rights made for it${note}`, mosquitto, missing],
];
const ATTACKERS: [string, (stage: Stage) => Partial<Attacker>][] = [
  ['the login of another box', ({ box2 }) => ({ username: box2.terminalCode, password: loginOf(box2.secret) })],
  ['no login', () => ({})],
];

describe.each(BROKERS)('at %s', (_broker, open, isMissing) => {
  it.skipIf(isMissing).each(ATTACKERS)(
    'THR-20 whoever has %s reads and writes nothing of a box, and keeps it from nothing, however it tries',
    async (who, credential) => {
      const stage = await open();
      const { isEmbedded, gateway, mqttUrl, box1, box2 } = stage;
      const box = await connectFakeBox({
        gateway: { origin: gateway.origin, mqttUrl },
        identity: box1,
        transport: 'mqtt',
      });
      let count = 0;
      const works = async () => {
        count += 1;
        const orderId = `DH${count}`;
        const request = push({ orderId, content: orderId, qrCode: qrFor({ purpose: orderId }) });
        expect((await gateway.post(SEND_QR, request)).body).toEqual({ status: 'SUCCESS', message: '' });
        expect(box.of('show')).toHaveLength(count);
      };
      await works();

      const attacker: Attacker = { port: Number(new URL(mqttUrl).port), ...credential(stage) };
      const clientId = `${box1.terminalCode}-fake-${box.sessionId.slice(0, 8)}`;
      const tries: Record<string, Tried[]> = {};
      for (const [name, attacks] of Object.entries({
        reads: reads(attacker),
        writes: writes(attacker),
        wills: wills(attacker),
        logins: masks(attacker, isEmbedded ? [clientId, `${box1.terminalCode}/${clientId}`] : []),
        disorders: disorders(attacker),
      })) {
        const tried = await tryAll(attacker, attacks);
        // What was let in listens while its victim works.
        await works();
        tries[name] = tried.map((it) => ({ ...it }));
        // As a cable that is cut: now the wills would speak.
        for (const { socket } of tried) socket.resetAndDestroy();
        await works();
      }

      const all = Object.values(tries).flat();
      const [inside, ended] = [all.filter((it) => it.loggedIn), all.filter((it) => it.ended)];
      const counts = Object.entries(tries).map(([name, tried]) => `${tried.length} ${name}`);
      process.stdout.write(
        `${_broker}, ${who}: ${all.length} tries (${counts.join(', ')}), ${inside.length} logged in, ${ended.length} ended\n`,
      );
      const allowed = [boxTopic(box2.terminalCode, 'down'), GATEWAY_PRESENCE_TOPIC];
      const received = all.flatMap((it) => it.received.map((message) => message.split(' ')[0] ?? ''));
      expect([...new Set(received)].filter((topic) => !allowed.includes(topic))).toEqual([]);
      if (attacker.username === undefined) expect([inside.length, received]).toEqual([0, []]);
      else expect(inside.length).toBeGreaterThan(200);

      const events = new Set(gateway.log.map((it) => it.event));
      const heard = [
        'message-refused',
        'gateway-presence-restored',
        'broker-shared',
        'box-disconnected',
        'broker-connection-failed',
      ];
      expect(heard.filter((event) => events.has(event))).toEqual([]);
      expect(JSON.stringify(box.received)).not.toContain(PAYLOAD);
      const late = await loginAs({ mqttUrl }, box1);
      await late.client.subscribeAsync([boxTopic(box1.terminalCode, 'down'), GATEWAY_PRESENCE_TOPIC], { qos: 1 });
      await works();
      await eventually('the push', () => late.received.length > 1);
      expect(late.received.map((it) => it.retain)).toEqual([true, false]);
      if (!isEmbedded) return;
      const refused = ['mqtt-login-refused', 'mqtt-connection-failed'];
      if (attacker.username !== undefined) refused.push('mqtt-subscribe-refused', 'mqtt-publish-refused');
      expect(refused.filter((event) => !events.has(event))).toEqual([]);
    },
  );
});
