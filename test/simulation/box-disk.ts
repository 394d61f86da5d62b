import type { Journal } from '../../src/device/agent/contract.ts';
import { entriesToKeep } from '../../src/device/agent/journal/compaction.ts';
import { type Entry, entry } from '../../src/device/box/entry.ts';
import { PayboxError } from '../../src/lib/errors.ts';
import { never, type Run } from './machine.ts';
import type { WriteHooks } from './world.ts';

/** A journal is compacted when it is loaded with more entries than this; small, so that it happens. */
const COMPACT_AFTER_ENTRIES = 120;

/** What survives the crashes of a box: entries as text, each append whole or not at all. */
export class BoxDisk {
  #lines: string[] = [];
  readonly #payments = new Set<string>();
  readonly #hooks: WriteHooks;
  readonly #onRefused: (entries: readonly Entry[]) => void;
  /** While this is set, appends are refused. */
  failing = false;
  /** How long an append takes, in milliseconds. */
  latencyMs: () => number = () => 0;

  constructor(hooks: WriteHooks, onRefused: (entries: readonly Entry[]) => void) {
    this.#hooks = hooks;
    this.#onRefused = onRefused;
  }

  /** Whether this payment has ever been written. */
  hasPayment(transactionId: string): boolean {
    return this.#payments.has(transactionId);
  }

  entries(): Entry[] {
    return this.#lines.map((line) => entry.parse(JSON.parse(line)));
  }

  /** The journal as one run of the agent sees it. */
  journalFor(run: Run): Journal {
    return {
      load: () => this.#load(run.wallMs()),
      append: (entries) => (run.alive ? this.#append(run, entries) : never()),
      reopen: () => [],
      status: () => ({ ok: !this.failing, reason: null, complete: this.entries().length > 0, setAside: [] }),
      close: () => undefined,
    };
  }

  #load(wallMs: number): Entry[] {
    const entries = this.entries();
    if (entries.length > COMPACT_AFTER_ENTRIES) {
      const kept = entriesToKeep(entries, wallMs);
      this.#lines = this.#lines.filter((_, index) => kept.has(index));
    }
    return this.entries();
  }

  async #append(run: Run, entries: readonly Entry[]): Promise<void> {
    const lines = entries.map((it) => JSON.stringify(entry.parse(it)));
    this.#hooks.beforeWrite();
    if (!run.alive) return never();
    const latencyMs = this.latencyMs();
    if (latencyMs > 0) await run.sleep(latencyMs);
    if (!run.alive) return never();
    if (this.failing) {
      this.#onRefused(entries);
      throw new PayboxError('STORAGE_FAULT', 'the disk is full', { severity: 'retryable' });
    }
    this.#lines.push(...lines);
    for (const it of entries) if (it.kind === 'payment') this.#payments.add(it.payment.transactionId);
    this.#hooks.afterWrite();
    if (!run.alive) return never();
    if (latencyMs > 0) await run.sleep(latencyMs);
  }
}
