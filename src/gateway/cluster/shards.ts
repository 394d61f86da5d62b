import { isDeepStrictEqual } from 'node:util';
import { type Clock, withDeadline } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { STOP_BUDGET_MS } from '../../lib/shutdown.ts';
import type { News } from '../common/shard.ts';
import type { Gateway } from '../gateway.ts';
import type { ClusterDatabase, ClusterView } from '../store/engines/cluster-database.ts';
import { DatabaseInUseError } from '../store/engines/postgres-session.ts';
import { assignShards } from './assignment.ts';

/** The longest wait for open pushes before a shard moves to another member. A push waits for its box for 5 s. */
const PUSHES_MS_MAX = 6_000;
/** The longest wait for the other requests. */
const FINISH_MS_MAX = 1_000;
/** Parts of the time that a stopping member has: for requests other than pushes, and for its gateways to end. */
const STOP_FINISH_MS = 200;
const STOP_END_MS = 400;
/** On an empty database, shard 0 creates the tables that all shards read. */
const NOT_MADE_YET = /relation "shard_0\.\w+" does not exist/;
const FINISH_LOOK_MS = 20;
/** The times for a shard that moves to another member. */
const MOVE_TIMES = { pushesMs: PUSHES_MS_MAX, finishMs: FINISH_MS_MAX, endMs: STOP_BUDGET_MS };
/** After this time, a member that opens a shard waits in the queue for its lock. */
const QUEUED_MS = 250;
/** A member opens at most this many shards at once. The others wait for their turn. */
export const OPENING_MAX = 16;
/** A shard that may have missed news gets these, so that it reads again what they are about. */
export const MAYBE_MISSED: readonly News[] = [{ about: 'registry' }, { about: 'signing-key' }];
/** The wait after a failed attempt to open a shard. */
const OPEN_AGAIN_MS = 2_000;

/** A shard that this member runs. */
export interface RunningShard {
  readonly index: number;
  readonly gateway: Gateway;
  /** The number of requests that are being answered, without streams. */
  inHand: number;
  /** The number of pushes among them. */
  pushesInHand: number;
  /** `without pushes`: the shard is about to move, and accepts no new push. `at once`: it accepts no request. */
  leaving: 'no' | 'without pushes' | 'at once';
}

export interface ShardsDeps {
  clock: Clock;
  log: Logger;
  member: string;
  /** The number of shards in the cluster. */
  count: number;
  database: ClusterDatabase;
  /** Starts the gateway of a shard. */
  start(index: number): Promise<Gateway>;
  /** Called when a shard was opened or closed. */
  changed(): void;
}

/**
 * Runs the shards of this member. Opens those that are assigned to it, and hands over the others.
 *
 * Theory. Every member sees the same list of members, and calculates the same assignment from it. Nobody decides for
 * all. A lock in the database makes sure that only one member runs a shard, even if two members see different lists for
 * a moment.
 *
 * Invariants.
 * - A shard writes only while its database session has the lock. A member that has lost the lock cannot write any more.
 * - A member takes no shard from a holder that is alive. The holder hands it over, after the open pushes and requests.
 * - A member that leaves stays visible until its shards are closed, so that nobody ends its sessions before.
 * - A shard that has opened reads again everything that it may have missed as news.
 *
 * Tried and failed. A member ended the session of a lost holder before it waited for the lock: the old holder took the
 * lock again. So it ends the session once more while it waits. Opening all shards at once failed when a thousand fell
 * to one member, so it opens only some at a time.
 */
export class Shards {
  readonly #deps: ShardsDeps;
  readonly #running = new Map<number, RunningShard>();
  /** Shards that are being opened or closed. */
  readonly #moving = new Map<number, Promise<void>>();
  #opening = 0;
  /** True if shards of the last view wait for their turn to be opened. */
  #isBehind = false;
  /** The reason why a shard could not be opened, and the monotonic time of the next attempt. */
  readonly #failed = new Map<number, { reason: string; untilMs: number }>();
  #assigned: { members: readonly string[]; holders: readonly string[] } = { members: [], holders: [] };
  #isOver = false;

  constructor(deps: ShardsDeps) {
    this.#deps = deps;
  }

  /** Returns the shard if this member runs it and the shard accepts such requests. */
  get(index: number, isPush: boolean): RunningShard | undefined {
    const shard = this.#running.get(index);
    return shard?.leaving === 'no' || (shard?.leaving === 'without pushes' && !isPush) ? shard : undefined;
  }

