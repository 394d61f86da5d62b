import type { SoakOptions, SoakResult } from './soak.ts';

/** Stops after this many failures; more add no information. */
const FAILURES_MAX = 5;

/** Runs one seed after another and adds their figures up. A failure does not stop it. */
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
    // Yields to the event loop, so that Ctrl-C works between two seeds.
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { figures, failures };
}
