import { onTestFinished } from 'vitest';
import type { Hub } from '../../src/gateway/boxes/hub.ts';
import { startMqtt } from '../../src/gateway/boxes/mqtt.ts';
import type { ShardPlace } from '../../src/gateway/common/shard.ts';
import type { Stored } from '../../src/gateway/common/stored.ts';
import type { World } from '../../src/gateway/common/world.ts';
import { CallNotes } from '../../src/gateway/partner/call-notes.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { keptLog } from '../support/kept-log.ts';
import { ACCOUNT, BOX1, push, qrFor } from './harness.ts';
import { movingPlace } from './moving-place.ts';
import { boxesOverHttp, oneShop, serviceAlone } from './service-alone.ts';

/** Gateways of some shards in this process, over one store and one broker; all boxes belong to shard `home`. */
export async function startShards(numbers: readonly number[], broker: { url: string; password: string }) {
  const { log, lines } = keptLog();
  const { url, password } = broker;
  const mqtt = { url, username: 'gateway', password };
  const { world, stored, partner } = await oneShop({ confirmTimeoutMs: 30_000, mqtt }, { log });
  const cluster = { account: ACCOUNT.bankAccount, home: numbers[0] ?? 0 };
  const shardAt = (index: number) => openShard(index, world, stored, movingPlace(index, cluster));
  const opened = await Promise.all(numbers.map(shardAt));
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
  const service = serviceAlone(world, stored, home, { hub: home, dispatcher: { wake: () => undefined } });
  return {
    cluster,
    at,
    lines,
    /** Pushes an order to box 1. */
    push: async (orderId: string) => {
      const qrCode = qrFor({ purpose: orderId });
      return service.sendQr(partner, push({ orderId, content: orderId, qrCode }), { notes: new CallNotes(false) });
    },
    pay: (content: string) => {
      const credit = { bankAccount: ACCOUNT.bankAccount, content, amount: 50_000, transType: 'C' };
      return service.testCallback(partner, credit, new CallNotes(true));
    },
    /** Payments that box 1 has not reported. */
    unreported: async () =>
      (await stored.store.payments.takeUnreported(BOX1.terminalCode, systemClock.wallMs())).notices,
    /** A gateway alone takes the place of the cluster. */
    replace: async () => {
      await Promise.all(opened.map((it) => it.close()));
      cluster.home = 0;
      shards.set(0, await openShard(0, world, stored, undefined));
    },
    /** Has the boxes belong to another shard, as a cluster does: box 1 is told to say hello anew. */
    move: async (to: number) => {
      const from = cluster.home;
      cluster.home = to;
      await at(from).hub.renew(BOX1.terminalCode, `its shard is ${to}`);
    },
  };
}

/** The boxes of one shard, or, without a place, of a gateway alone. */
async function openShard(shard: number, shared: World, stored: Stored, place: ShardPlace | undefined) {
  const world = { ...shared, place };
  const { hub, wire, origin, close: closeHttp } = await boxesOverHttp(world, stored);
  const mqtt = await startMqtt(world.config.mqtt ?? never(), world, stored, wire, {
    listeners: undefined,
    boxConnected: () => undefined,
    startBroker: (where, start) => start(where),
  });
  let closing: Promise<void> | undefined;
  const close = async () => {
    await closeHttp();
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
