import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../../../lib/clock.ts';
import type { SourceLine } from '../../scenarios/source.ts';

/** The limit of entries of one scenario. Further entries are only counted. */
const ENTRIES_MAX = 5_000;
const PICTURES_MAX = 200;

/**
 * The kinds of entries. `call`: an action of the bench; `service`: a request to the gateway; `message`: to or from a
 * box.
 */
export type EntryKind = 'step' | 'call' | 'service' | 'message' | 'callback' | 'status' | 'screen' | 'problem';

/** One action or observation. */
export interface TranscriptEntry {
  /** Milliseconds since the scenario began, on the clock of the target. */
  atMs: number;
  kind: EntryKind;
  title: string;
  /** The terminalCode of the box that the entry is about. */
  box?: string | undefined;
  /** The place of a step, for example `happy-path.yaml:12`. */
  where?: string | undefined;
  /** The lines of a step in its file. */
  lines?: readonly SourceLine[];
  detail?: unknown;
  /** A PNG file of a screen. */
  picture?: Uint8Array;
  /** The text that a decoder read in the picture; null without a QR. */
  qr?: string | null;
}

/** Records in order what happened in a scenario, for reports. Callers must remove secrets before they add an entry. */
export class Transcript {
  readonly entries: TranscriptEntry[] = [];
  /** Durations in milliseconds by their names. */
  readonly latencies = new Map<string, number[]>();
  readonly #clock: Clock;
  readonly #beganMs: number;
  readonly #seen = new Map<string, string>();
  readonly #told = new Map<string, string>();
  #pictures = 0;
  #left = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beganMs = clock.monotonicMs();
  }

  /** Returns the number of entries beyond the limit. */
  get omitted(): number {
    return this.#left;
  }

  /** Returns true once there is no room for further pictures. */
  get hasAllPictures(): boolean {
    return this.#pictures >= PICTURES_MAX;
  }

  add(kind: EntryKind, title: string, more: Omit<TranscriptEntry, 'atMs' | 'kind' | 'title'> = {}): void {
    if (this.entries.length >= ENTRIES_MAX) {
      this.#left += 1;
      return;
    }
    this.entries.push({ atMs: this.#clock.monotonicMs() - this.#beganMs, kind, title, ...more });
  }

  /** Converts a time of the clock to milliseconds since the scenario began. */
  sinceBegan(monotonicMs: number): number {
    return monotonicMs - this.#beganMs;
  }

  /** Inserts entries by their time. `left` further ones were dropped before. */
  merge(entries: readonly TranscriptEntry[], left: number): void {
    this.entries.push(...entries);
    this.entries.sort((a, b) => a.atMs - b.atMs);
    this.#left += left;
  }

  /** Adds a picture of a box's screen unless it equals the box's newest one. */
  addScreen(box: string, picture: Uint8Array, qr: string | undefined): void {
    const digest = createHash('sha256').update(picture).digest('base64');
    if (this.#seen.get(box) === digest) return;
    this.#seen.set(box, digest);
    this.#pictures += 1;
    if (this.#pictures > PICTURES_MAX) this.#left += 1;
    else this.add('screen', box, { box, picture, qr: qr ?? null });
  }

  /** Adds a box's status unless it equals the last one. Returns whether it was added. */
  addStatus(box: string, status: unknown): boolean {
    const text = JSON.stringify(status);
    if (this.#told.get(box) === text) return false;
    this.#told.set(box, text);
    this.add('status', box, { box, detail: status });
    return true;
  }

  /** Measures the duration of `work`. Callers measure requests in real time and waits on the target's clock. */
  async timed<T>(what: string, work: () => Promise<T>, clock: Clock = systemClock): Promise<T> {
    const beganMs = clock.monotonicMs();
    const result = await work();
    const tookMs = clock.monotonicMs() - beganMs;
    const known = this.latencies.get(what);
    if (known === undefined) this.latencies.set(what, [tookMs]);
    else known.push(tookMs);
    return result;
  }
}
