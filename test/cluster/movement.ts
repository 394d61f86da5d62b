import {
  OPEN_TIMEOUT_MS,
  REDIAL_FIRST_MS,
  REDIAL_MAX_MS,
  WELCOME_TIMEOUT_MS,
} from '../../src/device/agent/link/link.ts';
import { spreadMsFor } from '../../src/gateway/boxes/welcome.ts';
import { assignShards } from '../../src/gateway/cluster/assignment.ts';
import { BEAT_MS } from '../../src/gateway/cluster/beats.ts';
import { shardOf } from '../../src/gateway/common/shard.ts';
import { MEMBER_GONE_MS } from '../../src/gateway/store/engines/cluster-database.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';

/** Taken as: a shard's store is opened and checked, and its gateway connected to the broker. */
const OPENING_MS = 150;
/** Taken as: the pushes in hand are answered (p99 at half load: 42 ms), and the gateway says that it leaves. */
const CLOSING_MS = 100;
/** Measured: 10,000 boxes in 14.7 s on two cores, which had to run the boxes too. */
export const HELLO_MS = 1.5;
/** From the stop of a member to its first beat under a new id. */
const RESTART_MS = 2_000;
/** Members of a rolling update that are away at once, of all. */
const UPDATED_AT_ONCE = 0.01;
const PEAK_MS = 1_000;
const PEAK_STEP_MS = 100;
/** Of all gateways, in `an outage`: boxes dial as rarely as they ever do by then. */
const OUTAGE_MS = 60_000;
/** An event that has not ended by then does not end by itself; all members that are updated have so long each. */
const EVENT_MS_MAX = 600_000;

export interface ClusterSize {
  members: number;
  shards: number;
  boxes: number;
}

export const CLUSTER_EVENTS = ['one dies', 'a tenth dies', 'one joins', 'all are updated', 'an outage'] as const;
export type ClusterEvent = (typeof CLUSTER_EVENTS)[number];

/** What an event moved; times are counted from the event, or from the end of the last restart of an update. */
export interface Movement {
  /** Shards that were opened; in an update each several times. */
  opened: number;
  /** Hellos that boxes said, and those among them that the gateway did not answer in time. */
  hellos: number;
  unanswered: number;
  /** Until every shard is held, and until every box is welcome. */
  heldMs: number;
  /** Infinity when boxes are not welcome for ten minutes. */
  wholeMs: number;
  /** The longest time for which a shard was not held. */
  awayMsMax: number;
  /** Most hellos in a second. */
  memberPeak: number;
  clusterPeak: number;
}

interface Member {
  id: string;
  /** Others see it; a member that died stays visible for a while. */
  isVisible: boolean;
  isAlive: boolean;
  runs: Set<number>;
  opening: Set<number>;
  /** When it has answered every hello that it got. */
  busyUntilMs: number;
  hellos: Map<number, number>;
}

interface Shard {
  boxes: number;
  welcome: number;
  holder: Member | undefined;
  /** Rises with each loss: what boxes began before concerns them no more. */
  epoch: number;
  lostAtMs: number;
  waiting: Set<Box>;
}

/** A box without a welcome. */
interface Box {
  home: Shard;
  epoch: number;
  redialMs: number;
}

/** Shards, members and boxes of a cluster as the code has them, with its constants, and without what they say. */
export class ClusterModel {
  readonly #clock = new VirtualClock();
  readonly #random;
  readonly #shards: Shard[];
  readonly #members: Member[] = [];
  readonly #hellos = new Map<number, number>();
  #wanted = new Map<string, number[]>();
  #unheld: number;
  #unwelcome: number;
  #born = 0;
  #heldAtMs = 0;
  #wholeAtMs = 0;
  #counts = { opened: 0, hellos: 0, unanswered: 0, awayMsMax: 0 };

