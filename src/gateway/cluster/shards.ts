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

/** Longest wait for the pushes in hand before a shard moves to another member: a push waits for its box for 5 s. */
const PUSHES_MS_MAX = 6_000;
/** Longest wait for the other requests. */
const FINISH_MS_MAX = 1_000;
/** A member that stops keeps these parts of its time for the requests that are no pushes, and for its gateways to end. */
const STOP_FINISH_MS = 200;
const STOP_END_MS = 400;
/** On an empty database shard 0 makes the tables that all read. */
const NOT_MADE_YET = /relation "shard_0\.\w+" does not exist/;
const FINISH_LOOK_MS = 20;
/** A shard that moves to another member has these times. */
const MOVE_TIMES = { pushesMs: PUSHES_MS_MAX, finishMs: FINISH_MS_MAX, endMs: STOP_BUDGET_MS };
/** By then a member that opens a shard queues for its lock. */
const QUEUED_MS = 250;
/** Shards that a member opens at once; the others wait for their turn. */
export const OPENING_MAX = 16;
/** Told to a shard that may not have heard some news: it reads again what they are about. */
export const MAYBE_MISSED: readonly News[] = [{ about: 'registry' }, { about: 'signing-key' }];
/** After an attempt to open a shard that failed. */
const OPEN_AGAIN_MS = 2_000;

/** A shard that this member runs. */
export interface RunningShard {
  readonly index: number;
  readonly gateway: Gateway;
  /** Requests that are being answered, without streams; and the pushes among them. */
  inHand: number;
  pushesInHand: number;
  /** It is about to move, and takes no new push; then no request at all. */
  leaving: 'no' | 'without pushes' | 'at once';
}

export interface ShardsDeps {
  clock: Clock;
  log: Logger;
  member: string;
  /** Number of shards of the cluster. */
  count: number;
  database: ClusterDatabase;
  /** Starts the gateway of a shard. */
  start(index: number): Promise<Gateway>;
  /** Called when the shards have changed. */
  changed(): void;
}

/** The shards that this member runs: it opens those that fall to it, and hands over those that fall to another. */
export class Shards {
  readonly #deps: ShardsDeps;
  readonly #running = new Map<number, RunningShard>();
  /** Shards that are being opened or closed. */
  readonly #moving = new Map<number, Promise<void>>();
  #opening = 0;
  /** Whether shards of the last view wait for their turn to be opened. */
  #isBehind = false;
  /** Why a shard could not be opened, and the monotonic time from which on it is tried again. */
  readonly #failed = new Map<number, { reason: string; untilMs: number }>();
  #assigned: { members: readonly string[]; holders: readonly string[] } = { members: [], holders: [] };
  #isOver = false;

  constructor(deps: ShardsDeps) {
    this.#deps = deps;
  }

  /** The shard, if this member runs it and takes such requests for it. */
  get(index: number, isPush: boolean): RunningShard | undefined {
    const shard = this.#running.get(index);
    return shard?.leaving === 'no' || (shard?.leaving === 'without pushes' && !isPush) ? shard : undefined;
  }

  all(): RunningShard[] {
    return [...this.#running.values()];
  }

  /** Why shards that fall to this member do not run. */
  problems(): string[] {
    return [...this.#failed].map(([index, { reason }]) => `shard ${index}: ${reason}`);
  }

  /**
   * Opens and closes shards as the members of this view require. Does not wait until they have moved: a later view opens
   * those beyond `OPENING_MAX`.
   */
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
      // Whoever is there hands it over: nobody takes it away.
      const isTaken = holder !== undefined && holder !== member && ids.includes(holder);
      const isEarly = (this.#failed.get(index)?.untilMs ?? 0) > clock.monotonicMs();
      if (shard !== undefined || !isMine || isTaken || isEarly) continue;
      if (this.#opening >= OPENING_MAX) this.#isBehind = true;
      else this.#move(index, this.#open(index, members));
    }
  }

  /** A view comes twice a second, with the members of the last one nearly always. */
  #wantedBy(members: readonly string[]): readonly string[] {
    if (!isDeepStrictEqual(members, this.#assigned.members)) {
      this.#assigned = { members, holders: assignShards(this.#deps.count, members) };
    }
    return this.#assigned.holders;
  }

  /** Whether no shard is moving or waits for its turn to be opened. */
  isSettled(): boolean {
    return this.#moving.size === 0 && !this.#isBehind;
  }

  /** Settles once every shard that is moving now has moved. */
  async settled(): Promise<void> {
    await Promise.all(this.#moving.values());
  }

  /** Hands over all shards within `withinMs`, and waits for the pushes in hand first. A shard that is still opening is closed once it is open. */
  async close(withinMs: number): Promise<void> {
    const { clock } = this.#deps;
    this.#isOver = true;
    const pushesMs = Math.max(0, withinMs - STOP_FINISH_MS - STOP_END_MS);
    const untilMs = clock.monotonicMs() + pushesMs;
    await withDeadline(clock, pushesMs, this.settled());
    const times = {
      pushesMs: Math.max(0, untilMs - clock.monotonicMs()),
      ...{ finishMs: STOP_FINISH_MS, endMs: STOP_END_MS },
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
      // Once more while this member queues for the lock: a holder that still runs would have taken it again.
      void clock.sleep(QUEUED_MS, opened.signal).then(async () => {
        if (!opened.signal.aborted) await database.endHolder(index, members).catch(() => undefined);
      });
      const gateway = await start(index).finally(() => opened.abort());
      if (this.#isOver) return void (await gateway.close());
      const shard: RunningShard = { index, gateway, inHand: 0, pushesInHand: 0, leaving: 'no' };
      this.#running.set(index, shard);
      this.#failed.delete(index);
      log.info('shard-opened', { shard: index });
      // It has heard no news while it opened.
      for (const news of MAYBE_MISSED) void gateway.heed(news).catch(() => undefined);
      void gateway.superseded?.then((error) => this.#lose(shard, error.message));
    } catch (error) {
      // Its last holder has not closed it yet.
      if (error instanceof DatabaseInUseError) return;
      const reason = reasonOf(error);
      this.#failed.set(index, { reason, untilMs: clock.monotonicMs() + OPEN_AGAIN_MS });
      if (NOT_MADE_YET.test(reason))
        log.info('shard-waits', { shard: index, reason: 'shard 0 makes its tables first' });
      else log.error('shard-failed', { shard: index, reason });
    } finally {
      this.#opening -= 1;
    }
  }

  /** Another member has taken the shard while this one did not answer: it can write nothing more. */
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
