import { createHash } from 'node:crypto';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import { HostResolver } from '../../lib/resolver.ts';
import type { OpenParts } from '../common/open-parts.ts';
import type { Place } from '../common/place.ts';
import type { GatewayDeps } from '../common/world.ts';
import type { GatewayConfig } from '../config/config.ts';
import { DatabaseClock } from '../store/engines/database-clock.ts';
import { nameOf } from '../store/engines/postgres-session.ts';
import { ClusterPlace } from './cluster-place.ts';
import { DatabaseSession } from './database-session.ts';
import { fileDigest, mustBeAlike, refuseUnlike } from './differences.ts';
import { GatewayRows } from './gateway-rows.ts';
import { applicationOf, CHANNEL, channelOf } from './tables.ts';

const SECRET_BYTES = 32;

export type ClusterConfig = GatewayConfig & {
  cluster: NonNullable<GatewayConfig['cluster']>;
  databaseUrl: string;
};

/**
 * Joins the gateways that share a database. Settles once this one is seen there. Throws ConfigError when it must not
 * join, and MissingPeerError when the database does not answer.
 */
export async function joinCluster(config: ClusterConfig, deps: GatewayDeps, opened: OpenParts): Promise<Place> {
  const { databaseUrl } = config;
  const { clock, random } = deps;
  const run = random.uuid();
  const names = new HostResolver({ clock: systemClock });
  const greeting = `select cluster.enter('${run}')`;
  const to = { databaseUrl, names, application: applicationOf(run) };
  const sessions = {
    // The row of this run is made over this session, so it begins without a greeting.
    // A new connection may lead to another server, where nobody was seen lately.
    beats: new DatabaseSession({ ...to, onOpened: () => rows.forgetSilence() }),
    leases: new DatabaseSession({ ...to, greeting }),
    voice: new DatabaseSession({
      ...to,
      greeting: `${greeting}; set synchronous_commit = off; listen ${CHANNEL}; listen ${channelOf(run)}`,
      onNotification: (payload) => place?.heard(payload),
      onOpened: () => place?.mayHaveMissed(),
      onLost: () => place?.deaf(),
    }),
  };
  let place: ClusterPlace | undefined;
  opened.addLast('place', async () => {
    await place?.close();
    await sessions.leases.close();
    await sessions.voice.close();
    await rows.leave(run).catch(() => undefined);
    await sessions.beats.close();
    names.close();
  });
  const rows = new GatewayRows(sessions.beats, databaseUrl, systemClock);
  try {
    const { secret, generation } = await rows.setUp(random.secret(SECRET_BYTES));
    const own = { run, name: config.cluster.name, file: fileDigest(config), alike: await mustBeAlike(config) };
    refuseUnlike(own, await rows.view(own.file));
    const lane = await rows.enter(own);
    const vaultKey = createHash('sha256').update(`paybox registry key\n${secret}`).digest();
    const time = new DatabaseClock(clock, deps.log);
    const parts = { own, lane, generation, vaultKey, time, rows, sessions };
    place = new ClusterPlace(parts, deps);
    await place.enter();
    const here = place;
    // Nobody waits for this: a proxy must hear at once that this gateway stops.
    opened.addFirst('homes', () => void here.beginToLeave());
    return place;
  } catch (error) {
    throw problemOf(databaseUrl, error);
  }
}

function problemOf(databaseUrl: string, error: unknown): Error {
  if (error instanceof PayboxError) return error;
  const what = `databaseUrl: ${nameOf(databaseUrl)} cannot be used: ${reasonOf(error)}`;
  const isAway = /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|timeout|terminated|starting up/.test(reasonOf(error));
  const fix = 'start PostgreSQL, or correct databaseUrl; its user must be allowed to make schemas';
  return isAway ? new MissingPeerError(what, fix, error) : new ConfigError(what, fix);
}
