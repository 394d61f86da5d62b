import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { GatewayConfig } from '../gateway/config.ts';
import { type Gateway, type GatewayDeps, startGateway } from '../gateway/gateway.ts';
import { answerBeforeClosing, createApp } from '../gateway/http/app.ts';
import { listenAt, originAt } from '../gateway/http/routes.ts';
import { readServerTls } from '../gateway/listen.ts';
import { OpenParts } from '../gateway/open-parts.ts';
import { RowCache } from '../gateway/row-cache.ts';
import type { News, ShardPlace } from '../gateway/shard.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../lib/errors.ts';
import { STOP_BUDGET_MS } from '../lib/shutdown.ts';
import { readPemFiles } from '../lib/tls.ts';
import { ClusterDatabase, type ClusterView, MEMBER_GONE_MS, type Member } from '../store/engines/cluster-database.ts';
import { nameOf } from '../store/engines/postgres-session.ts';
import { Destinations } from './destination.ts';
import { frontRoutes } from './front.ts';
import { NewsDesk } from './news.ts';
import { Peers } from './peers.ts';
import { Shards } from './shards.ts';
import { statusRoutes } from './status.ts';

/** Interval at which a member says that it is there. */
export const BEAT_MS = 500;
const SECRET_BYTES = 32;
/** At the start, the shards of the first view are opened before the member says that it is ready. */
const FIRST_SHARDS_MS_MAX = 15_000;

export type ClusterConfig = GatewayConfig & {
  cluster: NonNullable<GatewayConfig['cluster']>;
  databaseUrl: string;
};

/**
 * Starts a member of a cluster of gateways: they share the boxes and accounts of one PostgreSQL database and one broker,
 * in shards. Each shard is a whole gateway, which one member runs at a time; every member takes every request. Settles
 * once the member answers, and runs the shards that fall to it. Throws as `startGateway`.
 */
export async function startMember(config: ClusterConfig, deps: GatewayDeps): Promise<Gateway> {
  const opened = new OpenParts(deps);
  try {
    return await start(config, deps, opened);
  } catch (error) {
    await opened.close(STOP_BUDGET_MS);
    throw error;
  }
}

async function start(config: ClusterConfig, deps: GatewayDeps, opened: OpenParts): Promise<Gateway> {
  const { clock, random, log } = deps;
  const { advertise, shards: count } = config.cluster;
  const member: Member = { id: random.uuid(), url: advertise };
  const desk = new NewsDesk({ clock, log, tell: (text) => database.tell(text) });
  const database = new ClusterDatabase(config.databaseUrl, member, (text) => desk.heard(text));
  opened.add('cluster database', () => database.close());
  const settings = await database
    .setUp({ shards: count, secret: random.secret(SECRET_BYTES) })
    .catch((error: unknown) => Promise.reject(problemOf(config, error)));

  const app = createApp(log, clock, config.http.tls && readServerTls(config.http.tls, 'http.tls'));
  answerBeforeClosing(app, clock);
  const peers = new Peers({
    clock,
    secret: settings.secret,
    ca: readPemFiles({ ca: config.cluster.ca }, 'cluster').ca,
  });
  opened.add('peers', () => peers.close());
  // Set once the port is known.
  let own = config;
  const vaultKey = createHash('sha256').update(`paybox registry key\n${settings.secret}`).digest();
  const tell = (news: News) => desk.tell(news);
  const place = (index: number): ShardPlace => ({ index, count, member: member.id, vaultKey, tell });
  const shards: Shards = new Shards({
    ...{ clock, log, member: member.id, count, database },
    start: (index) => startGateway({ ...own, standby: false }, { clock, random, log, place: place(index) }),
    changed: () => beats.soon(),
  });
  const boxes = new RowCache();
  desk.onNews((news) => {
    if (news.about === 'registry') boxes.clear();
    for (const { gateway } of shards.all()) void gateway.heed(news).catch(() => undefined);
  });
  const findBox = (code: string, serial: string) => boxes.get(`${code} ${serial}`, () => database.box(code, serial));
  const destinations = new Destinations({ basePath: config.basePath, count, findBox });
  const beats = new Beats({ ...deps, database, shards, peers, desk });
  const status = statusRoutes({ config, member, count, shards, peers, view: () => beats.view });
  frontRoutes(app, { clock, log, secret: settings.secret, count, shards, peers, destinations }, status);
  opened.add('requests', () => app.close());
  await listenAt(app, config);
  own = { ...config, http: { ...config.http, port: portOf(app) } };
  await beats.begin(FIRST_SHARDS_MS_MAX);
  const origin = originAt(app, config);
  log.info('member-ready', { member: member.id, advertise, shards: shards.all().length });
  const close = async (withinMs = STOP_BUDGET_MS) => {
    // Still seen while it finishes its pushes: nobody may end its sessions meanwhile.
    beats.leave();
    await shards.close(withinMs);
    await beats.end();
    await database.leave().catch(() => undefined);
    await opened.close(withinMs);
  };
  const [shared] = shards.all();
  return {
    ...{ origin, baseUrl: `${origin}${config.basePath}`, mqttUrl: shared?.gateway.mqttUrl ?? config.mqtt?.url },
    superseded: undefined,
    handle: (request, response) => app.routing(request, response),
    heed: async (news: News) => desk.tell(news),
    close,
  };
}

