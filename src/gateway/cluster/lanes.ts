import { hash } from 'node:crypto';
import type { Lanes } from '../common/place.ts';
import type { SeenMember, View } from './membership.ts';

/** The lane in which every box begins. No gateway has its home there. */
export const FIRST_LANE = 0;

/** Holds the lanes as this gateway sees them. */
export class ClusterLanes implements Lanes {
  readonly own: number;
  readonly #watchers: (() => void)[] = [];
  #homes: readonly SeenMember[] = [];
  #lanes: readonly number[];
  #doors: readonly number[] = [];

  constructor(own: number) {
    this.own = own;
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

  watch(changed: () => void): void {
    this.#watchers.push(changed);
  }

  /** Returns the lanes that need a door: the first one, and those whose gateway does not live. */
  static withoutGateway({ members, lanes }: View): number[] {
    const living = new Set(members.map(({ lane }) => lane));
    return [FIRST_LANE, ...lanes.filter((it) => !living.has(it))];
  }

  /** Stores the gateways that live, and the doors of this one. */
  see({ members, lanes }: View, doors: readonly number[]): void {
    const staying = members.filter(({ leaving }) => !leaving);
    // Where all leave, boxes stay where they are.
    const homes = staying.length > 0 ? staying : members;
    const before = JSON.stringify([this.#homes.map(({ name }) => name), this.#lanes, this.#doors]);
    [this.#homes, this.#lanes, this.#doors] = [homes, lanes, doors];
    if (before === JSON.stringify([homes.map(({ name }) => name), lanes, doors])) return;
    for (const changed of this.#watchers) changed();
  }
}
