import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

/** A life of a program that ended without being killed. */
export interface OwnEnd {
  life: number;
  code: number | null;
  /** Its last lines. */
  lines: readonly string[];
}

/** A line that a program logged; what is no JSON is the text alone. */
export interface LogLine {
  event: string;
  [field: string]: unknown;
}

export type ProgramName = 'agent' | 'gateway' | 'broker';

export interface ProgramSpec {
  name: ProgramName;
  command: string;
  args: readonly string[];
  /** Whether the program works from this line on. */
  isReady(line: LogLine): boolean;
  /** Exit codes after which it is started again, as an init system would: a peer was not there. */
  retryCodes: readonly number[];
  /** Every line, with the number of the life (from 1) that logged it. */
  onLine(line: LogLine, life: number): void;
}

const READY_TIMEOUT_MS = 120_000;
const RETRY_WAIT_MS = 50;
/** Of a life's log, the newest lines are kept for the report of a failure. */
const LINES_KEPT_MAX = 60;

/** A real program that is killed and started again, life after life. The process started is the program itself. */
export class Program {
  readonly name: ProgramName;
  readonly #spec: ProgramSpec;
  readonly #lines: string[] = [];
  readonly #killed = new WeakSet<ChildProcess>();
  #child: ChildProcess | undefined;
  #ended: Promise<void> = Promise.resolve();
  #ready = Promise.withResolvers<void>();
  #life = 0;
  #startedAtMs = 0;
  #wanted = false;
  #starts = 0;
  #fault: string | undefined;
  readonly #ends: OwnEnd[] = [];

  constructor(spec: ProgramSpec) {
    this.#spec = spec;
    this.name = spec.name;
  }

  /** That it ended without being killed, if it did. */
  get fault(): string | undefined {
    return this.#fault;
  }

  /** Each time that it ended without being killed, the oldest first. */
  get ends(): readonly OwnEnd[] {
    return this.#ends;
  }

  /** Number of its newest life, from 1. */
  get life(): number {
    return this.#life;
  }

  /** When its newest life began, in milliseconds since 1970. */
  get startedAtMs(): number {
    return this.#startedAtMs;
  }

  get lines(): readonly string[] {
    return this.#lines;
  }

  /** Starts it once its last life is over: two kills may overlap, so that one starts what the other is still killing. */
  start(): void {
    if (this.#wanted) return;
    this.#wanted = true;
    this.#ready = Promise.withResolvers<void>();
    this.#starts += 1;
    const turn = this.#starts;
    void this.#ended.then(() => {
      if (this.#wanted && turn === this.#starts) this.#spawn();
    });
  }

  /** Settles once it works; throws with its last lines when it does not. */
  async ready(): Promise<void> {
    const late = new AbortController();
    const timeout = delay(READY_TIMEOUT_MS, 'late' as const, { signal: late.signal });
    timeout.catch(() => undefined);
    const first = await Promise.race([this.#ready.promise, timeout]);
    late.abort();
    if (this.#fault !== undefined) throw new Error(this.#fault);
    if (first === 'late') throw new Error(`${this.name} was not ready:\n${this.#lines.join('\n')}`);
  }

  /** Kills it by its own id, and settles once it is gone and all that it logged is read. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    this.#end(signal);
    await this.#ended;
  }

  /** Kills it without waiting, for a supervisor that must leave at once. */
  abandon(): void {
    this.#end('SIGKILL');
  }

  #end(signal: NodeJS.Signals): void {
    this.#wanted = false;
    if (this.#child !== undefined) this.#killed.add(this.#child);
    this.#child?.kill(signal);
  }

  #spawn(): void {
    this.#life += 1;
    const life = this.#life;
    this.#startedAtMs = Date.now();
    const { command, args, retryCodes, isReady, onLine } = this.#spec;
    // A session of its own: Ctrl-C at the terminal is for the supervisor alone.
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });
    this.#child = child;
    createInterface({ input: child.stderr }).on('line', (text) => {
      this.#lines.push(`${life}: ${text}`);
      if (this.#lines.length > LINES_KEPT_MAX) this.#lines.shift();
      const line = lineOf(text);
      onLine(line, life);
      if (isReady(line)) this.#ready.resolve();
    });
    this.#ended = once(child, 'close').then(async ([code]) => {
      if (this.#killed.has(child)) return;
      const lines = this.#lines.filter((it) => it.startsWith(`${life}: `));
      this.#ends.push({ life, code: code === null ? null : Number(code), lines });
      if (!retryCodes.includes(Number(code))) {
        this.#fault = `${this.name} ended by itself with ${code}:\n${this.#lines.join('\n')}`;
        this.#ready.resolve();
        return;
      }
      await delay(RETRY_WAIT_MS);
      if (this.#wanted && !this.#killed.has(child)) this.#spawn();
    });
  }
}

function lineOf(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { event: text };
  }
}
