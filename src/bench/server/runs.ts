import { Refusal } from './contract.ts';
import { Run, type RunOptions } from './run.ts';
import { LIMITS } from './schemas.ts';

/** The runs of a server: one at a time, in the order in which they came. */
export class Runs {
  readonly #runs = new Map<string, Run>();
  #count = 0;
  #busy = false;
  #closed = false;

  /** A name for the next run. */
  nextId(): string {
    this.#count += 1;
    return `run-${this.#count}`;
  }

  all(): readonly Run[] {
    return [...this.#runs.values()];
  }

  /** Throws Refusal when no more may wait. */
  assertRoom(): void {
    if (this.#closed) throw new Refusal(503, 'the server ends', 'start it again');
    const waiting = this.all().filter((run) => run.view().state === 'queued').length;
    if (waiting < LIMITS.runsQueued) return;
    throw new Refusal(429, `${waiting} runs wait already`, 'wait for one to end, or DELETE one', {
      'retry-after': '5',
    });
  }

  add(id: string, order: RunOptions): Run {
    this.assertRoom();
    const run = new Run(id, order);
    this.#runs.set(id, run);
    void this.#work();
    return run;
  }

  /** Throws Refusal for one that there is not. */
  get(id: string): Run {
    const run = this.#runs.get(id);
    if (run !== undefined) return run;
    throw new Refusal(
      404,
      `there is no run ${id}`,
      `GET /runs has those of this server; the newest ${LIMITS.runsKept} are kept`,
    );
  }

  /** Aborts all; settled once nothing of them is left. */
  async close(reason: string): Promise<void> {
    this.#closed = true;
    await Promise.all(this.all().map((run) => run.abort(reason)));
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      await next.execute();
      this.#forget();
    }
    this.#busy = false;
  }

  #next(): Run | undefined {
    return this.all().find((run) => run.view().state === 'queued');
  }

  /** Keeps the newest that are over, within the limits. */
  #forget(): void {
    let [count, bytes] = [0, 0];
    for (const run of this.all()
      .filter(({ isOver }) => isOver)
      .reverse()) {
      count += 1;
      bytes += run.pictureBytes;
      const isNewest = count === 1;
      if (!isNewest && (count > LIMITS.runsKept || bytes > LIMITS.pictureBytesKept)) this.#runs.delete(run.id);
    }
  }
}
