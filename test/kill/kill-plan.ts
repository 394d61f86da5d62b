import { setTimeout as delay } from 'node:timers/promises';
import type { Kill } from './script.ts';
import type { Timeline } from './timeline.ts';
import type { World } from './world.ts';

/** Carries out the kills of one run, each from the moment that its script names, and starts again what it killed. */
export class KillPlan {
  readonly count = { agent: 0, gateway: 0, broker: 0 };
  /** When the agent died, in this process's monotonic milliseconds. */
  readonly agentKilledMs: number[] = [];
  readonly #world: World;
  readonly #timeline: Timeline;
  readonly #planned: Set<Kill>;
  readonly #armed = new Set<Kill>();
  readonly #underWay = new Set<Promise<void>>();

  constructor(world: World, kills: readonly Kill[], timeline: Timeline) {
    this.#world = world;
    this.#planned = new Set(kills);
    this.#timeline = timeline;
    world.partner.onCall = () => this.#happened('callback');
    world.onAgentLine = ({ event }) => this.#happened(event);
  }

  stepBegins(index: number): void {
    for (const kill of this.#planned) {
      if (kill.step !== index) continue;
      this.#planned.delete(kill);
      if (kill.from === 'step') this.#begin(kill, kill.delayMs);
      else this.#armed.add(kill);
    }
  }

  /** Settles once those are up again that were killed or are about to be. */
  async underWay(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Kills as planned also those whose moment never came, and settles once all is up again. */
  async finish(): Promise<void> {
    for (const kill of [...this.#planned, ...this.#armed]) this.#begin(kill, kill.delayMs);
    this.disarm();
    await this.underWay();
    for (const program of this.#world.programs.values()) await program.ready();
  }

  disarm(): void {
    this.#planned.clear();
    this.#armed.clear();
    this.#world.partner.onCall = undefined;
    this.#world.onAgentLine = undefined;
  }

  #happened(event: string): void {
    for (const kill of this.#armed) {
      if (kill.from !== event) continue;
      this.#armed.delete(kill);
      this.#begin(kill, kill.delayMs);
    }
  }

  #begin(kill: Kill, delayMs: number): void {
    const done = this.#carryOut(kill, delayMs).finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  async #carryOut({ victims, downMs }: Kill, delayMs: number): Promise<void> {
    // A timer takes a millisecond at least; the moment itself is a moment too.
    if (delayMs >= 1) await delay(delayMs);
    const programs = victims.flatMap((name) => this.#world.programs.get(name) ?? []);
    this.#timeline.add(`kill ${victims.join(', ')}`);
    const gone = programs.map((program) => program.kill());
    for (const { name } of programs) this.count[name] += 1;
    if (victims.includes('agent')) {
      this.agentKilledMs.push(performance.now());
      this.#world.evidence.agentKilled();
    }
    await Promise.all(gone);
    await delay(downMs);
    for (const program of programs) program.start();
    this.#timeline.add(`start ${victims.join(', ')}`);
  }
}
