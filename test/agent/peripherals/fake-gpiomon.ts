import { type Clock, systemClock } from '../../../src/lib/clock.ts';

/** A gpiomon that takes one command line of one version only, and prints what the test writes into its pipe. */
function gpiomon(version: string, ...commandLine: string[]): string[] {
  return [
    `if [ "$*" = --version ]; then echo "gpiomon (libgpiod) v${version}"; echo "Copyright"; exit 0; fi`,
    'rest=$(printf "<%s>" "$@")',
    `[ "$rest" = "${commandLine.map((part) => `<${part}>`).join('')}" ] || { echo "gpiomon: not for v${version}: $rest" >&2; exit 1; }`,
    '[ -p "$HERE/edges" ] || mkfifo "$HERE/edges"',
    'echo $$ >> "$HERE/ids"',
    'exec cat "$HERE/edges"',
  ];
}

export const V1 = gpiomon(
  '1.6.3',
  '--line-buffered',
  '--active-low',
  '--bias=pull-up',
  '--format=%o %e',
  'gpiochip0',
  '17',
  '27',
  '22',
);
export const V2 = gpiomon(
  '2.2.1',
  '--bias=pull-down',
  '--edges=both',
  '--format=%o %e',
  '--chip=gpiochip4',
  '17',
  '27',
  '22',
);
export const LINES = { history: 22, dismiss: 17, repeat: 27 };

/** The waits of buttons.ts that are deadlines, and the one after which gpiomon is taken to be well. */
const VERSION_MS = 5_000;
const KILL_MS = 1_500;
const STEADY_MS = 3_000;

/** Stands until it is told to go on. Waits between tries are short, and gpiomon is well when the test says so. */
export class StandingClock implements Clock {
  readonly #versionMs: number;
  readonly #steady = new Set<() => void>();
  /** Every wait between two tries. */
  readonly waitsMs: number[] = [];
  #nowMs = 1_000_000;

  constructor(versionMs = VERSION_MS) {
    this.#versionMs = versionMs;
  }

  monotonicMs = () => this.#nowMs;
  wallMs = () => this.#nowMs;

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (ms === VERSION_MS) return systemClock.sleep(this.#versionMs, signal);
    if (ms === KILL_MS) return systemClock.sleep(ms, signal);
    if (ms === STEADY_MS) {
      return new Promise((resolve) => {
        this.#steady.add(resolve);
        signal?.addEventListener('abort', () => resolve());
      });
    }
    this.waitsMs.push(ms);
    return systemClock.sleep(20, signal);
  }

  forward(ms: number): void {
    this.#nowMs += ms;
  }

  /** The running gpiomon has run for a good while. */
  steady(): void {
    for (const wake of this.#steady) wake();
  }
}
