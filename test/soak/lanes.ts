import type { WorldKind } from '../kill/script.ts';
import type { SoakOptions, SoakResult } from './soak.ts';

/** More failures say no more. */
const FAILURES_MAX = 5;
/** Runs that share one world: one journal and one store live through all of them. */
const RUNS_PER_WORLD_MAX = 50;

/** Plays runs in worlds of programs side by side, two at least; the kinds take turns. */
export async function playLanes<Report extends Record<string, number> & { payments: number }>(
  { amount, firstSeed, lanes, signal, progress }: SoakOptions,
  kinds: readonly WorldKind[],
  play: (kind: WorldKind, seeds: Iterable<number>, onRun: (report: Report) => boolean) => Promise<unknown>,
): Promise<SoakResult> {
  const failures: string[] = [];
  const figures: Record<string, number> = {};
  let next = firstSeed;
  let done = 0;
  let worlds = 0;
  function* seeds() {
    while (next < firstSeed + amount) yield next++;
  }
  const lane = async () => {
    while (next < firstSeed + amount && failures.length < FAILURES_MAX && !signal.aborted) {
      const kind = kinds[worlds++ % kinds.length];
      if (kind === undefined) throw new Error('no kind of world');
      let left = RUNS_PER_WORLD_MAX;
      const onRun = (report: Report) => {
        done += 1;
        left -= 1;
        for (const [name, figure] of Object.entries(report)) figures[name] = (figures[name] ?? 0) + figure;
        progress(done, `${figures.payments} payments, ${failures.length} failures`);
        return left > 0 && !signal.aborted;
      };
      await play(kind, seeds(), onRun).catch((error: unknown) => failures.push(String(error)));
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, lanes) }, lane));
  return { figures: { runs: done, ...figures }, failures };
}
