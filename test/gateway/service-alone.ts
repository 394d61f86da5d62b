import { onTestFinished } from 'vitest';
import { signedConnections } from '../../src/gateway/boxes/connection.ts';
import { HttpStreams } from '../../src/gateway/boxes/http-streams.ts';
import { Hub } from '../../src/gateway/boxes/hub.ts';
import { MessageSigner } from '../../src/gateway/boxes/message-signer.ts';
import type { Metrics } from '../../src/gateway/common/metrics.ts';
import type { Stored } from '../../src/gateway/common/stored.ts';
import type { World } from '../../src/gateway/common/world.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { createApp } from '../../src/gateway/doors/app.ts';
import { boxRoutes } from '../../src/gateway/doors/box-routes.ts';
import type { Sources } from '../../src/gateway/money/open-sources.ts';
import { QrMakers } from '../../src/gateway/money/qr-makers.ts';
import { createReceivePayment, type PaymentHearers } from '../../src/gateway/money/receive-payment.ts';
import type { PushHub } from '../../src/gateway/partner/partner-pushes.ts';
import { Service } from '../../src/gateway/partner/service.ts';
import { writeFileRows } from '../../src/gateway/registry/seed.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { temporaryFolder } from '../support/net.ts';
import { ACCOUNT, BOXES } from './harness.ts';
import { only, storedIn, worldOf } from './stage-records.ts';

export const NO_METRICS: Metrics = {
  pushed: () => undefined,
  called: () => undefined,
  heard: () => undefined,
  contentType: '',
  text: async () => '',
};

/** The service over this hub, without sources of money. */
export function serviceAlone(world: World, stored: Stored, hub: PushHub, hearers: PaymentHearers): Service {
  const pay = createReceivePayment(world, stored, hearers);
  const noSource = () => () => Promise.reject(new Error('no source'));
  const makers = new QrMakers(world, only<Sources>({ makerFor: () => undefined }), noSource);
  return new Service(world, stored, hub, { makers, pay, metrics: NO_METRICS });
}

/** The boxes of a gateway, at a hub of their own and over HTTP. */
export async function boxesOverHttp(world: World, stored: Stored) {
  const hub = new Hub(world, stored);
  const signer = await MessageSigner.open(world, stored, hub);
  const wire = { hub, connect: signedConnections(world, signer), signer };
  const app = createApp(world.log, world.clock);
  const streams = new HttpStreams(world, wire);
  const endStreams = boxRoutes(app, world, stored, { wire, streams });
  const origin = await app.listen({ host: '127.0.0.1', port: 0 });
  const close = async () => {
    endStreams();
    await app.close();
  };
  return { hub, wire, streams, origin, close };
}

/** A gateway's world and store with one account, its boxes, and a partner whose callbacks nobody takes. */
export async function oneShop(config: Record<string, unknown> = {}, parts: Omit<Partial<World>, 'config'> = {}) {
  const dataDir = await temporaryFolder();
  const callback = { url: 'http://127.0.0.1:9/' };
  const listed = {
    accounts: [ACCOUNT],
    boxes: BOXES.filter((it) => it.account === ACCOUNT.bankAccount),
    partners: [{ username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount], callback }],
  };
  const world = worldOf({ ...parts, config: parseGatewayConfig({ dataDir, ...listed, ...config }, 'test') });
  const store = await openStore({ dataDir }, world.log);
  onTestFinished(() => store.close());
  await writeFileRows(store.registry, world.config, world.clock.wallMs());
  const [partner] = world.config.partners;
  if (partner === undefined) throw new Error('no partner');
  return { world, stored: storedIn(store, world), partner };
}
