import { createHash } from 'node:crypto';
import { type Clock, systemClock } from '../../lib/clock.ts';

/** Entries of one scenario, and pictures among them; what comes beyond is counted only. */
const ENTRIES_MAX = 5_000;
const PICTURES_MAX = 200;

/** `call` is what the bench does, `service` what the gateway was called for, `message` what went to boxes and came from them. */
export type EntryKind = 'step' | 'call' | 'service' | 'message' | 'callback' | 'status' | 'screen' | 'problem';

/** One thing that was done or seen. */
export interface TranscriptEntry {
  /** Milliseconds since the scenario began, by the clock of what is tested. */
  atMs: number;
  kind: EntryKind;
  title: string;
  detail?: unknown;
  /** A PNG file. */
  picture?: Uint8Array;
  /** What a decoder read in the picture; null when there is no QR. */
  qr?: string | null;
}

/** What happened in a scenario, in order, for reports. Secrets are kept out by whoever adds. */
export class Transcript {
  readonly entries: TranscriptEntry[] = [];
  /** How long things took, in milliseconds, by what they are. */
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

  /** Entries that there was no room for. */
  get omitted(): number {
    return this.#left;
  }

  add(kind: EntryKind, title: string, more: Pick<TranscriptEntry, 'detail' | 'picture' | 'qr'> = {}): void {
    if (this.entries.length >= ENTRIES_MAX) {
      this.#left += 1;
      return;
    }
    this.entries.push({ atMs: this.#clock.monotonicMs() - this.#beganMs, kind, title, ...more });
  }

  /** Milliseconds since the scenario began, of a time on its clock. */
  sinceBegan(monotonicMs: number): number {
    return monotonicMs - this.#beganMs;
  }

  /** Puts entries of earlier times into their places; `left` others had no room. */
  merge(entries: readonly TranscriptEntry[], left: number): void {
    this.entries.push(...entries);
    this.entries.sort((a, b) => a.atMs - b.atMs);
    this.#left += left;
  }

  /** A picture of a box's screen, unless the newest one of it is the same. */
  addScreen(box: string, picture: Uint8Array, qr: string | undefined): void {
    const digest = createHash('sha256').update(picture).digest('base64');
    if (this.#seen.get(box) === digest) return;
    this.#seen.set(box, digest);
    this.#pictures += 1;
    if (this.#pictures > PICTURES_MAX) this.#left += 1;
    else this.add('screen', box, { picture, qr: qr ?? null });
  }

  /** What a box tells of itself, unless it is what it told last. */
  addStatus(box: string, status: unknown): void {
    const text = JSON.stringify(status);
    if (this.#told.get(box) === text) return;
    this.#told.set(box, text);
    this.add('status', box, { detail: status });
  }

  /** How long `work` takes. Requests go by everybody's clock, waiting by that of what is tested. */
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
