import { formatAmount } from '../../../device/display/words.ts';
import { reasonOf } from '../../../lib/errors.ts';
import { explained } from '../../../protocol/codes.ts';
import { statusResponse } from '../../../protocol/http-api.ts';
import { type LoggedTraffic, TrafficLogClient } from '../clients/traffic-log.ts';
import type { Transcript, TranscriptEntry } from '../reports/transcript.ts';
import type { Target } from '../target.ts';

/** A report has this many messages from the begin and from the end of a scenario. Those between are only counted. */
const FIRST_MAX = 500;
const LAST_MAX = 1_500;
/** The length limit of an entry's detail, in characters. */
const DETAIL_CHARS_MAX = 4_000;

/** Copies a gateway's traffic log into a scenario's transcript. */
export class TrafficRecorder {
  readonly #target: Target;
  readonly #transcript: Transcript;
  readonly #wire: TrafficLogClient;
  readonly #first: TranscriptEntry[] = [];
  #last: TranscriptEntry[] = [];
  #left = 0;
  #problem: string | undefined;

  constructor(target: Target, transcript: Transcript) {
    this.#target = target;
    this.#transcript = transcript;
    this.#wire = new TrafficLogClient(target.gateway.access, target.time.clock);
  }

  /** Returns the target, wrapped so that the recorder reads the log before the gateway is turned off. */
  target(): Target {
    return {
      ...this.#target,
      powerGateway: async (power) => {
        if (power !== 'on') await this.#readNew();
        await this.#target.powerGateway(power);
      },
    };
  }

  /** Drops entries from before the scenario. */
  async begin(): Promise<void> {
    await this.#readNew();
    this.#forget();
  }

  /** Adds the traffic since the last call to the transcript. */
  async end(): Promise<void> {
    await this.#readNew();
    this.#keepLast();
    this.#transcript.merge([...this.#first, ...this.#last], this.#left);
    this.#forget();
    if (this.#problem !== undefined) {
      this.#transcript.add('status', 'the gateway does not list messages', { detail: this.#problem });
    }
  }

  #forget(): void {
    this.#first.length = 0;
    this.#last = [];
    this.#left = 0;
  }

  async #readNew(): Promise<void> {
    try {
      const { entries, lost } = await this.#target.time.inRealTime(() => this.#wire.readNew());
      this.#left += lost;
      for (const it of entries) this.#keep({ atMs: this.#transcript.sinceBegan(it.atMs), ...entryOf(it) });
      this.#problem = undefined;
    } catch (error) {
      // The gateway is of another kind, or off.
      this.#problem = reasonOf(error);
    }
  }

  #keep(entry: TranscriptEntry): void {
    if (this.#first.length < FIRST_MAX) this.#first.push(entry);
    else this.#last.push(entry);
    // The recorder trims rarely, because each trim copies the array.
    if (this.#last.length >= 2 * LAST_MAX) this.#keepLast();
  }

  #keepLast(): void {
    this.#left += Math.max(0, this.#last.length - LAST_MAX);
    this.#last = this.#last.slice(-LAST_MAX);
  }
}

/** Returns a log entry as a line of the timeline. */
function entryOf(entry: LoggedTraffic): Omit<TranscriptEntry, 'atMs'> {
  switch (entry.kind) {
    case 'call': {
      const { method, path, status, tookMs, by, body, answer } = entry;
      const said = statusResponse.safeParse(answer);
      const code = said.success && said.data.status === 'FAILED' ? `, ${explained(said.data.message)}` : '';
      const detail = cut({ by, tookMs: Math.round(tookMs), body, answer });
      return { kind: 'service', title: `${method} ${path}: ${status}${code}`, detail };
    }
    case 'message': {
      const arrow = entry.to === 'box' ? '→' : '←';
      const { v: _v, sessionId: _session, ...body } = entry.body;
      return { kind: 'message', title: `gateway ${arrow} ${entry.box}  ${summaryOf(entry.body)}`, detail: cut(body) };
    }
    case 'box': {
      const { box, online, why } = entry;
      return { kind: 'message', title: online ? `${box} is online over ${why}` : `${box} is lost: ${why}` };
    }
    case 'callback': {
      const { transactionId, result, status, error, warning, body, answer, tookMs } = entry;
      const title = `attempt: ${result}, ${status ?? error ?? 'no answer'}`;
      return { kind: 'callback', title, detail: cut({ transactionId, tookMs, warning, error, body, answer }) };
    }
  }
}

/** Returns the type of a message and its most useful fields. */
function summaryOf(body: Readonly<Record<string, unknown>> & { type: string }): string {
  const { type, orderId, amount, code, how, why } = body;
  const money = typeof amount === 'number' ? formatAmount(amount) : undefined;
  return [type, orderId, money, code, how, why].filter((it) => typeof it === 'string' && it !== '').join(' ');
}

function cut(detail: unknown): unknown {
  const text = JSON.stringify(detail) ?? '';
  return text.length > DETAIL_CHARS_MAX ? `${text.slice(0, DETAIL_CHARS_MAX)}…` : detail;
}
