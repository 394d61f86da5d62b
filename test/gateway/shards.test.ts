import { describe, expect, it, onTestFinished } from 'vitest';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import { LightAgent, lightSetupOf } from '../../src/device/agent/light-agent.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import type { Scene } from '../../src/device/scene.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { bootRealBox } from '../security/real-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { startProxy } from '../support/proxy.ts';
import { BOX1, BOX2 } from './harness.ts';
import { startShards } from './shards.ts';

const { missing, note } = without(PROGRAMS.mosquitto);
const { terminalCode, serialNumber, secret } = BOX1;
const IDENTITY = { terminalCode, serialNumber, secret };
const GATEWAY_PASSWORD = 'sample-gateway-secret';

/** Mosquitto with the rights that are made for gateways and boxes. */
async function startBroker() {
  const [folder, port] = [await temporaryFolder(), await freePort()];
  const logins = Object.fromEntries([BOX1, BOX2].map((it) => [it.terminalCode, loginOf(it.secret)]));
  const file = await writeMosquittoConfig(folder, port, { gateway: GATEWAY_PASSWORD, ...logins });
  const broker = run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', file]);
  await eventually('Mosquitto', () => broker.output().includes(' running'));
  return { url: `mqtt://127.0.0.1:${port}`, password: GATEWAY_PASSWORD };
}

/** A box of one kind: every screen that it has shown, and the orders whose payments it has announced. */
interface Watched {
  scenes: Scene[];
  isOnline(): boolean;
  announced(): number;
  moves(): number;
}

async function realBox(link: object): Promise<Watched> {
  const scenes: Scene[] = [];
  const { box, log } = await bootRealBox(IDENTITY, link);
  box.onChange(() => scenes.push(box.scene()));
  return {
    scenes,
    isOnline: () => box.status().online,
    announced: () => log.filter((it) => it.event === 'payment-reported').length,
    moves: () => log.filter((it) => it.event === 'link-moved').length,
  };
}

async function lightBox(link: object): Promise<Watched> {
  const scenes: Scene[] = [];
  const { log, lines } = keptLog();
  const opener = (await mqttTransport.openLight?.(systemClock)) ?? expect.fail('no light boxes');
  const config = parseAgentConfig({ box: IDENTITY, link, displays: [{ driver: 'browser' }], dataDir: '.' }, 'test');
  const setup = lightSetupOf(config, mqttTransport, opener);
  const agent = new LightAgent(setup, {
    clock: systemClock,
    random: systemRandom,
    log,
    onScene: (it) => scenes.push(it),
  });
  onTestFinished(async () => {
    await agent.close();
    opener.close();
  });
  return {
    scenes,
    isOnline: () => agent.isOnline,
    announced: () => agent.announcements,
    moves: () => lines.filter((it) => it.event === 'link-moved').length,
  };
}

type Shards = Awaited<ReturnType<typeof startShards>>;

const WAYS: [string, (url: string, shards: Shards) => Promise<{ box: Watched; carry: (shard: number) => void }>][] = [
  ['MQTT', async (url) => ({ box: await realBox({ transport: 'mqtt', url }), carry: () => undefined })],
  ['MQTT, light', async (url) => ({ box: await lightBox({ transport: 'mqtt', url }), carry: () => undefined })],
  [
    'HTTP',
    async (_url, shards) => {
      // What stands before the gateways carries each connection to the home of its box.
      const target = { port: shards.at(0).port };
      const front = await startProxy(target);
      onTestFinished(() => front.close());
      const box = await realBox({ transport: 'http', url: `http://127.0.0.1:${front.port}` });
      const carry = (shard: number) => {
        target.port = shards.at(shard).port;
      };
      return { box, carry };
    },
  ],
];

describe.skipIf(missing)(`boxes of a cluster${note}`, () => {
  it.each(WAYS)(
    'SHA-1 SHA-2 a box over %s moves to another shard and back: it keeps its QR, and hears of each payment once',
    async (_way, start) => {
      const broker = await startBroker();
      const shards = await startShards([0, 3], broker);
      const { box, carry } = await start(broker.url, shards);
      const isAt = (shard: number) => shards.at(shard).hub.session(terminalCode) !== undefined;
      await eventually('online', () => box.isOnline() && isAt(0));
      for (const [turn, to] of [3, 0, 3].entries()) {
        const from = shards.cluster.home;
        const orderId = `DH00${turn}`;
        expect(await shards.push(orderId)).toMatchObject({ ok: true });
        const qrAt = box.scenes.findLastIndex((it) => it.kind === 'payment');
        await shards.move(to);
        // Over HTTP nobody tells what stands before the gateways: the box comes to the old shard until that is known.
        await eventually('the answer', () => shards.lines.some((it) => it.event === 'box-moved'));
        carry(to);
        if (turn === 0) expect(await shards.pay(orderId)).toMatchObject({ ok: true });
        await eventually('its new home', () => isAt(to) && box.isOnline());
        expect(isAt(from)).toBe(false);
        // An order that is paid meanwhile has ended when the welcome comes (MSG-10).
        const kinds = new Set(box.scenes.slice(qrAt).map((it) => it.kind));
        if (turn > 0) expect([...kinds]).toEqual(['payment']);
        if (turn > 0) expect(await shards.pay(orderId)).toMatchObject({ ok: true });
        await eventually('its announcement', () => box.announced() === turn + 1);
        await eventually('its report', async () => (await shards.unreported()).length === 0);
        shards.lines.length = 0;
      }
      expect(box.announced()).toBe(3);
      expect(box.moves()).toBeGreaterThan(0);
    },
  );

  it('SHA-3 a box whose shard is away waits there, and finds the gateway that has taken the place of the cluster', async () => {
    const broker = await startBroker();
    const shards = await startShards([0], broker);
    const box = await realBox({ transport: 'mqtt', url: broker.url });
    await eventually('online', box.isOnline);
    expect(await shards.push('DH001')).toMatchObject({ ok: true });
    const qrAt = box.scenes.findLastIndex((it) => it.kind === 'payment');
    await shards.move(7);
    await eventually('the answer', () => shards.lines.some((it) => it.event === 'box-moved'));
    await eventually('offline', () => !box.isOnline());
    const hellos = () => shards.lines.filter((it) => it.event === 'box-moved').length;
    const said = hellos();
    expect(await shards.pay('DH001')).toMatchObject({ ok: true });
    await shards.replace();
    await eventually('online again', box.isOnline);
    expect(hellos()).toBe(said);
    await eventually('its announcement', () => box.announced() === 1);
    const paidAt = box.scenes.findIndex((it) => it.kind === 'paid');
    expect(box.scenes.slice(qrAt, paidAt).map((it) => it.kind)).toContain('payment');
    await eventually('its report', async () => (await shards.unreported()).length === 0);
  });
});
