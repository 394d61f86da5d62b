import { setTimeout as delay } from 'node:timers/promises';
import type { Asked } from './load.ts';

/** What a page answered; `status` is undefined when nobody did. */
interface Answer {
  path: Path;
  askedMs: number;
  answeredMs: number;
  status: number | undefined;
}

const ASK_EVERY_MS = 250;
const ANSWER_MS_MAX = 5_000;
/**
 * A gateway that has refused payments for so long must say so, and the machine has much else to do. The check of /healthz takes 2 s
 * and is kept for 1 s. That of /readyz is kept for 2 s, and takes 5 s where the store is only slow.
 */
const SAYS_SO_MS = { '/healthz': 4_000, '/readyz': 9_000 } as const;
type Path = keyof typeof SAYS_SO_MS;
export const PATHS = Object.keys(SAYS_SO_MS) as Path[];
/** A payment so near to an answer was met by the same state of the store. */
const NEAR_MS = 1_000;

/** Asks the gateway again and again whether it is well. */
export class HealthWatch {
  readonly #answers: Answer[] = [];
  readonly #origin: string;
  readonly #ended: Promise<unknown>;
  #isOver = false;

  constructor(origin: string) {
    this.#origin = origin;
    this.#ended = Promise.all(PATHS.map((path) => this.#watch(path)));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
  }

  /** Paths that do not answer 200 now. */
  async problems(): Promise<string[]> {
    const answers = await Promise.all(PATHS.map((path) => this.#ask(path)));
    return answers.flatMap(({ path, status }) => (status === 200 ? [] : [`${path} answers ${status}`]));
  }

  /** Answers that all was well while no payment had been taken for long, neither before nor after. */
  wrong(asked: readonly Asked[]): string[] {
    const payments = asked.filter(({ isCredit }) => !isCredit).toSorted((a, b) => a.startedMs - b.startedMs);
    const isTaken = ({ outcome }: Asked) => outcome.kind === 'answered' && outcome.ok;
    const isRefused = ({ outcome }: Asked) => outcome.kind === 'answered' && !outcome.ok;
    return this.#answers.flatMap(({ path, askedMs, answeredMs, status }) => {
      if (status !== 200) return [];
      const refusedBefore = payments.some(
        (it) => isRefused(it) && it.endedMs <= askedMs && it.startedMs > askedMs - NEAR_MS,
      );
      const refusedAfter = payments.some(
        (it) => isRefused(it) && it.startedMs >= answeredMs && it.endedMs < answeredMs + NEAR_MS,
      );
      if (!refusedBefore || !refusedAfter) return [];
      const from = askedMs - SAYS_SO_MS[path];
      const near = payments.filter((it) => it.endedMs > from && it.startedMs < answeredMs + NEAR_MS);
      const earlier = payments.some((it) => isRefused(it) && it.endedMs <= from);
      if (!earlier || near.some(isTaken)) return [];
      return [`${path} said that all is well after no payment had been taken for ${SAYS_SO_MS[path]} ms`];
    });
  }

  async #watch(path: Path): Promise<void> {
    while (!this.#isOver) {
      this.#answers.push(await this.#ask(path));
      await delay(ASK_EVERY_MS);
    }
  }

  async #ask(path: Path): Promise<Answer> {
    const askedMs = performance.now();
    const status = await fetch(`${this.#origin}${path}`, { signal: AbortSignal.timeout(ANSWER_MS_MAX) }).then(
      async (answer) => answer.text().then(() => answer.status),
      () => undefined,
    );
    return { path, askedMs, answeredMs: performance.now(), status };
  }
}
