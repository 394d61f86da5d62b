import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import { readServerTls } from '../../lib/listen.ts';
import { STOP_BUDGET_MS } from '../../lib/shutdown.ts';
import { readPemFiles } from '../../lib/tls.ts';
import { Authorizer } from '../access/authorizer.ts';
import { Logins } from '../common/logins.ts';
import { OpenParts } from '../common/open-parts.ts';
import type { Readiness } from '../common/readiness.ts';
import type { News, ShardPlace } from '../common/shard.ts';
import type { CreditToShard } from '../common/told-credit.ts';
import { checkVaultFile } from '../common/vault.ts';
import type { GatewayDeps } from '../common/world.ts';
import type { GatewayConfig } from '../config/config.ts';
import { answerBeforeClosing, createApp } from '../doors/app.ts';
import { listenAt, originAt } from '../doors/routes.ts';
import { CONSOLE_EVENTS_PATH } from '../doors/stream-routes.ts';
import { type Gateway, startGateway } from '../gateway.ts';
import { ClusterDatabase, type ClusterSettings, type Member } from '../store/engines/cluster-database.ts';
import { DatabaseClock } from '../store/engines/database-clock.ts';
import { nameOf } from '../store/engines/postgres-session.ts';
import { makeDataDir } from '../store/store-files.ts';
import { Beats } from './beats.ts';
import { BoxFinder } from './box-finder.ts';
import { ConsoleEvents } from './console-events.ts';
import { carryCredits } from './credit-carrier.ts';
import { Destinations } from './destination.ts';
import { fileDigest, mustBeAlike, refuseUnlike } from './differences.ts';
import { frontRoutes, STREAMS } from './front.ts';
import { SharedBudgets } from './login-budgets.ts';
import { NewsDesk } from './news.ts';
import { Peers } from './peers.ts';
import { MAYBE_MISSED, Shards } from './shards.ts';
import { memberReadiness, statusRoutes } from './status.ts';

const SECRET_BYTES = 32;
/** A member that stops waits this long for answers of other members to calls that it has passed on. */
const CARRIED_MS_MAX = 1_500;
/** At its start, a member waits this long for the shards of its first view before it is ready. */
const FIRST_SHARDS_MS_MAX = 15_000;

export type ClusterConfig = GatewayConfig & {
  cluster: NonNullable<GatewayConfig['cluster']>;
  databaseUrl: string;
};

/**
 * Starts a member of a cluster. The members share one PostgreSQL database, one broker, and the boxes and accounts,
 * which are divided into shards. Each shard is a whole gateway, which one member runs at a time. Every member accepts
 * every request. Settles once the member answers and runs its shards. Throws as `startGateway` does.
 */
export async function startMember(config: ClusterConfig, deps: GatewayDeps): Promise<Gateway> {
  const opened = new OpenParts(deps.clock, deps.log);
  try {
    makeDataDir(config.dataDir);
    return await start(config, deps, opened);
  } catch (error) {
    await opened.close(STOP_BUDGET_MS);
    throw error;
  }
}

async function start(config: ClusterConfig, deps: GatewayDeps, opened: OpenParts): Promise<Gateway> {
  const { clock, random, log } = deps;
  const { advertise, shards: count } = config.cluster;
  const member = await memberOf(config, random.uuid());
  const desk = new NewsDesk({
    clock,
    log,
    tell: (text) => database.tell(text),
    heardLogins: (told) => budgets.heard(told),
  });
  const budgets: SharedBudgets = new SharedBudgets({
    clock,
    log,
    member: member.id,
    members: () => beats.members,
    tell: (told) => database.tellOnce(JSON.stringify(told)),
  });
  const time = new DatabaseClock(clock, log);
  const database = new ClusterDatabase(config.databaseUrl, member, time, (text) => desk.heard(text));
  opened.add('cluster database', () => database.close());
  opened.add('wrong logins', () => budgets.close());
  const { settings, vaultKey } = await join(database, config, member, random.secret(SECRET_BYTES));

  const app = memberApp(config, deps);
  const peers = new Peers({ clock, secret: settings.secret, ...readPemFiles({ ca: config.cluster.ca }, 'cluster') });
  opened.add('peers', () => peers.close());
  // The port is set once it is known.
  let own = config;
  const creditTo: CreditToShard = (shard, task, told) => carry(shard, task, told);
  const ofAll = { count, member: member.id, generation: settings.generation, vaultKey, time, budgets, creditTo };
  const place = (index: number): ShardPlace => ({ index, ...ofAll, tell: (news) => desk.tell(news) });
  const inShard = (index: number) => ({ ...deps, log: log.with({ shard: index }) });
  const shards: Shards = new Shards({
    clock,
    log,
    member: member.id,
    count,
    database,
    start: (index) => startGateway({ ...own, standby: false }, { ...inShard(index), place: place(index) }),
    changed: () => beats.soon(),
  });
  const carry = carryCredits({ clock, shards, peers });
  const boxes = new BoxFinder((names) => database.boxes(names));
  const authorizer = authorizerOf(config, { clock, log, budgets, database });
  const heedHere = heedingOf(boxes, shards, authorizer);
  desk.onNews(heedHere);
  const mayHaveMissed = () => MAYBE_MISSED.forEach(heedHere);
  const destinations = new Destinations({ basePath: config.basePath, count, findBox: boxes.find.bind(boxes) });
  const events = new ConsoleEvents({ clock, log, peers, authorizer, adminToken: config.adminToken });
  const beats: Beats = new Beats({ ...deps, member, database, shards, peers, desk, events, mayHaveMissed });
  const readiness = memberReadiness(clock, { shards, view: () => beats.view });
  closeInTurn(opened, { readiness, beats, shards, app, database });
  frontRoutes(
    app,
    { clock, log, random, secret: settings.secret, count, shards, peers, destinations },
    {
      ...statusRoutes({ config, authorizer, member, count, shards, peers, time, view: () => beats.view, readiness }),
      [CONSOLE_EVENTS_PATH]: async (request, reply) => events.watch(request, reply),
    },
  );
  opened.add('console events', () => events.close());
  await listenAt(app, config);
  own = { ...config, http: { ...config.http, port: portOf(app) } };
  await beats.begin(FIRST_SHARDS_MS_MAX);
  log.info('member-ready', { member: member.id, advertise, shards: shards.all().length });
  const origin = originAt(app, config);
  return {
    origin,
    baseUrl: `${origin}${config.basePath}`,
    mqttUrl: shards.all()[0]?.gateway.mqttUrl ?? config.mqtt?.url,
    superseded: undefined,
    handle: (request, response) => app.routing(request, response),
    heed: async (news: News) => void (await desk.tell(news)),
    unready: () => readiness.problem(),
    close: (withinMs = STOP_BUDGET_MS) => opened.close(withinMs),
  };
}

