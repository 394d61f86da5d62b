import { z } from 'zod';
import { MissingPeerError, PayboxError } from '../../lib/errors.ts';
import type { BoxAt } from '../box-at.ts';
import { type Account, gatewayAbout } from '../gateway-at.ts';
import { ask, jsonOf, ownersHeaders } from '../http.ts';
import type { Pace } from '../pace.ts';
import type { Probe } from '../probe.ts';
import type { Recording } from './recording.ts';
import { Sights } from './sights.ts';
import { type Heard, WireAt } from './wire-at.ts';

/** Entries of a session; what comes beyond is counted as lost. */
const HEARD_MAX = 500_000;
/** Between two entries, at least. */
const TICK_MS = 0.001;

const boxes = z.array(z.looseObject({ terminalCode: z.string(), serialNumber: z.string() }));

export interface RecorderOptions {
  /** Of the gateway. */
  origin: string;
  adminToken?: string | undefined;
  /** Whose screens are watched. */
  boxes: readonly BoxAt[];
  probe: Probe;
  pace: Pace;
}

/** Listens to a gateway, and looks at boxes. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #wire: WireAt;
  readonly #sights: readonly Sights[];
  readonly #heard: Heard[] = [];
  readonly #restartsMs: number[] = [];
  #lost = 0;
  #listening: Promise<void> = Promise.resolve();
  #account: Account | undefined;
  #serials: ReadonlyMap<string, string> = new Map();

  constructor(options: RecorderOptions) {
    const { pace, origin, adminToken } = options;
    this.#options = options;
    this.#wire = new WireAt({ origin, adminToken }, pace.clock);
    this.#sights = options.boxes.map((box) => new Sights(box, options));
  }

  /** Looks at the boxes until the signal; settles then, with all that was told. */
  async watch(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#sights.map((it) => it.watch(signal)));
  }

  /**
   * Takes what is new at the gateway. Throws MissingPeerError while none answers, ConfigError for one that cannot be
   * recorded. One call takes what is new after the other.
   */
  listen(): Promise<void> {
    const mine = this.#listening.catch(() => undefined).then(() => this.#listen());
    this.#listening = mine;
    return mine;
  }

  async #listen(): Promise<void> {
    const { pace } = this.#options;
    const { heard, lost, restarted } = await pace.during(() => this.#wire.news());
    if (restarted) this.#restartsMs.push(heard[0]?.atMs ?? pace.clock.monotonicMs());
    const room = HEARD_MAX - this.#heard.length;
    this.#heard.push(...heard.slice(0, room));
    this.#lost += lost + Math.max(0, heard.length - room);
    if (this.#serials.size === 0) await pace.during(() => this.#askWho());
  }

  /** What there is so far, in the order in which it came. */
  soFar(): Pick<Recording, 'heard' | 'sights'> {
    return { heard: this.#heard, sights: this.#sights.flatMap(({ seen }) => seen) };
  }

  /** What there is so far, retold by time. `writtenAtMs` is calendar time. */
  recording(writtenAtMs: number): Recording {
    const byTime = <T extends { atMs: number }>(list: readonly T[]) => [...list].sort((a, b) => a.atMs - b.atMs);
    return {
      origin: this.#options.origin,
      writtenAtMs,
      heard: oneAfterTheOther(this.#heard),
      sights: byTime(this.#sights.flatMap(({ seen }) => seen)),
      lost: this.#lost,
      restartsMs: this.#restartsMs,
      account: this.#account,
      serials: this.#serials,
    };
  }

  async #askWho(): Promise<void> {
    const { origin, adminToken } = this.#options;
    const headers = ownersHeaders(adminToken);
    const get = async (path: string) => jsonOf(`${origin}${path}`, await ask(`${origin}${path}`, { headers }));
    this.#account = gatewayAbout.parse(await get('/_mock/about')).account ?? undefined;
    const known = boxes.parse(await get('/_mock/boxes'));
    this.#serials = new Map(known.map(({ terminalCode, serialNumber }) => [terminalCode, serialNumber]));
  }
}

/** Times of one millisecond, made to follow each other as the gateway counted them. */
function oneAfterTheOther(heard: readonly Heard[]): Heard[] {
  let lastMs = Number.NEGATIVE_INFINITY;
  return heard.map((it) => {
    lastMs = Math.max(it.atMs, lastMs + TICK_MS);
    return { ...it, atMs: lastMs };
  });
}

/** Whether a gateway may be back in a moment. */
export function isPassing(error: unknown): boolean {
  return error instanceof MissingPeerError || (error instanceof PayboxError && error.severity === 'retryable');
}
