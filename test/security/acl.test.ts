import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync, type IClientOptions } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, stringify } from 'yaml';
import { loginOf } from '../../src/protocol/keys.ts';
import {
  boxRights,
  boxTopic,
  GATEWAY_PRESENCE_TOPIC,
  gatewayPresenceTopic,
  gatewayRights,
  gatewaysTopic,
  LANES_MAX,
} from '../../src/protocol/topics.ts';
import { ACCOUNT, PARTNER, walkTheLoop } from '../e2e/walk.ts';
import { eventually, freePort } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { paybox, readyFile, run } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import type { provisioned } from '../support/provisioned.ts';
import { startMosquitto, withPasswords } from './mosquitto.ts';

type Made = Awaited<ReturnType<typeof provisioned>>;
type Login = IClientOptions & { username?: string };
const { missing, note } = without(PROGRAMS.mosquitto);
const [OWN, OTHERS] = ['VVB000001', 'VVB000002'];

async function login(url: string, made: Made, options: Login) {
  const ca = await made.text('ca.pem');
  const client = await connectAsync(url, { ca, reconnectPeriod: 0, ...options }, false);
  onTestFinished(() => client.endAsync(true));
  client.on('error', () => undefined);
  const received: { topic: string; payload: string }[] = [];
  client.on('message', (topic, payload) => received.push({ topic, payload: String(payload) }));
  return { client, received };
}

async function certificateOf(made: Made, n: 1 | 2 | 'gateway'): Promise<Login> {
  const folder = n === 'gateway' ? 'gateway/client-' : `boxes/VVB00000${n}/`;
  return { cert: await made.text(`${folder}cert.pem`), key: await made.text(`${folder}key.pem`) };
}

const WAYS: [string, (config: string) => string, (made: Made, n: 1 | 2 | 'gateway') => Promise<Login>][] = [
  ['certificates', (config) => config, certificateOf],
  [
    'passwords',
    withPasswords,
    async (made, n) => {
      const gateway = /password: (\S+)/.exec(await made.text('gateway/gateway.yaml'))?.[1] ?? '';
      if (n === 'gateway') return { username: n, password: gateway };
      const { terminalCode, secret } = await made.box(n);
      return { username: terminalCode, password: loginOf(secret) };
    },
  ],
];