/** Makes a stopping member close these parts one after the other. Its other parts close together afterwards. */
function closeInTurn(
  opened: OpenParts,
  parts: { readiness: Readiness; beats: Beats; shards: Shards; app: FastifyInstance; database: ClusterDatabase },
): void {
  const { readiness, beats, shards, app, database } = parts;
  opened.addFirst('readiness', () => readiness.stop());
  // Other members still see this member while it finishes its pushes. So nobody ends its database sessions meanwhile.
  opened.addFirst('shards', (withinMs) => {
    beats.leave();
    return shards.close(withinMs);
  });
  // A member also answers the calls that it has passed on, before the other members become unreachable.
  opened.addFirst('requests', () => app.close());
  opened.addFirst('membership', async () => {
    await beats.end();
    await database.leave().catch(() => undefined);
  });
}

/** Returns the function that applies news at one member and in all its shards. */
function heedingOf(boxes: BoxFinder, shards: Shards, authorizer: Authorizer): (news: News) => void {
  return (news) => {
    if (news.about === 'registry') {
      boxes.clear();
      void authorizer.changed();
    }
    for (const { gateway } of shards.all()) void gateway.heed(news).catch(() => undefined);
  };
}

/** Makes the authorizer for the routes that a member answers itself. The shards record when a token was used. */
function authorizerOf(
  { adminToken }: ClusterConfig,
  {
    clock,
    log,
    budgets,
    database,
  }: Pick<GatewayDeps, 'clock' | 'log'> & { budgets: SharedBudgets; database: ClusterDatabase },
): Authorizer {
  const root = adminToken === undefined ? undefined : ({ name: 'config', value: adminToken } as const);
  const tokens = { find: (digest: string) => database.adminToken(digest), used: async () => undefined };
  const logins = new Logins(clock, undefined, budgets);
  return new Authorizer({ clock, log, root, onLoopback: 'none', tokens, logins });
}

function memberApp({ http }: ClusterConfig, { log, clock }: GatewayDeps): FastifyInstance {
  const app = createApp(log, clock, http.tls && readServerTls(http.tls, 'http.tls'), http);
  answerBeforeClosing(app, clock, { withinMs: CARRIED_MS_MAX, isAwaited: (path) => !STREAMS.includes(path) });
  return app;
}

async function memberOf(config: ClusterConfig, id: string): Promise<Member> {
  return { id, url: config.cluster.advertise, file: fileDigest(config), alike: await mustBeAlike(config) };
}

/** Joins the cluster, or creates it. Throws ConfigError when this member must not run any shard of it. */
async function join(
  database: ClusterDatabase,
  config: ClusterConfig,
  member: Member,
  secret: string,
): Promise<{ settings: ClusterSettings; vaultKey: Buffer }> {
  try {
    const settings = await database.setUp({ shards: config.cluster.shards, secret });
    const vaultKey = createHash('sha256').update(`paybox registry key\n${settings.secret}`).digest();
    await checkVaultFile(config.dataDir, await database.registryKeyId(), vaultKey);
    // The first beat counts as that of a leaving member. So it gets no shard before it is known to be like the others.
    refuseUnlike(member, await database.beat([], true));
    return { settings, vaultKey };
  } catch (error) {
    await database.leave().catch(() => undefined);
    throw problemOf(config, error);
  }
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