  all(): RunningShard[] {
    return [...this.#running.values()];
  }

  /** Returns why shards that are assigned to this member do not run. */
  problems(): string[] {
    return [...this.#failed].map(([index, { reason }]) => `shard ${index}: ${reason}`);
  }

  /** Opens and closes shards as this view requires. Does not wait. A later view opens those beyond `OPENING_MAX`. */
  follow({ members, holders }: ClusterView): void {
    if (this.#isOver) return;
    const { count, member, clock } = this.#deps;
    const ids = members.map(({ id }) => id);
    const wanted = this.#wantedBy(members.flatMap(({ id, leaving }) => (leaving ? [] : [id])));
    this.#isBehind = false;
    for (let index = 0; index < count; index += 1) {
      if (this.#moving.has(index)) continue;
      const shard = this.#running.get(index);
      const isMine = wanted[index] === member;
      if (!isMine) this.#failed.delete(index);
      if (shard !== undefined && !isMine) this.#move(index, this.#close(shard, 'it falls to another member'));
      const holder = holders.get(index);
      // A living holder hands the shard over. Nobody takes it away.
      const isTaken = holder !== undefined && holder !== member && ids.includes(holder);
      const isEarly = (this.#failed.get(index)?.untilMs ?? 0) > clock.monotonicMs();
      if (shard !== undefined || !isMine || isTaken || isEarly) continue;
      if (this.#opening >= OPENING_MAX) this.#isBehind = true;
      else this.#move(index, this.#open(index, members));
    }
  }

  /** Returns the assignment for these members. It is cached, because nearly every view has the same members. */
  #wantedBy(members: readonly string[]): readonly string[] {
    if (!isDeepStrictEqual(members, this.#assigned.members)) {
      this.#assigned = { members, holders: assignShards(this.#deps.count, members) };
    }
    return this.#assigned.holders;
  }

  /** Returns whether no shard is moving or waits for its turn to be opened. */
  isSettled(): boolean {
    return this.#moving.size === 0 && !this.#isBehind;
  }

  /** Settles once every shard that is moving now has moved. */
  async settled(): Promise<void> {
    await Promise.all(this.#moving.values());
  }

  /** Hands over all shards within `withinMs`, after the open pushes. A shard that is opening is closed once open. */
  async close(withinMs: number): Promise<void> {
    const { clock } = this.#deps;
    this.#isOver = true;
    const pushesMs = Math.max(0, withinMs - STOP_FINISH_MS - STOP_END_MS);
    const untilMs = clock.monotonicMs() + pushesMs;
    await withDeadline(clock, pushesMs, this.settled());
    const times = {
      pushesMs: Math.max(0, untilMs - clock.monotonicMs()),
      finishMs: STOP_FINISH_MS,
      endMs: STOP_END_MS,
    };
    await Promise.all(this.all().map((shard) => this.#close(shard, 'this member stops', times)));
  }

  #move(index: number, moving: Promise<void>): void {
    const moved = moving.finally(() => {
      this.#moving.delete(index);
      this.#deps.changed();
    });
    this.#moving.set(index, moved);
  }

  async #open(index: number, members: ClusterView['members']): Promise<void> {
    const { log, clock, start, database } = this.#deps;
    this.#opening += 1;
    try {
      await database.endHolder(index, members);
      const opened = new AbortController();
      // The session is ended a second time while this member waits for the lock. A holder that still runs could have
      // taken it again.
      void clock.sleep(QUEUED_MS, opened.signal).then(async () => {
        if (!opened.signal.aborted) await database.endHolder(index, members).catch(() => undefined);
      });
      const gateway = await start(index).finally(() => opened.abort());
      if (this.#isOver) return void (await gateway.close());
      const shard: RunningShard = { index, gateway, inHand: 0, pushesInHand: 0, leaving: 'no' };
      this.#running.set(index, shard);
      this.#failed.delete(index);
      log.info('shard-opened', { shard: index });
      // The gateway received no news while it opened.
      for (const news of MAYBE_MISSED) void gateway.heed(news).catch(() => undefined);
      void gateway.superseded?.then((error) => this.#lose(shard, error.message));
    } catch (error) {
      // The last holder has not closed the shard yet.
      if (error instanceof DatabaseInUseError) return;
      const reason = reasonOf(error);
      this.#failed.set(index, { reason, untilMs: clock.monotonicMs() + OPEN_AGAIN_MS });
      if (NOT_MADE_YET.test(reason))
        log.info('shard-deferred', { shard: index, reason: 'shard 0 makes its tables first' });
      else log.error('shard-failed', { shard: index, reason });
    } finally {
      this.#opening -= 1;
    }
  }

  /** Closes a shard that another member took over while this one did not answer. The shard can no longer write. */
  #lose(shard: RunningShard, reason: string): void {
    if (this.#running.get(shard.index) !== shard) return;
    this.#running.delete(shard.index);
    this.#deps.log.warn('shard-lost', { shard: shard.index, reason });
    this.#move(shard.index, shard.gateway.close());
  }

  async #close(shard: RunningShard, why: string, { pushesMs, finishMs, endMs } = MOVE_TIMES): Promise<void> {
    const { clock, log } = this.#deps;
    const until = async (isDone: () => boolean, withinMs: number) => {
      const endMs = clock.monotonicMs() + withinMs;
      while (!isDone() && clock.monotonicMs() < endMs) await clock.sleep(FINISH_LOOK_MS);
    };
    shard.leaving = 'without pushes';
    await until(() => shard.pushesInHand === 0, pushesMs);
    shard.leaving = 'at once';
    await until(() => shard.inHand === 0, finishMs);
    await shard.gateway.close(endMs);
    this.#running.delete(shard.index);
    log.info('shard-closed', { shard: shard.index, why });
  }
}