describe.skipIf(missing)(`Mosquitto with the files made for it${note}`, () => {
  it('Mosquitto with the files made for it carries the whole loop between gateway and box over mutual TLS', async () => {
    const { made, broker, url } = await startMosquitto();
    const partner = await startPartnerServer();
    const [httpPort, boxPort] = [await freePort(), await freePort()];
    const gatewayFile = join(made.path, 'gateway/here.yaml');
    const { boxes, mqtt: _embedded, ...rest } = parse(await made.text('gateway/gateway.yaml'));
    const tls = { ca: 'ca.pem', cert: 'client-cert.pem', key: 'client-key.pem' };
    const gatewayConfig = {
      ...rest,
      http: { port: httpPort },
      // A busy machine draws late.
      confirmTimeoutMs: 30_000,
      mqtt: { url, username: 'gateway', tls },
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: partner.url } }],
      accounts: [ACCOUNT],
      boxes: boxes.map((box: object) => ({ ...box, account: ACCOUNT.bankAccount })),
    };
    await writeFile(gatewayFile, stringify(gatewayConfig));
    const box = await made.box(1);
    const agentFile = join(box.folder, 'here.yaml');
    const displays = [{ driver: 'png', path: 'screen.png' }];
    const provisioned = parse(await readFile(join(box.folder, 'agent.yaml'), 'utf8'));
    await writeFile(agentFile, stringify({ ...provisioned, displays, http: { port: boxPort } }));

    const gateway = paybox('gateway', '--config', gatewayFile, '--ready-file', join(made.path, 'gateway.json'));
    const agent = paybox('agent', '--config', agentFile, '--ready-file', join(made.path, 'agent.json'));
    const at = await readyFile<{ baseUrl: string; consoleUrl: string }>(join(made.path, 'gateway.json'), gateway);
    const { boxUrl } = await readyFile<{ boxUrl: string }>(join(made.path, 'agent.json'), agent);
    const status = async () => (await fetch(`${boxUrl}/status`)).json() as Promise<{ state: string; link: object }>;
    await eventually('idle', async () => (await status()).state === 'idle').catch((error) => {
      throw new Error(`${error}\n${gateway.output()}\n${agent.output()}\n${broker.output()}`);
    });
    expect((await status()).link).toMatchObject({ gateway: url, plain: false });
    await walkTheLoop({ ...at, boxUrl }, partner.received);
    expect(await agent.stop('SIGTERM')).toBe(0);
    expect(await gateway.stop('SIGTERM')).toBe(0);
    expect(`${agent.output()}${gateway.output()}${broker.output()}`).not.toContain(box.secret);
  });

  it.each<[string, (made: Made) => Promise<Login>]>([
    ['without a certificate', async () => ({})],
    [
      'with a secret in place of a certificate',
      async (made) => ({ username: OWN, password: loginOf((await made.box(1)).secret) }),
    ],
  ])('TLS-3 TLS-4 THR-12 refuses a box %s', async (_how, options) => {
    const { made, url } = await startMosquitto();
    await expect(login(url, made, await options(made))).rejects.toThrow();
    await login(url, made, await certificateOf(made, 1));
  });

  it("THR Mosquitto refuses a stolen box's certificate once it is rotated, and accepts the new one", async () => {
    const { made, url, broker } = await startMosquitto();
    const stolen = await certificateOf(made, 1);
    await login(url, made, stolen);
    await made.folder.rotateBox(OWN);
    await broker.stop();
    const again = run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', join(made.path, 'mosquitto/here.conf')]);
    await eventually('Mosquitto', () => again.output().includes(' running'));
    await expect(login(url, made, stolen)).rejects.toThrow();
    await login(url, made, await certificateOf(made, 1));
    await login(url, made, await certificateOf(made, 2));
  });

  it('TLS-5 THR-14 Mosquitto gives a certificate the topics of its own name, whatever name it logs in with', async () => {
    const { made, url } = await startMosquitto();
    const gateway = await login(url, made, await certificateOf(made, 'gateway'));
    await gateway.client.subscribeAsync(boxTopic('+', 'up'), { qos: 1 });
    const liar = await login(url, made, { ...(await certificateOf(made, 2)), username: OWN, password: 'x' });
    await liar.client.publishAsync(boxTopic(OWN, 'up'), 'lie', { qos: 1 });
    await liar.client.publishAsync(boxTopic(OTHERS, 'up'), 'truth', { qos: 1 });
    await eventually('the truth', () => gateway.received.length > 0);
    expect(gateway.received).toEqual([{ topic: boxTopic(OTHERS, 'up'), payload: 'truth' }]);
  });

  it.each(WAYS)(
    'TOP-3 TLS-5 THR-14 Mosquitto lets a box neither read nor write the topics of another, by %s',
    async (_way, edit, loginOf) => {
      const { made, url } = await startMosquitto(edit);
      const gateway = await login(url, made, await loginOf(made, 'gateway'));
      const victim = await login(url, made, await loginOf(made, 2));
      const attacker = await login(url, made, await loginOf(made, 1));
      await gateway.client.subscribeAsync([boxTopic('+', 'up'), boxTopic('+', 'presence'), GATEWAY_PRESENCE_TOPIC]);
      await victim.client.subscribeAsync([boxTopic(OTHERS, 'down'), GATEWAY_PRESENCE_TOPIC]);
      for (const filter of READS) await attacker.client.subscribeAsync(filter, { qos: 1 }).catch(() => undefined);
      for (const topic of WRITES) {
        await attacker.client.publishAsync(topic, 'attack', { qos: 1, retain: true }).catch(() => undefined);
      }
      await gateway.client.publishAsync(boxTopic(OTHERS, 'down'), 'push', { qos: 1 });
      await victim.client.publishAsync(boxTopic(OTHERS, 'up'), 'shown', { qos: 1 });
      // What it may do still works, and comes after everything that it tried.
      await attacker.client.subscribeAsync(boxTopic(OWN, 'down'), { qos: 1 });
      await gateway.client.publishAsync(boxTopic(OWN, 'down'), 'last', { qos: 1 });
      await attacker.client.publishAsync(boxTopic(OWN, 'up'), 'last', { qos: 1 });
      await eventually('the last message', () => attacker.received.length > 0);
      await eventually('the last report', () => gateway.received.some((it) => it.payload === 'last'));
      await eventually('the push', () => victim.received.length > 0);
      expect(attacker.received).toEqual([{ topic: boxTopic(OWN, 'down'), payload: 'last' }]);
      expect(victim.received).toEqual([{ topic: boxTopic(OTHERS, 'down'), payload: 'push' }]);
      expect(gateway.received.map((it) => it.payload)).toEqual(['shown', 'last']);
    },
  );

  it.each(WAYS)(
    'SHA-1 TOP-3 TLS-5 THR-14 Mosquitto gives a box its own topics in every lane, and none of another, by %s',
    async (_way, edit, loginOf) => {
      const { made, url } = await startMosquitto(edit);
      const gateway = await login(url, made, await loginOf(made, 'gateway'));
      const victim = await login(url, made, await loginOf(made, 2));
      const attacker = await login(url, made, await loginOf(made, 1));
      const lanes = [1, 40, LANES_MAX - 1];
      for (const lane of lanes) {
        await gateway.client.subscribeAsync([...gatewayRights(lane).read, gatewaysTopic(lane)]);
        await victim.client.subscribeAsync([...boxRights(OTHERS, lane).read]);
        for (const filter of [...boxRights(OTHERS, lane).read, ...gatewayRights(lane).read].filter(isOfBoxes))
          await attacker.client.subscribeAsync(filter, { qos: 1 }).catch(() => undefined);
        const forbidden = [...boxRights(OTHERS, lane).write, ...boxRights(OTHERS, lane).read];
        for (const topic of [...forbidden, boxTopic(OWN, 'down', lane), gatewaysTopic(lane)])
          await attacker.client.publishAsync(topic, 'attack', { qos: 1, retain: true }).catch(() => undefined);
        await attacker.client.subscribeAsync([...boxRights(OWN, lane).read]);
        await gateway.client.publishAsync(boxTopic(OTHERS, 'down', lane), 'push', { qos: 1 });
        for (const topic of [boxTopic(OWN, 'down', lane), gatewayPresenceTopic(lane), gatewaysTopic(lane)])
          await gateway.client.publishAsync(topic, 'own', { qos: 1 });
        for (const topic of boxRights(OWN, lane).write) await attacker.client.publishAsync(topic, 'own', { qos: 1 });
      }
      const isLast = ({ topic }: { topic: string }) => topic === boxTopic(OWN, 'presence', lanes.at(-1));
      await eventually('the last message', () => gateway.received.some(isLast));
      await eventually('the last presence', () => attacker.received.length === 2 * lanes.length);
      const own = lanes.flatMap((lane) => [boxTopic(OWN, 'down', lane), gatewayPresenceTopic(lane)]);
      expect(attacker.received).toEqual(own.map((topic) => ({ topic, payload: 'own' })));
      await eventually('the pushes', () => victim.received.length === 2 * lanes.length);
      expect(new Set(victim.received.map((it) => it.payload))).toEqual(new Set(['push', 'own']));
      const written = lanes.flatMap((lane) => [
        ...[...boxRights(OWN, lane).write, gatewayPresenceTopic(lane), gatewaysTopic(lane)],
      ]);
      expect(gateway.received.map((it) => it.topic).toSorted()).toEqual(written.toSorted());
    },
  );
});

/** Whether it is no presence of a gateway, which every box may read. */
const isOfBoxes = (filter: string) => filter.includes('/boxes/');

const READS = [
  ...['#', '+', '+/#', '$SYS/#', 'paybox/#', 'paybox/v1/boxes/+/down', `paybox/v1/boxes/${OWN}/+`],
  ...[`paybox/v1/boxes/${OWN}/#`, `$share/all/${boxTopic(OTHERS, 'down')}`, boxTopic(OWN, 'up')],
  ...[boxTopic(OWN, 'presence'), boxTopic(OTHERS, 'down'), boxTopic(OTHERS, 'up'), 'paybox/v1/gateway/+'],
];
const WRITES = [
  ...[boxTopic(OWN, 'down'), boxTopic(OTHERS, 'down'), boxTopic(OTHERS, 'up'), boxTopic(OTHERS, 'presence')],
  ...[GATEWAY_PRESENCE_TOPIC, `${boxTopic(OWN, 'up')}/`, `/${boxTopic(OWN, 'up')}`, '$SYS/broker', 'anything'],
];
