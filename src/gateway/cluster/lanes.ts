import { hash } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { Lanes } from '../common/place.ts';
import type { LivingGateway, View } from './gateway-rows.ts';

/** The lane in which every box begins. No gateway has its home there. */
export const FIRST_LANE = 0;
/** A gateway that is not at the broker for this time sends its boxes away. */
const UNSERVED_MS = 2_000;
/** A gateway that has come to the broker takes no doors of others for this time: they may come at the same moment. */
const ALONE_MS = 2_000;

/** Holds the lanes as this gateway sees them. */
export class ClusterLanes implements Lanes {
  readonly own: number;
  readonly #clock: Clock;
  readonly #watchers: (() => void)[] = [];
  #isServed: () => boolean = () => false;
  #send: (lane: number, sealed: Buffer) => boolean = () => false;
  #heard: (sealed: Buffer) => void = () => undefined;
  #servedAtMs = Number.NEGATIVE_INFINITY;
  #servedSinceMs = Number.NEGATIVE_INFINITY;
  #homes: readonly LivingGateway[] = [];
  #lanes: readonly number[];
  #doors: readonly number[] = [];
  #isLeaving = false;

  constructor(own: number, clock: Clock) {
    this.own = own;
    this.#clock = clock;
    this.#lanes = [own];
  }

  get count(): number {
    return Math.max(...this.#lanes, this.own) + 1;
  }

  /**
   * Returns the home of a box by rendezvous hashing: of all gateways the one with the highest hash of its name and the
   * box. So a gateway that comes or goes changes only the homes of its own share.
   */
  homeOf(terminalCode: string): number {
    let best = { lane: this.own, weight: '' };
    for (const { name, lane } of this.#homes) {
      const weight = hash('sha256', `${name} ${terminalCode}`);
      if (weight > best.weight) best = { lane, weight };
    }
    return best.lane;
  }

  doors(): readonly number[] {
    return this.#doors;
  }

  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  watch(changed: () => void): void {
    this.#watchers.push(changed);
  }

  serve(isServed: () => boolean, send: (lane: number, sealed: Buffer) => boolean): void {
    this.#isServed = isServed;
    this.#send = send;
  }

  said(sealed: Buffer): void {
    this.#heard(sealed);
  }

  /** Says something to the gateway of a lane. Returns false while this one is not at the broker. */
  send(lane: number, sealed: Buffer): boolean {
    return this.#send(lane, sealed);
  }

  /** Passes on what others say to this lane. */
  hear(heard: (sealed: Buffer) => void): void {
    this.#heard = heard;
  }

  /** Returns whether the own lane is served, or was a moment ago: a short break moves no boxes. */
  get isServed(): boolean {
    const nowMs = this.#clock.monotonicMs();
    const wasServed = nowMs - this.#servedAtMs < UNSERVED_MS;
    if (!this.#isServed()) return wasServed;
    this.#servedAtMs = nowMs;
    if (!wasServed) this.#servedSinceMs = nowMs;
    return true;
  }

  /**
   * Returns the lanes that need a door which this gateway can open: the first one, and those that no gateway serves. A
   * gateway that is not at the broker can open none.
   */
  toOpen({ gateways, lanes }: View): number[] {
    if (!this.isServed) return [];
    const isAlone = this.#clock.monotonicMs() - this.#servedSinceMs >= ALONE_MS;
    const served = new Set(gateways.filter((it) => it.served).map(({ lane }) => lane));
    const without = lanes.filter((it) => !served.has(it));
    return [FIRST_LANE, ...without.filter((it) => isAlone || this.#doors.includes(it))];
  }

  /** Stores the gateways that live, and the doors of this one. */
  see({ gateways, lanes }: View, doors: readonly number[]): void {
    const serving = gateways.filter(({ served }) => served);
    const staying = serving.filter(({ leaving }) => !leaving);
    // Where all leave, boxes stay where they are.
    const homes = staying.length > 0 ? staying : serving;
    const before = JSON.stringify([this.#homes.map(({ name }) => name), this.#lanes, this.#doors]);
    [this.#homes, this.#lanes, this.#doors] = [homes, lanes, doors];
    this.#isLeaving = gateways.some(({ lane, leaving }) => lane === this.own && leaving);
    if (before === JSON.stringify([homes.map(({ name }) => name), lanes, doors])) return;
    for (const changed of this.#watchers) changed();
  }
}
