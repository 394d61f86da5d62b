import type { SoakOptions, SoakResult } from './soak.ts';

/** More failures say no more. */
const FAILURES_MAX = 5;

/** Plays one seed after another, adds their figures up, and goes on after a failure with the next one. */
export async function playSeeds(
  { amount, firstSeed, signal, progress }: SoakOptions,
  play: (seed: number) => Promise<Record<string, number>>,
): Promise<SoakResult> {
  const figures: Record<string, number> = {};
  const failures: string[] = [];
  for (let done = 0; done < amount && failures.length < FAILURES_MAX && !signal.aborted; done += 1) {
    const seed = firstSeed + done;
    try {
      for (const [name, figure] of Object.entries(await play(seed))) figures[name] = (figures[name] ?? 0) + figure;
    } catch (error) {
      failures.push(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
    }
    progress(done + 1, `${failures.length} failures`);
    // A turn of the loop, so that Ctrl-C is heard between two seeds.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { figures, failures };
}
