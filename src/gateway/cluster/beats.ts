import { reasonOf } from '../../lib/errors.ts';
import type { GatewayDeps } from '../common/world.ts';
import {
  type ClusterDatabase,
  type ClusterView,
  MEMBER_GONE_MS,
  type Member,
} from '../store/engines/cluster-database.ts';
import type { ConsoleEvents } from './console-events.ts';
import { conflicts, differing } from './differences.ts';
import type { NewsDesk } from './news.ts';
import type { Peers } from './peers.ts';
import type { Shards } from './shards.ts';

/** A member reports that it is alive once in this interval. */
export const BEAT_MS = 500;
const SETTLED_LOOK_MS = 20;

interface BeatsDeps extends Pick<GatewayDeps, 'clock' | 'log'> {
  member: Member;
  database: ClusterDatabase;
  shards: Shards;
  peers: Peers;
  desk: NewsDesk;
  events: ConsoleEvents;
  /** Called at the first beat after a lost or late one. The member may have missed news in between. */
  mayHaveMissed(): void;
}

/** Reports again and again that this member is alive. Makes its shards follow the view of the cluster that it reads. */
export class Beats {
  readonly #deps: BeatsDeps;
  readonly #over = new AbortController();
  #wake = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #isLeaving = false;
  #told: readonly string[] = [];
  /** The monotonic time of the last beat, if the database has answered it. */
  #seenAtMs: number | undefined;
  /** Undefined while the database does not answer. */
  view: ClusterView | undefined;
  /** The number of members in the last view. */
  members = 1;

  constructor(deps: BeatsDeps) {
    this.#deps = deps;
  }

  /** Makes the next beat at once. */
  soon(): void {
    this.#wake.abort();
  }

  /** Makes the first beat, waits for the shards that it opens, and continues to beat. */
  async begin(withinMs: number): Promise<void> {
    const { clock, shards } = this.#deps;
    await this.#beat(false);
    // The beats begin while shards still open. Otherwise other members would count this one as gone. Each beat also
    // opens some more shards.
    this.#running = this.#run();
    const endMs = clock.monotonicMs() + withinMs;
    while (!shards.isSettled() && clock.monotonicMs() < endMs) await clock.sleep(SETTLED_LOOK_MS);
  }

  /** Lets other members take the shards of this one, each as soon as it is handed over. */
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
      // After the database was lost, all members look gone until they have beaten again.
      const isWaiting = lostAtMs !== undefined && clock.monotonicMs() - lostAtMs < MEMBER_GONE_MS;
      // This is set before the beat. A caller of `soon` during the beat has seen something newer, so it needs another
      // beat.
      this.#wake = new AbortController();
      const isSeen = await this.#beat(isWaiting);
      if (!isSeen) lostAtMs = clock.monotonicMs();
      else if (!isWaiting) lostAtMs = undefined;
      await clock.sleep(BEAT_MS, AbortSignal.any([this.#wake.signal, this.#over.signal]));
    }
  }

  /** Logs each difference between members once. An admin has to correct them. */
  #tellDifferences(view: ClusterView): void {
    const { log, member } = this.#deps;
    const told = [
      ...conflicts(member, view),
      ...differing(member, view).map(
        (id) => `member ${id} has other accounts, boxes, partners or settings in its file`,
      ),
    ];
    for (const reason of told) if (!this.#told.includes(reason)) log.warn('members-mismatched', { reason });
    this.#told = told;
  }

  /** Makes one beat. Returns whether the database answered. */
  async #beat(isWaiting: boolean): Promise<boolean> {
    const { clock, database, shards, peers, log, desk, events, mayHaveMissed } = this.#deps;
    const beforeMs = this.#seenAtMs;
    this.#seenAtMs = undefined;
    try {
      const view = await database.beat(
        shards.all().map(({ index }) => index),
        this.#isLeaving,
      );
      // An emptied view must not be followed: the other members look gone until they have beaten again.
      if (view.isEmptied) return false;
      this.#seenAtMs = clock.monotonicMs();
      if (beforeMs === undefined || this.#seenAtMs - beforeMs > MEMBER_GONE_MS) mayHaveMissed();
      this.#tellDifferences(view);
      this.view = view;
      this.members = view.members.length;
      peers.see(view);
      events.see(view);
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
