import { onTestFinished } from 'vitest';
import { Logins } from '../../src/gateway/logins/logins.ts';
import { signedConnections } from '../../src/gateway/boxes/connection.ts';
import { Hub } from '../../src/gateway/boxes/hub.ts';
import { MessageSigner } from '../../src/gateway/boxes/message-signer.ts';
import { startMqtt } from '../../src/gateway/boxes/mqtt.ts';
import { Changes } from '../../src/gateway/changes.ts';
import { parseGatewayConfig } from '../../src/gateway/config.ts';
import type { Context } from '../../src/gateway/context.ts';
import { createDirectory } from '../../src/gateway/directory.ts';
import { createApp } from '../../src/gateway/http/app.ts';
import { boxRoutes } from '../../src/gateway/http/box-routes.ts';
import { createMetrics } from '../../src/gateway/metrics.ts';
import { writeFileRows } from '../../src/gateway/registry/seed.ts';
import { CallNotes } from '../../src/gateway/service/call-notes.ts';
import { QrMakers } from '../../src/gateway/service/qr-makers.ts';
import { createReceivePayment } from '../../src/gateway/service/receive-payment.ts';
import { Service } from '../../src/gateway/service/service.ts';
import { TrafficLog } from '../../src/gateway/traffic-log.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { openStore } from '../../src/store/store.ts';
import { keptLog } from '../support/kept-log.ts';
import { temporaryFolder } from '../support/net.ts';
import { ACCOUNT, BOX1, BOXES, push, qrFor } from './harness.ts';

const SHARDS = 8;

/** To which shard the boxes belong, and how many there are; undefined at a gateway alone. */
interface Cluster {
  home: number;
  shards: number | undefined;
}

/** Gateways of some shards in this process, over one store and one broker; all boxes belong to shard `home`. */
export async function startShards(numbers: readonly number[], broker: { url: string; password: string }) {
  const { log, lines } = keptLog();
  const dataDir = await temporaryFolder();
  const { url, password } = broker;
  const config = parseGatewayConfig(
    {
      ...{ dataDir, accounts: [ACCOUNT], confirmTimeoutMs: 30_000, mqtt: { url, username: 'gateway', password } },
      boxes: BOXES.filter((it) => it.account === ACCOUNT.bankAccount),
      // It hears of no payment, which is not what this is about.
      partners: [
        {
          ...{ username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount] },
          callback: { url: 'http://127.0.0.1:9/' },
        },
      ],
    },
    'test',
  );
  const store = await openStore({ dataDir }, log);
  onTestFinished(() => store.close());
  const base = { store, clock: systemClock, random: systemRandom, log, config, changes: new Changes() };
  await writeFileRows(store.registry, config, systemClock.wallMs());
  const vault = { unwrap: (of: string) => `no secret ${of}` };
  const directory = createDirectory({ registry: store.registry, enrolled: store.boxSecrets, config, vault });
  const deps = { ...base, directory, trafficLog: new TrafficLog(base) };
  const cluster: Cluster = { home: numbers[0] ?? 0, shards: SHARDS };
  const opened = await Promise.all(numbers.map((shard) => openShard(shard, cluster, deps)));
  const shards = new Map(opened.map((it) => [it.shard, it]));
  const at = (shard: number) => shards.get(shard) ?? opened[0] ?? never();
  const home: Pick<Hub, 'session' | 'sessions' | 'push' | 'withdrawPush' | 'sendPayment' | 'resendFromStore'> = {
    session: (code) => at(cluster.home).hub.session(code),
    get sessions() {
      return at(cluster.home).hub.sessions;
    },
    push: (...it) => at(cluster.home).hub.push(...it),
    withdrawPush: (...it) => at(cluster.home).hub.withdrawPush(...it),
    sendPayment: (...it) => at(cluster.home).hub.sendPayment(...it),
    resendFromStore: (codes) => at(cluster.home).hub.resendFromStore(codes),
  };
  const pay = createReceivePayment({ ...deps, hub: home, dispatcher: { wake: () => undefined } });
  const makers = new QrMakers({ ...deps, sources: { makerFor: () => undefined }, askOf: () => never });
  const metrics = createMetrics(
    () => 0,
    async () => undefined,
    { aheadMs: undefined },
  );
  const service = new Service({ ...deps, hub: home, makers, pay, metrics });
  const partner = config.partners[0] ?? never();
  return {
    cluster,
    at,
    lines,
    /** Pushes an order to box 1. */
    push: async (orderId: string) => {
      const qrCode = qrFor({ purpose: orderId });
      return service.sendQr(partner, push({ orderId, content: orderId, qrCode }), new CallNotes(false));
    },
    pay: (content: string) => {
      const credit = { bankAccount: ACCOUNT.bankAccount, content, amount: 50_000, transType: 'C' };
      return service.testCallback(partner, credit, new CallNotes(true));
    },
    /** Payments that box 1 has not reported. */
    unreported: async () => (await store.payments.takeUnreported(BOX1.terminalCode, systemClock.wallMs())).notices,
    /** Has the boxes belong to another shard, as a cluster does: box 1 is told to say hello anew. */
    /** A gateway alone takes the place of the cluster. */
    replace: async () => {
      await Promise.all(opened.map((it) => it.close()));
      Object.assign(cluster, { home: 0, shards: undefined });
      shards.set(0, await openShard(0, cluster, deps));
    },
    move: async (to: number) => {
      const from = cluster.home;
      cluster.home = to;
      await at(from).hub.renew(BOX1.terminalCode, `its shard is ${to}`);
    },
  };
}

async function openShard(shard: number, cluster: Cluster, deps: Context) {
  const { config, clock, log } = deps;
  const home = { shard, of: () => cluster.home };
  const hub = new Hub({ ...deps, ...config, home });
  const signer = await MessageSigner.open({ ...deps, hub });
  const shared = { ...deps, hub, signer, connect: signedConnections({ signer, log }), logins: new Logins(clock) };
  const mqtt = await startMqtt(config.mqtt ?? never(), {
    ...shared,
    place: cluster.shards === undefined ? undefined : { index: shard, count: cluster.shards },
    listeners: undefined,
    boxConnected: () => undefined,
    startBroker: (where, start) => start(where),
  });
  const app = createApp(log, clock);
  const endStreams = boxRoutes(app, shared);
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  let closing: Promise<void> | undefined;
  const close = async () => {
    endStreams();
    await app.close();
    await mqtt.close();
    await hub.close();
  };
  const closeOnce = () => {
    closing ??= close();
    return closing;
  };
  onTestFinished(closeOnce);
  return { shard, hub, port: Number(new URL(origin).port), close: closeOnce };
}

function never(): never {
  throw new Error('not in this test');
}