  constructor({ members, shards, boxes }: ClusterSize, seed: number) {
    this.#random = seededRandom(seed);
    const emptyShard = () => ({ boxes: 0, welcome: 0, epoch: 0, lostAtMs: 0, waiting: new Set<Box>() });
    this.#shards = Array.from({ length: shards }, () => ({ ...emptyShard(), holder: undefined }));
    for (let box = 0; box < boxes; box += 1) {
      const home = this.#shards[shardOf(String(1_000_000_000 + box), shards)];
      if (home !== undefined) home.boxes += 1;
    }
    [this.#unheld, this.#unwelcome] = [0, 0];
    for (let i = 0; i < members; i += 1) this.#members.push(this.#newMember());
    this.#see();
    for (const member of this.#members) {
      for (const index of this.#wanted.get(member.id) ?? []) this.#hold(this.#shards[index] as Shard, index, member);
      this.#beatFrom(member);
    }
    for (const shard of this.#shards) shard.welcome = shard.boxes;
  }

  /** Has the event happen, and runs until every box is welcome. */
  play(event: ClusterEvent): Movement {
    const startMs = this.#clock.monotonicMs();
    let lastMs = startMs;
    const alive = this.#members.length;
    if (event === 'one dies') this.#die(1);
    else if (event === 'a tenth dies') this.#die(Math.ceil(alive / 10));
    else if (event === 'one joins') this.#join(1);
    else if (event === 'an outage') lastMs = this.#interrupt();
    else lastMs = this.#update(Math.ceil(alive * UPDATED_AT_ONCE));
    // A beat of each: who gets a shard closes or opens it then.
    const isOver = this.#run(
      () => this.#clock.monotonicMs() > lastMs + MEMBER_GONE_MS + 2 * BEAT_MS && this.#unwelcome === 0,
    );
    return {
      ...this.#counts,
      heldMs: Math.max(0, this.#heldAtMs - lastMs),
      wholeMs: isOver ? Math.max(0, this.#wholeAtMs - lastMs) : Number.POSITIVE_INFINITY,
      memberPeak: Math.max(0, ...this.#members.map((member) => peakOf(member.hellos))),
      clusterPeak: peakOf(this.#hellos),
    };
  }

  /** Shards without a holder. */
  get unheld(): number {
    return this.#shards.filter(({ holder }) => holder === undefined).length;
  }

  /** Whether it was done in time. */
  #run(isDone: () => boolean): boolean {
    const untilMs = this.#clock.monotonicMs() + EVENT_MS_MAX;
    while (!isDone()) if (!this.#clock.step(untilMs)) return false;
    return true;
  }

  /** All gateways are away for a while. Returns the time of its end. */
  #interrupt(): number {
    for (const [index, shard] of this.#shards.entries()) {
      const { holder } = shard;
      this.#lose(shard);
      // Nobody takes it over: its holder is there, and cannot serve.
      this.#clock.after(OUTAGE_MS, () => holder !== undefined && this.#hold(shard, index, holder));
    }
    return this.#clock.monotonicMs() + OUTAGE_MS;
  }

  /** Stops all members, some at a time, each as soon as those before it are back. Returns the time of the last start. */
  #update(atOnce: number): number {
    const old = [...this.#members];
    let startedAtMs = 0;
    for (let first = 0; first < old.length; first += atOnce) {
      const some = old.slice(first, first + atOnce);
      this.#leave(some);
      this.#clock.after(RESTART_MS, () => {
        startedAtMs = this.#clock.monotonicMs();
        this.#join(some.length);
      });
      const beganMs = this.#clock.monotonicMs();
      this.#run(() => startedAtMs >= beganMs + RESTART_MS && this.#isSettled(startedAtMs));
    }
    return startedAtMs;
  }

  /** Whether the members that started have opened what falls to them, as `paybox` says when it is ready. */
  #isSettled(startedAtMs: number): boolean {
    const isSeen = this.#clock.monotonicMs() > startedAtMs + 2 * BEAT_MS;
    return isSeen && this.#unheld === 0;
  }

  #newMember(): Member {
    this.#born += 1;
    const id = `${this.#random.uuid()}-${this.#born}`;
    const [runs, opening] = [new Set<number>(), new Set<number>()];
    return { id, isVisible: true, isAlive: true, runs, opening, busyUntilMs: 0, hellos: new Map() };
  }

  /** All members see the same at a time: the assignment is made once for them. */
  #see(): void {
    const ids = this.#members.filter(({ isVisible }) => isVisible).map(({ id }) => id);
    this.#wanted = new Map(ids.map((id) => [id, []]));
    for (const [index, id] of assignShards(this.#shards.length, ids.sort()).entries())
      this.#wanted.get(id)?.push(index);
  }

  #join(count: number): void {
    const joining = Array.from({ length: count }, () => this.#newMember());
    this.#members.push(...joining);
    this.#see();
    for (const member of joining) {
      this.#follow(member);
      this.#beatFrom(member);
    }
  }

  #die(count: number): void {
    for (let dead = 0; dead < count; dead += 1) {
      const living = this.#members.filter(({ isAlive }) => isAlive);
      const member = living[Math.floor(this.#random.fraction() * living.length)];
      if (member === undefined) return;
      member.isAlive = false;
      for (const index of member.runs) this.#lose(this.#shards[index] as Shard);
      // Its last beat was up to one interval ago.
      this.#clock.after(MEMBER_GONE_MS - this.#random.fraction() * BEAT_MS, () => {
        member.isVisible = false;
        this.#see();
      });
    }
  }

  /** A member that stops says so before it closes its shards. */
  #leave(leaving: readonly Member[]): void {
    for (const member of leaving) {
      [member.isVisible, member.isAlive] = [false, false];
      for (const index of member.runs) {
        this.#clock.after(CLOSING_MS, () => this.#lose(this.#shards[index] as Shard, member));
      }
    }
    this.#see();
  }

