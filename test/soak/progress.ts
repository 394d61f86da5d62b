/** Interval of plain lines when no terminal is attached. */
const PLAIN_EVERY_MS = 10_000;
const TERMINAL_EVERY_MS = 100;

/** Prints progress: one live line on a terminal, plain lines elsewhere. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  readonly #name: string;
  readonly #amount: number;
  readonly #unit: string;
  readonly #startedMs = performance.now();
  #toldMs = Number.NEGATIVE_INFINITY;

  constructor(out: NodeJS.WriteStream, name: string, amount: number, unit: string) {
    this.#out = out;
    this.#name = name;
    this.#amount = amount;
    this.#unit = unit;
  }

  show(done: number, text: string): void {
    const nowMs = performance.now();
    const everyMs = this.#out.isTTY ? TERMINAL_EVERY_MS : PLAIN_EVERY_MS;
    if (done < this.#amount && nowMs - this.#toldMs < everyMs) return;
    this.#toldMs = nowMs;
    const seconds = Math.round((nowMs - this.#startedMs) / 1000);
    const line = `${this.#name} ${done}/${this.#amount} ${this.#unit}, ${seconds} s: ${text}`;
    this.#out.write(this.#out.isTTY ? `\r\x1b[K${line}` : `${line}\n`);
  }

  end(): void {
    if (this.#out.isTTY) this.#out.write('\n');
  }
}
