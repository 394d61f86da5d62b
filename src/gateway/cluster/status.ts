import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import { parseJson } from '../../lib/http-client.ts';
import type { Authorizer } from '../access/authorizer.ts';
import { Readiness } from '../common/readiness.ts';
import type { GatewayConfig } from '../config/config.ts';
import type { ClusterView, Member } from '../store/engines/cluster-database.ts';
import type { DatabaseClock } from '../store/engines/database-clock.ts';
import { conflicts, differing } from './differences.ts';
import { mergeMetrics } from './merge.ts';
import type { Part, Peers } from './peers.ts';
import type { Shards } from './shards.ts';

const NO_DATABASE = 'the database does not answer';

export interface StatusDeps {
  config: GatewayConfig;
  authorizer: Authorizer;
  member: Member;
  count: number;
  shards: Pick<Shards, 'all' | 'problems'>;
  peers: Peers;
  time: DatabaseClock;
  /** Returns the cluster as this member sees it. Undefined while the database does not answer. */
  view: () => ClusterView | undefined;
}

/** Returns the routes for health and metrics of a member, by path. */
export function statusRoutes(deps: StatusDeps & { readiness: Readiness }) {
  return {
    '/livez': async () => ({ status: 'ok' }),
    '/readyz': (request: FastifyRequest, reply: FastifyReply) => deps.readiness.answer(request, reply),
    '/healthz': (request: FastifyRequest, reply: FastifyReply) => health(request, reply, deps),
    '/metrics': (request: FastifyRequest, reply: FastifyReply) => metrics(request, reply, deps),
  };
}

/**
 * Reports to a proxy whether a member accepts calls. It refuses them while it cannot find the shard of a call, or while
 * none of its shards works: then other members answer. One shard that does not work is no reason to refuse, because any
 * member may receive the calls for it.
 */
export function memberReadiness(
  clock: Clock,
  { shards, view }: Pick<StatusDeps, 'view'> & { shards: Pick<Shards, 'all' | 'problems'> },
): Readiness {
  return new Readiness(clock, async () => {
    if (view() === undefined) return NO_DATABASE;
    const own = await Promise.all(shards.all().map(({ gateway }) => gateway.unready()));
    const isNone = own.every((reason) => reason !== undefined);
    const reasons = [...new Set([...own, ...shards.problems()])];
    return isNone && reasons.length > 0 ? reasons.join('; ') : undefined;
  });
}

async function health(request: FastifyRequest, reply: FastifyReply, deps: StatusDeps): Promise<unknown> {
  const { config, member, count, shards, peers, time, view } = deps;
  const seen = view();
  const own = shards.all().map(({ index }) => index);
  const asked = await Promise.all(
    own.map(async (index) => ({ index, part: await peers.read(index, request, undefined) })),
  );
  const sick = new Map<string, number[]>();
  for (const { index, part } of asked) {
    if (part?.status === 200) continue;
    const reason = reasonIn(part);
    sick.set(reason, [...(sick.get(reason) ?? []), index]);
  }
  const problems = [
    ...(seen === undefined ? [NO_DATABASE] : conflicts(member, seen)),
    ...shards.problems(),
    ...[...sick].map(([reason, of]) => `${of.length === 1 ? 'shard' : 'shards'} ${of.join(', ')}: ${reason}`),
  ];
  const holders = seen?.holders ?? new Map<number, string>();
  const cluster = {
    member: member.id,
    members: (seen?.members ?? []).map(({ id, url, leaving, aheadMs }) => ({ id, url, leaving, aheadMs })),
    shards: own,
    holders: Object.fromEntries(holders),
    differing: seen === undefined ? [] : differing(member, seen),
    unheld: Array.from({ length: count }, (_, index) => index).filter((index) => !holders.has(index)),
  };
  const seenClock = { clock: time.state, cluster };
  if (problems.length > 0) return reply.code(503).send({ status: 'failed', reason: problems.join('; '), ...seenClock });
  return { status: 'ok', mode: config.mode, ...seenClock };
}

/** Returns why a shard is not healthy. */
function reasonIn(part: Part | undefined): string {
  const said = z.object({ reason: z.string() }).safeParse(parseJson(part?.body ?? ''));
  return said.success ? said.data.reason : 'does not answer';
}

async function metrics(request: FastifyRequest, reply: FastifyReply, deps: StatusDeps): Promise<unknown> {
  const { config, authorizer, member, shards, peers, view } = deps;
  // The shards require a token too (clause ROL-2), because strangers must not see how much money a shop receives.
  const isLetIn = config.mode !== 'live' || (await authorizer.authorize('look', request, reply)) !== undefined;
  if (!isLetIn) return reply;
  const own = shards.all().map(({ index }) => index);
  const texts = await Promise.all(
    own.map(async (index) => {
      const part = await peers.read(index, request, undefined);
      return { shard: index, text: part?.status === 200 ? part.body.toString() : '' };
    }),
  );
  const lines = [
    '# HELP paybox_cluster_members Members that this one sees.',
    '# TYPE paybox_cluster_members gauge',
    `paybox_cluster_members ${view()?.members.length ?? 0}`,
    '# HELP paybox_cluster_shards Shards that this member runs.',
    '# TYPE paybox_cluster_shards gauge',
    `paybox_cluster_shards{member="${member.id}"} ${own.length}`,
  ];
  return reply.type('text/plain; version=0.0.4; charset=utf-8').send(`${mergeMetrics(texts)}${lines.join('\n')}\n`);
}