  #beatFrom(member: Member): void {
    const beat = () => {
      if (!member.isAlive) return;
      this.#follow(member);
      this.#clock.after(BEAT_MS, beat);
    };
    this.#clock.after(this.#random.fraction() * BEAT_MS, beat);
  }

  /** As `Shards.follow`: closes what falls to another, opens what falls to it and nobody visible runs. */
  #follow(member: Member): void {
    const wanted = this.#wanted.get(member.id) ?? [];
    for (const index of member.runs) {
      if (wanted.includes(index)) continue;
      member.runs.delete(index);
      this.#clock.after(CLOSING_MS, () => member.isAlive && this.#lose(this.#shards[index] as Shard, member));
    }
    for (const index of wanted) {
      const shard = this.#shards[index] as Shard;
      const isTaken = shard.holder?.isVisible === true || member.runs.has(index);
      if (isTaken || member.opening.has(index)) continue;
      member.opening.add(index);
      this.#clock.after(OPENING_MS, () => {
        member.opening.delete(index);
        if (!member.isAlive || shard.holder?.isVisible === true) return;
        // Its last holder is leaving, and loses it at once.
        if (shard.holder !== undefined) this.#lose(shard);
        this.#counts.opened += 1;
        this.#hold(shard, index, member);
      });
    }
  }

  #hold(shard: Shard, index: number, member: Member): void {
    const nowMs = this.#clock.monotonicMs();
    shard.holder = member;
    member.runs.add(index);
    if (shard.epoch > 0) {
      this.#unheld -= 1;
      this.#counts.awayMsMax = Math.max(this.#counts.awayMsMax, nowMs - shard.lostAtMs);
    }
    if (this.#unheld === 0) this.#heldAtMs = nowMs;
    const { waiting } = shard;
    shard.waiting = new Set();
    // Presence, or the answer to their stream, reaches all that wait at once.
    for (const box of waiting) this.#hello(box, member);
  }

  /** Its boxes lose their gateway; nothing if `of` holds it no more. */
  #lose(shard: Shard, of = shard.holder): void {
    if (shard.holder === undefined || shard.holder !== of) return;
    shard.holder = undefined;
    shard.epoch += 1;
    shard.lostAtMs = this.#clock.monotonicMs();
    this.#unheld += 1;
    this.#unwelcome += shard.welcome;
    shard.welcome = 0;
    for (let i = 0; i < shard.boxes; i += 1) {
      this.#redial({ home: shard, epoch: shard.epoch, redialMs: REDIAL_FIRST_MS });
    }
  }

  #redial(box: Box): void {
    const waitMs = box.redialMs * (0.5 + this.#random.fraction() / 2);
    box.redialMs = Math.min(2 * box.redialMs, REDIAL_MAX_MS);
    this.#clock.after(waitMs, () => this.#dial(box));
  }

  #dial(box: Box): void {
    if (box.epoch !== box.home.epoch) return;
    const { holder, waiting } = box.home;
    if (holder !== undefined) {
      this.#hello(box, holder);
      return;
    }
    waiting.add(box);
    this.#clock.after(OPEN_TIMEOUT_MS, () => {
      // Another set has taken its place when the shard was held meanwhile.
      if (waiting === box.home.waiting && waiting.delete(box)) this.#redial(box);
    });
  }

  /** Its gateway is there: the box says hello within the time that the gateway asks for (PROTOCOL.md, clause PRE-6). */
  #hello(box: Box, member: Member): void {
    const spreadMs = this.#random.fraction() * spreadMsFor(box.home.boxes);
    this.#clock.after(spreadMs, () => {
      if (box.epoch !== box.home.epoch) return;
      const waitMs = this.#count(member);
      const isInTime = waitMs <= WELCOME_TIMEOUT_MS;
      this.#clock.after(Math.min(waitMs, WELCOME_TIMEOUT_MS), () => {
        if (box.epoch !== box.home.epoch) return;
        if (!isInTime) {
          this.#counts.unanswered += 1;
          this.#redial(box);
          return;
        }
        box.home.welcome += 1;
        this.#unwelcome -= 1;
        if (this.#unwelcome === 0) this.#wholeAtMs = this.#clock.monotonicMs();
      });
    });
  }

  /** A hello comes to this member; returns how long it waits for its answer. */
  #count(member: Member): number {
    const nowMs = this.#clock.monotonicMs();
    this.#counts.hellos += 1;
    const step = Math.floor(nowMs / PEAK_STEP_MS);
    for (const hellos of [member.hellos, this.#hellos]) hellos.set(step, (hellos.get(step) ?? 0) + 1);
    member.busyUntilMs = Math.max(nowMs, member.busyUntilMs) + HELLO_MS;
    return member.busyUntilMs - nowMs;
  }
}

/** The most in a second, of counts by step. */
function peakOf(counts: ReadonlyMap<number, number>): number {
  let peak = 0;
  for (const last of counts.keys()) {
    let sum = 0;
    for (let step = last - PEAK_MS / PEAK_STEP_MS + 1; step <= last; step += 1) sum += counts.get(step) ?? 0;
    peak = Math.max(peak, sum);
  }
  return peak;
}
