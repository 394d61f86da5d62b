import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { Journal } from '../../src/agent/contract.ts';
import { Loop } from '../../src/agent/loop.ts';
import type { Entry } from '../../src/box/entry.ts';
import { initialState } from '../../src/box/restore.ts';
import { view } from '../../src/box/view.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { PayboxError } from '../../src/lib/errors.ts';
import { createLogger } from '../../src/lib/log.ts';
import { CONFIG, drawn, payment, push, registered } from '../box/support.ts';

class MemoryJournal implements Journal {
  readonly entries: Entry[] = [];
  broken = false;
  load = () => this.entries;
  close = () => undefined;

  async append(entries: readonly Entry[]): Promise<void> {
    if (this.broken) throw new PayboxError('STORAGE_FAULT', 'disk full', { severity: 'retryable' });
    this.entries.push(...entries);
  }
}

/** A loop with what it did, in order: what was written, shown and sent. */
function loopOf(journal: MemoryJournal, config = CONFIG) {
  const trace: string[] = [];
  const append = journal.append.bind(journal);
  journal.append = async (entries) => {
    await append(entries);
    trace.push(...entries.map((entry) => `write ${entry.kind}`));
  };
  const now = { monotonicMs: systemClock.monotonicMs(), wallMs: systemClock.wallMs() };
  const loop = new Loop(initialState(config, now), {
    clock: systemClock,
    log: createLogger(new PassThrough(), systemClock, 'text'),
    journal,
    show: (state) => trace.push(`show ${view(state).kind}`),
    send: (sends) => trace.push(...sends.map((send) => `send ${send.type}`)),
    announce: (payments) => trace.push(...payments.map((payment) => `say ${payment.amount}`)),
  });
  const ended = loop.run();
  return {
    loop,
    trace,
    /** Lets the loop finish what it was given. */
    finish: async () => {
      loop.stop();
      await ended;
    },
  };
}

describe('the loop', () => {
  it('AGT-2 writes before it shows and shows before it sends', async () => {
    const { loop, trace, finish } = loopOf(new MemoryJournal());
    for (const event of [{ type: 'connecting' } as const, registered, push(1), drawn(1), payment(1)])
      loop.dispatch(event);
    await finish();
    expect(trace.filter((line) => !line.endsWith('starting'))).toEqual([
      'show connecting',
      'show idle',
      'write push',
      'show payment',
      'send accepted',
      'write shown',
      'show payment',
      'send shown',
      'write payment',
      'show paid',
      'send paid',
      'say 50000',
    ]);
  });

  it('AGT-5 shows and reports a payment although the disk fails, refuses pushes, and recovers', async () => {
    const journal = new MemoryJournal();
    const { loop, trace, finish } = loopOf(journal);
    loop.dispatch(registered);
    journal.broken = true;
    loop.dispatch(push(1));
    loop.dispatch(payment(2, { pushId: null }));
    await new Promise(setImmediate);
    expect(loop.state.faults.storage).toBe('disk full');
    expect(trace.slice(-5)).toEqual(['show fault', 'send rejected', 'show paid', 'send paid', 'say 50000']);
    journal.broken = false;
    loop.dispatch(push(3));
    await new Promise(setImmediate);
    await finish();
    expect(loop.state.faults.storage).toBeUndefined();
    expect(journal.entries.map((entry) => entry.kind)).toEqual(['push']);
  });

  it('wakes itself when a notice is over', async () => {
    const { loop, finish } = loopOf(new MemoryJournal(), { ...CONFIG, paidHoldMs: 30 });
    loop.dispatch(registered);
    loop.dispatch(payment(1));
    await new Promise<void>((resolve) => {
      const look = () =>
        view(loop.state).kind === 'idle' && loop.state.recentPayments.length > 0 ? resolve() : setTimeout(look, 5);
      look();
    });
    await finish();
    expect(view(loop.state).kind).toBe('idle');
  });
});
