import { connect } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { MqttEndpoint } from '../../src/bench/judges/box/gateway/mqtt-endpoint.ts';
import { ScriptedBroker } from '../../src/bench/judges/box/gateway/scripted-broker.ts';
import type { GatewayAddress, Transport } from '../../src/device/agent/contract.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import { vietqrTransport } from '../../src/device/agent/transports/vietqr.ts';
import { connectToBroker } from '../../src/gateway/boxes/broker-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { reasonOf } from '../../src/lib/errors.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { HostResolver } from '../../src/lib/resolver.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { dialectGateway } from '../gateway/dialect/support.ts';
import { testGateway } from '../gateway/harness.ts';
import { IDENTITY } from '../support/fake-gateway.ts';
import { keptLog } from '../support/kept-log.ts';
import { lightMqtt } from '../support/light-transport.ts';
import { eventually } from '../support/net.ts';
import { transportIo } from '../support/transport-io.ts';
import { type Attack, endlessBroker } from './endless-broker.ts';

/** What the buffers of the system may take of a stream whose reader has gone, far below the packet of 250 MB. */
const SYSTEM_BYTES_MAX = 16_000_000;
/** A victim would wait so long for the rest of the packet. */
const TIMEOUT_MS = 60_000;

/** Why the connection of a box fails, while it begins or later. */
async function whyBoxFails<Options extends GatewayAddress>(
  transport: Transport<Options>,
  options: unknown,
): Promise<string> {
  try {
    const connection = await transport.open(
      transport.options.parse(options),
      transportIo(),
      AbortSignal.timeout(TIMEOUT_MS),
    );
    onTestFinished(() => connection.close());
    for await (const _ of connection.incoming);
    return 'it has ended without a reason';
  } catch (error) {
    return reasonOf(error);
  }
}

async function whyLoginFails<Options extends GatewayAddress>(
  transport: Transport<Options>,
  options: unknown,
): Promise<string> {
  return transport
    .checkLogin(transport.options.parse(options), transportIo(), AbortSignal.timeout(TIMEOUT_MS))
    .catch(reasonOf);
}

async function whyGatewayFails(start: typeof testGateway, url: string): Promise<string> {
  return start({ config: { mqtt: { url } } }).then(() => 'it runs', reasonOf);
}

async function whyChannelFails(url: string): Promise<string> {
  const { log, lines } = keptLog();
  const names = new HostResolver({ clock: systemClock });
  onTestFinished(() => names.close());
  const client = await connectToBroker({ where: url }, names, { clientId: 'gateway' }, log).catch((error) => error);
  if (client instanceof Error) return reasonOf(client);
  onTestFinished(() => void client.end(true));
  await client.subscribeAsync('x').catch(() => undefined);
  const [line] = await eventually('its log', () => lines.length > 0 && lines);
  return String(line?.reason);
}

const DIALECT = {
  macAddr: '02:00:5E:10:00:01',
  checkSumSalt: 'sample-check-sum-salt',
  boxIdSalt: 'sample-box-id-salt',
  username: 'sample-boxes',
  password: 'sample-password',
  connectTimeoutMs: TIMEOUT_MS,
};
const LINKS: Record<string, (url: string) => Promise<string>> = {
  'a box': (url) => whyBoxFails(mqttTransport, { url, connectTimeoutMs: TIMEOUT_MS }),
  'a light box': (url) => whyBoxFails(lightMqtt, { url, connectTimeoutMs: TIMEOUT_MS }),
  'a box at the public service': (url) => whyBoxFails(vietqrTransport, { url, ...DIALECT }),
  'the check of a login': (url) => whyLoginFails(mqttTransport, { url, connectTimeoutMs: TIMEOUT_MS }),
  'the check of a login at the public service': (url) => whyLoginFails(vietqrTransport, { url, ...DIALECT }),
  'a gateway': whyChannelFails,
};
const ATTACKS: Attack[] = (['before it accepts the login', 'after it has accepted the login'] as const).flatMap(
  (when) => [
    { scheme: 'mqtt', when, what: 'the head of a packet' },
    { scheme: 'mqtt', when, what: 'a packet without end' },
    { scheme: 'ws', when, what: 'the head of a packet' },
    { scheme: 'ws', when, what: 'the head of a frame' },
  ],
);

describe.each(ATTACKS)('a broker that sends $what over $scheme $when', (attack) => {
  const links = Object.entries(LINKS).filter(([who]) => attack.scheme === 'mqtt' || who !== 'a light box');

  it.each(links)(
    'THR-41 LIM-4 an endless packet is left at once by %s, which says how long the packet is',
    async (_who, connect) => {
      const { url, victims } = await endlessBroker(attack);
      const expected =
        attack.what === 'the head of a frame'
          ? /Max payload size exceeded/
          : /a packet of 250000000 bytes is refused at its head: at most 262144 bytes are taken/;
      expect(await connect(url)).toMatch(expected);
      await eventually('the end', () => victims.every(({ isClosed }) => isClosed));
      expect(victims).toHaveLength(1);
      expect(victims[0]?.bytes).toBeLessThan(attack.what === 'a packet without end' ? SYSTEM_BYTES_MAX : 1);
    },
  );
});

it.each([
  ['with boxes of its own', testGateway],
  ['with boxes of the public dialect', dialectGateway],
])('THR-41 a gateway %s does not start at such a broker, and leaves it', async (_which, start) => {
  for (const when of ['before it accepts the login', 'after it has accepted the login'] as const) {
    const { url, victims } = await endlessBroker({ scheme: 'mqtt', when, what: 'the head of a packet' });
    expect(await whyGatewayFails(start, url)).toMatch(
      /cannot be used: (a packet of 250000000 bytes|it ended|it does not let)/,
    );
    await eventually('the end', () => victims.every(({ isClosed }) => isClosed));
  }
});

it('THR-41 LIM-4 the judge of a box ends a connection at the head of a packet, and names the clause', async () => {
  const violations: string[] = [];
  const events = {
    login: () => undefined,
    message: () => 'illegal' as const,
    violation: (clause: string, what: string) => void violations.push(`${clause}: ${what}`),
  };
  const world = { clock: systemClock, random: systemRandom, events };
  const endpoint = new MqttEndpoint(IDENTITY, world, await ScriptedBroker.create());
  await endpoint.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => endpoint.close());
  const { terminalCode, secret } = IDENTITY;
  const client = connect(`mqtt://127.0.0.1:${endpoint.port}`, {
    ...{ username: terminalCode, password: loginOf(secret), reconnectPeriod: 0 },
  });
  onTestFinished(() => void client.end(true));
  client.on('error', () => undefined);
  client.publish(boxTopic(terminalCode, 'up'), Buffer.alloc(300_000, 'x'), { qos: 1 });
  await new Promise<void>((resolve) => client.once('close', () => resolve()));
  expect(violations).toContainEqual(
    expect.stringMatching(/^LIM-4: a packet of 300\d\d\d bytes is refused at its head/),
  );
});
