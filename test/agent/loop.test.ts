import { describe, expect, it } from 'vitest';
import type { Journal } from '../../src/device/agent/contract.ts';
import { BACKLOG_MAX, Loop } from '../../src/device/agent/loop.ts';
import type { Entry } from '../../src/device/box/entry.ts';
import { initialState } from '../../src/device/box/restore.ts';
import { view } from '../../src/device/box/view.ts';
import { PayboxError } from '../../src/lib/errors.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { drawn, payment, push, registered } from '../box/events.ts';
import { at, CONFIG, paymentOf, uuid } from '../box/samples.ts';
import { revived } from '../box/support.ts';
import { keptLog } from '../support/kept-log.ts';

const PROBE_MS = 5_000;

class MemoryJournal implements Journal {
  readonly entries: Entry[] = [];
  broken: string | undefined;
  /** What an append waits for first. */
  answers: Promise<void> = Promise.resolve();
  /** Entries that come to light at the next `reopen`. */
  unknown: Entry[] = [];
  asked = 0;
  load = () => this.entries;
  reopen = () => (this.broken === undefined ? this.unknown.splice(0) : []);
  status = () => ({ ok: this.broken === undefined, reason: this.broken ?? null, complete: true, setAside: [] });
  close = () => undefined;

  async append(entries: readonly Entry[]): Promise<void> {
    this.asked += 1;
    await this.answers;
    if (this.broken !== undefined) throw new PayboxError('STORAGE_FAULT', this.broken, { severity: 'retryable' });
    this.entries.push(...entries);
  }

  kinds(): string[] {
    return this.entries.map((entry) => entry.kind);
  }
}

/** A running loop with what it did, in order: what was written, shown, sent and said. */
async function loopOf(journal: MemoryJournal, config = CONFIG) {
  const clock = new VirtualClock();
  const trace: string[] = [];
  const { log, lines } = keptLog(clock);
  const append = journal.append.bind(journal);
  journal.append = async (entries) => {
    await append(entries);
    trace.push(...entries.map((entry) => `write ${entry.kind}`));
  };
  const base = { clock, log, journal };
  const loop = new Loop(initialState(config, at(0)), base, {
    show: (state) => trace.push(`show ${view(state).kind}`),
    send: (sends) => trace.push(...sends.map((it) => `send ${it.type === 'paid' ? `paid ${it.recorded}` : it.type}`)),
    announce: (payments) => trace.push(...payments.map((it) => `say ${it.amount}`)),
  });
  const ended = loop.run();
  await clock.advance(0);
  return {
    loop,
    clock,
    trace,
    lines,
    /** Does these one after the other, and forgets what was done before. */
    on: async (...events: Parameters<Loop['dispatch']>[0][]) => {
      trace.length = 0;
      for (const event of events) loop.dispatch(event);
      await clock.advance(0);
      return trace;
    },
    /** Lets the loop finish what it was given. */
    finish: async () => {
      loop.stop();
      await ended;
    },
  };
}

describe('the loop', () => {
  it('the loop processes gateway and display although somebody holds the keys down', async () => {
    const { on, loop, finish } = await loopOf(new MemoryJournal());
    const keys = Array.from({ length: 5_000 }, () => ({ type: 'key', key: 'history' }) as const);
    const trace = await on({ type: 'connecting' }, ...keys, registered, push(1), drawn(1), payment(1));
    expect(trace.filter((it) => it.startsWith('say') || it === 'send shown')).toEqual(['send shown', 'say 50000']);
    expect(loop.state.recentPayments).toHaveLength(1);
    await finish();
  });

  it('AGT-2 the loop writes before it shows and shows before it sends', async () => {
    const { on, finish } = await loopOf(new MemoryJournal());
    expect(await on({ type: 'connecting' }, registered, push(1), drawn(1), payment(1))).toEqual([
      'show connecting',
      'write account',
      'show idle',
      'write push',
      'show payment',
      'send accepted',
      'write shown',
      'show payment',
      'send shown',
      'write payment',
      'show paid',
      'send paid true',
      'say 50000',
    ]);
    await finish();
  });

  it('AGT-2 the loop waits while the disk hangs, and then processes all that came meanwhile', async () => {
    const journal = new MemoryJournal();
    const { clock, on, finish } = await loopOf(journal);
    await on(registered);
    const { promise, resolve } = Promise.withResolvers<void>();
    journal.answers = promise;
    const trace = await on(payment(1), payment(2), push(3), payment(1));
    await clock.advance(60_000);
    expect(trace).toEqual([]);
    resolve();
    await clock.advance(0);
    const seen = trace.filter((it) => !it.startsWith('send paid'));
    const paid = ['write payment', 'show paid', 'say 50000'];
    expect(seen.slice(0, 8)).toEqual([...paid, ...paid, 'write push', 'show payment']);
    expect(seen).not.toContain('send rejected');
    expect(trace).toContain('send paid true');
    await finish();
  });

  it('AGT-11 the loop logs why a payment was not announced', async () => {
    const { on, lines, finish } = await loopOf(new MemoryJournal());
    const trace = await on(
      registered,
      payment(1, { repeated: true, paidAtMs: 0 }),
      payment(2),
      payment(3, { late: true }),
    );
    expect(trace.filter((it) => it.startsWith('say'))).toHaveLength(1);
    const unspoken = lines.filter(({ event }) => event === 'announcement-not-spoken');
    expect(unspoken).toMatchObject([{ transactionId: uuid(0xc001), reason: expect.stringContaining('first welcome') }]);
    await finish();
  });

  it('the loop wakes itself when a notice is over', async () => {
    const { loop, clock, on, finish } = await loopOf(new MemoryJournal());
    await on(registered, payment(1), { type: 'drawn', pushId: undefined, transactionId: uuid(0xc001) });
    await clock.advance(CONFIG.paidHoldMs - 1);
    expect(view(loop.state).kind).toBe('paid');
    await clock.advance(1);
    expect(view(loop.state).kind).toBe('idle');
    await finish();
  });
});

