import { closeSync, openSync, readSync } from 'node:fs';
import { announcementText } from '../../src/device/voice/words.ts';
import type { LogLine } from './program.ts';

const READ_BYTES = 65_536;

interface Seen {
  life: number;
  atMs: number;
}

/** All that people at the box saw and heard of payments, over every life of its agent. */
export class Evidence {
  readonly #spokenFile: string;
  readonly #voiced = new Map<string, number>();
  readonly #paidScreens = new Map<string, Seen[]>();
  readonly #spoken = new Map<string, number>();
  readonly #killedMs = new Map<number, number>();
  #life = 0;
  #readTo = 0;
  #rest = '';

  /** `spokenFile` gets a line from the speech program for each sentence that it was given. */
  constructor(spokenFile: string) {
    this.#spokenFile = spokenFile;
  }

  take(line: LogLine, life: number): void {
    this.#life = life;
    const transactionId = String(line.transactionId);
    if (line.event === 'payment-spoken') this.#voiced.set(transactionId, this.voiced(transactionId) + 1);
    if (line.event !== 'payment-shown') return;
    const seen = this.#paidScreens.get(transactionId) ?? [];
    this.#paidScreens.set(transactionId, seen);
    seen.push({ life, atMs: performance.now() });
  }

  agentKilled(): void {
    this.#killedMs.set(this.#life, performance.now());
  }

  /** How often the transaction was said aloud to its end. */
  voiced(transactionId: string): number {
    return this.#voiced.get(transactionId) ?? 0;
  }

  /** How often the speech program was given this amount, also when nobody heard the end of it. */
  spoken(amount: number): number {
    this.#readSpoken();
    return this.#spoken.get(announcementText(amount)) ?? 0;
  }

  paidScreens(transactionId: string): number {
    return this.#paidScreens.get(transactionId)?.length ?? 0;
  }

  /**
   * Whether the paid screen came back in a later life although the one before lived on for more than `graceMs` after
   * it had shown it, and so had the time to write that down.
   */
  paidScreenRepeated(transactionId: string, graceMs: number): boolean {
    const seen = this.#paidScreens.get(transactionId) ?? [];
    return seen.some(({ life, atMs }, index) => {
      const next = seen[index + 1];
      const diedMs = this.#killedMs.get(life) ?? Number.POSITIVE_INFINITY;
      return next !== undefined && next.life !== life && diedMs - atMs > graceMs;
    });
  }

  #readSpoken(): void {
    const file = openSync(this.#spokenFile, 'r');
    try {
      const buffer = Buffer.alloc(READ_BYTES);
      for (;;) {
        const bytes = readSync(file, buffer, 0, READ_BYTES, this.#readTo);
        if (bytes === 0) break;
        this.#readTo += bytes;
        this.#rest += buffer.toString('latin1', 0, bytes);
      }
    } finally {
      closeSync(file);
    }
    const lines = this.#rest.split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const text = Buffer.from(line, 'latin1').toString('utf8');
      this.#spoken.set(text, (this.#spoken.get(text) ?? 0) + 1);
    }
  }
}
