import { z } from 'zod';
import { checkConfig } from '../../lib/config-file.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { readGiven } from '../../lib/given-files.ts';
import { textOfFile } from '../../lib/text-file.ts';
import { parseYaml } from '../../lib/yaml-text.ts';
import type { Finding } from './check.ts';
import type { TargetResults } from './suite.ts';

const deviation = z.strictObject({
  target: z.string(),
  clause: z.string(),
  title: z.string(),
  outcome: z.enum(['failed', 'differs']),
  reason: z.string(),
});

/** A check that a target does not pass, with the reason at the time when the team accepted it. */
type Deviation = z.infer<typeof deviation>;

/** A check of a target. */
interface Named {
  target: string;
  clause: string;
  title: string;
}

const baselineFile = z.strictObject({ accepted: z.array(deviation) });
const BASELINE_BYTES_MAX = 4_194_304;
const FIX = 'write it anew with --update-baseline';

/** Holds the deviations that a team has accepted. */
export class Baseline {
  readonly file: string;
  readonly #accepted: Map<string, Deviation>;
  readonly #isRecording: boolean;

  private constructor(file: string, accepted: readonly Deviation[], isRecording: boolean) {
    this.file = file;
    this.#accepted = new Map(accepted.map((it) => [keyOf(it), it]));
    this.#isRecording = isRecording;
  }

  /** Reads a file. Throws ConfigError that says how one is made. */
  static async read(file: string): Promise<Baseline> {
    let bytes: Buffer;
    try {
      bytes = readGiven(file, BASELINE_BYTES_MAX);
    } catch (error) {
      throw new ConfigError(`--baseline ${file}: cannot be read: ${reasonOf(error)}`, FIX);
    }
    const { value, placeOf } = parseYaml(textOfFile(bytes, file), file);
    const { accepted } = checkConfig(baselineFile, value, file, FIX, placeOf);
    return new Baseline(file, accepted, false);
  }

  /** Returns a new baseline for this file, which accepts each deviation that it meets. */
  static recording(file: string): Baseline {
    return new Baseline(file, [], true);
  }

  /**
   * Returns why a finding is accepted. Returns undefined if nobody accepted it, or only as a choice when it fails now.
   */
  accepted(target: string, { clause, title, outcome, reason }: Finding): string | undefined {
    if (outcome !== 'failed' && outcome !== 'differs') return undefined;
    const found = { target, clause, title, outcome, reason };
    if (this.#isRecording) this.#accepted.set(keyOf(found), found);
    const known = this.#accepted.get(keyOf(found));
    if (known === undefined || (known.outcome === 'differs' && outcome === 'failed')) return undefined;
    return `accepted in ${this.file} as ${known.outcome}`;
  }

  /** Returns the accepted checks that pass now. */
  outdated(all: readonly TargetResults[]): Named[] {
    const passed = all.flatMap(({ target, results }) =>
      results.filter(({ outcome }) => outcome === 'passed').map((it) => keyOf({ target, ...it })),
    );
    return [...this.#accepted].filter(([key]) => passed.includes(key)).map(([, it]) => it);
  }

  /** Returns the content of the file, JSON. */
  text(): string {
    return `${JSON.stringify({ accepted: [...this.#accepted.values()] }, undefined, 2)}\n`;
  }
}

function keyOf({ target, clause, title }: Named): string {
  return JSON.stringify([target, clause, title]);
}
