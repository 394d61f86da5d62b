import type { Ends } from '../../../lib/shutdown.ts';
import type { OnStop, Screen } from './screen.ts';

/** Returns the ends of these displays, each under its number and the name of its driver. */
export function endsOf(screens: readonly Screen[], onStop: OnStop): Ends {
  return Object.fromEntries(
    screens.map((screen, index) => [
      `display ${index + 1}, ${screen.status().driver}`,
      (withinMs: number) => screen.close(onStop, withinMs),
    ]),
  );
}