function problemOf({ databaseUrl }: ClusterConfig, error: unknown): Error {
  if (error instanceof PayboxError) return error;
  const what = `databaseUrl: ${nameOf(databaseUrl)} cannot be used: ${reasonOf(error)}`;
  const isAway = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|timeout|terminated|starting up/.test(reasonOf(error));
  const fix = 'start PostgreSQL, or correct databaseUrl; its user must be allowed to make schemas';
  return isAway ? new MissingPeerError(what, fix, error) : new ConfigError(what, fix);
}

function portOf(app: FastifyInstance): number {
  const address = app.server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

interface BeatsDeps extends Pick<GatewayDeps, 'clock' | 'log'> {
  database: Pick<ClusterDatabase, 'beat'>;
  shards: Shards;
  peers: Pick<Peers, 'see'>;
  desk: Pick<NewsDesk, 'flush' | 'missed'>;
}

/** Says again and again that this member is there, and has its shards follow what it sees. */
class Beats {
  readonly #deps: BeatsDeps;
  readonly #over = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #isLeaving = false;
  /** Undefined while the database does not answer. */
  view: ClusterView | undefined;

  constructor(deps: BeatsDeps) {
    this.#deps = deps;
  }

  /** Beats once more without waiting. */
  soon(): void {
    this.#wake.abort();
  }

  /** The first beat, and the shards that it opens; then goes on. */
  async begin(withinMs: number): Promise<void> {
    const { clock, shards } = this.#deps;
    await this.#beat(false);
    const late = new AbortController();
    await Promise.race([shards.settled(), clock.sleep(withinMs, late.signal)]);
    late.abort();
    this.#running = this.#run();
  }

  /** From now on others take the shards of this member as it hands them over. */
  leave(): void {
    this.#isLeaving = true;
    this.soon();
  }

  async end(): Promise<void> {
    this.#over.abort();
    this.#wake.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps;
    let lostAtMs: number | undefined;
    while (!this.#over.signal.aborted) {
      // After a loss of the database all members look gone until they have beaten again.
      const isWaiting = lostAtMs !== undefined && clock.monotonicMs() - lostAtMs < MEMBER_GONE_MS;
      const isSeen = await this.#beat(isWaiting);
      if (!isSeen) lostAtMs = clock.monotonicMs();
      else if (!isWaiting) lostAtMs = undefined;
      this.#wake = new AbortController();
      await clock.sleep(BEAT_MS, AbortSignal.any([this.#wake.signal, this.#over.signal]));
    }
  }

  /** Settles with whether the database answered. */
  async #beat(isWaiting: boolean): Promise<boolean> {
    const { database, shards, peers, log, desk } = this.#deps;
    try {
      const view = await database.beat(
        shards.all().map(({ index }) => index),
        this.#isLeaving,
      );
      if (this.view === undefined) desk.missed();
      this.view = view;
      peers.see(view);
      await desk.flush();
      if (!isWaiting && !this.#over.signal.aborted) shards.follow(view);
      return true;
    } catch (error) {
      if (this.view !== undefined) log.warn('cluster-database-lost', { reason: reasonOf(error) });
      this.view = undefined;
      return false;
    }
  }
}