describe('a loop whose disk has failed', () => {
  it('AGT-5 a loop whose disk failed refuses pushes, shows and reports payments, and writes them first once the disk works again', async () => {
    const journal = new MemoryJournal();
    const { loop, on, finish } = await loopOf(journal);
    await on(registered);
    journal.broken = 'disk full';
    expect(await on(push(1))).toEqual(['show fault', 'send rejected']);
    expect(loop.state.faults.storage).toBe('disk full');
    expect(await on(payment(2))).toEqual(['show paid', 'send paid false', 'say 50000']);
    expect(loop.unwritten).toBe(1);
    journal.broken = undefined;
    expect((await on(push(3))).slice(0, 3)).toEqual(['write payment', 'write push', 'show payment']);
    expect(loop.state.faults.storage).toBeUndefined();
    expect(loop.unwritten).toBe(0);
    expect(revived(journal.entries, at(0)).announced).toEqual([uuid(0xc002)]);
    await finish();
  });

  it('AGT-5 a loop whose disk failed finds out by itself that it works again, and logs it', async () => {
    const journal = new MemoryJournal();
    const { loop, clock, on, finish } = await loopOf(journal);
    await on(registered);
    journal.broken = 'disk full';
    await on(push(1));
    await clock.advance(PROBE_MS);
    journal.broken = 'read-only';
    await clock.advance(PROBE_MS);
    expect(loop.state.faults.storage).toBe('read-only');
    expect(view(loop.state).kind).toBe('fault');
    journal.broken = undefined;
    await clock.advance(PROBE_MS - 1);
    expect(view(loop.state).kind).toBe('fault');
    await clock.advance(1);
    expect(view(loop.state).kind).toBe('idle');
    const { asked } = journal;
    await clock.advance(10 * PROBE_MS);
    expect(journal.asked).toBe(asked);
    await finish();
  });

  it('AGT-5 a loop whose disk fails from the start reports it, and writes what happened before it ends', async () => {
    const journal = new MemoryJournal();
    journal.broken = 'no such disk';
    const { loop, on, finish } = await loopOf(journal);
    expect(loop.state.faults.storage).toBe('no such disk');
    await on(registered, payment(1), { type: 'acked', ids: [uuid(0xc001)] });
    journal.broken = undefined;
    await finish();
    expect(journal.kinds()).toEqual(['account', 'payment', 'acked']);
  });

  it('AGT-5 a loop reads first what a returned disk holds, and announces nothing twice', async () => {
    const journal = new MemoryJournal();
    journal.broken = 'no such disk';
    const { loop, clock, on, finish } = await loopOf(journal);
    await on(registered);
    journal.broken = undefined;
    const { transactionId, orderId, amount, content, paidAtMs, late, due } = paymentOf(1);
    const told = { transactionId, orderId, amount, content, paidAtMs, late, due };
    journal.unknown = [
      { kind: 'payment', payment: told, pushId: null },
      { kind: 'payment-displayed', transactionId },
      { kind: 'ended', pushId: uuid(9), orderId: 'DH9', how: 'expired' },
    ];
    const trace = await on(payment(1));
    expect(trace.filter((line) => line.startsWith('say') || line.startsWith('write'))).toEqual([]);
    expect(trace.filter((line) => line.startsWith('send')).slice(0, 2)).toEqual(['send paid true', 'send ended']);
    expect(loop.state.announced).toEqual([transactionId]);
    await clock.advance(PROBE_MS);
    expect(loop.state.faults.storage).toBeUndefined();
    await finish();
  });

  it('a loop keeps a limited number of entries for a failed disk, payments before all others', async () => {
    const journal = new MemoryJournal();
    journal.broken = 'disk full';
    const { loop, clock, on, finish } = await loopOf(journal);
    await on(registered);
    for (let n = 0; n < BACKLOG_MAX / 2 + 50; n += 1) {
      loop.dispatch(payment(n));
      loop.dispatch({ type: 'acked', ids: [uuid(0xc000 + n)] });
      if (n % 100 === 0) await clock.advance(0);
    }
    await clock.advance(0);
    expect(loop.unwritten).toBe(BACKLOG_MAX);
    journal.broken = undefined;
    await clock.advance(PROBE_MS);
    expect(loop.unwritten).toBe(0);
    expect(journal.kinds().filter((kind) => kind === 'payment')).toHaveLength(BACKLOG_MAX / 2 + 50);
    await finish();
  });
});
