import type { FastifyInstance } from 'fastify';
import { readServerTls } from '../../lib/listen.ts';
import { openAccess } from '../access/open-access.ts';
import { createTokens } from '../access/tokens.ts';
import { Health } from '../common/health.ts';
import type { Stored } from '../common/stored.ts';
import type { BoxScreen, World } from '../common/world.ts';
import { portsOf } from '../config/callback-destination.ts';
import { answerBeforeClosing, createApp } from '../doors/app.ts';
import { listenAt, originAt, registerRoutes } from '../doors/routes.ts';
import type { Edges } from '../faults/edges.ts';
import type { Boxes } from './boxes.ts';
import type { Money } from './money.ts';

/** The addresses of a gateway, and its server. */
export interface Doors {
  /** The address, such as `http://127.0.0.1:8800`. */
  origin: string;
  /** `{base_url}` of the service, such as `http://127.0.0.1:8800/vqr`. */
  baseUrl: string;
  health: Health;
}

/** Opens the last stage of a gateway. Throws ConfigError when its port cannot be opened. */
export async function openDoors(
  world: World,
  stored: Stored,
  boxes: Boxes,
  money: Money,
  { edges, boxScreen }: { edges: Edges; boxScreen: BoxScreen | undefined },
): Promise<Doors> {
  const { config, clock, random, opened, place } = world;
  const { store, time } = stored;
  const { hub, mqtt, dialect, everywhere } = boxes;
  const reached = { ...everywhere, isOnline: (terminalCode: string) => hub.online(terminalCode) };
  const access = await openAccess(world, stored, reached, money.sources.reload);
  const health = new Health(clock, store, time, () => mqtt?.isConnected() ?? true, place);
  // A gateway that closes first reports to its proxy that it accepts no more calls.
  opened.addFirst('readiness', () => health.readiness.stop());
  const app = openApp(world);
  const origin = () => originAt(app, config);
  if (mqtt !== undefined) await dialect?.open(mqtt, money.calls, origin);
  const tokens = edges.tokens(await createTokens(store, place.time === undefined ? time.dating(clock) : clock, random));
  const endStreams = registerRoutes(app, {
    world,
    edges,
    stored,
    boxes,
    money,
    access,
    health,
    tokens,
    boxScreen,
    origin,
  });
  opened.add('requests', () => {
    endStreams();
    return app.close();
  });
  await listenAt(app, config);
  const brokerUrl = config.mqtt?.embedded === undefined ? undefined : mqtt?.url;
  for (const port of portsOf(origin(), brokerUrl)) world.outside.ownPorts.add(port);
  return { origin: origin(), baseUrl: `${origin()}${config.basePath}`, health };
}

function openApp({ config, clock, log }: World): FastifyInstance {
  const { tls } = config.http;
  const app = createApp(log, clock, tls && readServerTls(tls, 'http.tls'), config.http);
  answerBeforeClosing(app, clock);
  return app;
}
