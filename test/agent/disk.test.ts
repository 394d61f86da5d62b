import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { JOURNAL_FILE, openJournal } from '../../src/device/agent/journal/journal.ts';
import { Loop } from '../../src/device/agent/loop.ts';
import { restore } from '../../src/device/box/restore.ts';
import { view } from '../../src/device/box/view.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { drawn, payment, push, registered } from '../box/events.ts';
import { CONFIG, uuid } from '../box/samples.ts';
import { deviceDisk, memoryDisk, withoutDisks } from '../support/disk.ts';
import { memory, quiet } from './disk-fixture.ts';

const device = withoutDisks('device');

const PROBE_MS = 5_000;

/** A box's loop with its journal in `folder`, registered; what it does about an event is told by `on`. */
async function boxIn(folder: string) {
  const clock = new VirtualClock();
  const log = quiet(clock);
  const journal = openJournal(folder, CONFIG.terminalCode, { clock, log });
  onTestFinished(() => journal.close());
  let did: string[] = [];
  const at = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  const start = restore(CONFIG, { entries: journal.load(), intact: journal.status().complete }, at, true);
  const loop = new Loop(
    start,
    { clock, log, journal },
    {
      send: (sends) => {
        for (const it of sends) {
          if (it.type === 'rejected') did.push(it.code);
          else did.push(it.type === 'paid' ? `paid ${it.recorded ? 'recorded' : 'unrecorded'}` : it.type);
        }
      },
      announce: (payments) => did.push(...payments.map(({ transactionId }) => `say ${transactionId.slice(-3)}`)),
    },
  );
  const ended = loop.run();
  const on = async (...events: Parameters<Loop['dispatch']>[0][]) => {
    did = [];
    for (const event of events) loop.dispatch(event);
    await clock.advance(0);
    return did;
  };
  await on(registered);
  return {
    loop,
    clock,
    journal,
    on,
    scene: () => view(loop.state).kind,
    announced: () => loop.state.announced.map((id) => id.slice(-3)),
    /** As a power cut would: nothing is written any more. */
    die: () => journal.close(),
    stop: async () => {
      loop.stop();
      await ended;
      journal.close();
    },
  };
}

const acked = (n: number) => ({ type: 'acked' as const, ids: [uuid(0xc000 + n)] });

describe('a box on a small disk', () => {
  it.skipIf(memory.missing)(
    `AGT-5 AGT-2 a box whose disk is full refuses pushes by name, accepts payments, and recovers within 5 s of room${memory.note}`,
    async () => {
      const disk = await memoryDisk();
      const box = await boxIn(disk.folder);
      await box.on(push(1), drawn(1));
      disk.fill();
      expect(await box.on(push(2))).toEqual(['STORAGE_FAULT']);
      expect(box.journal.status()).toMatchObject({ ok: false, reason: expect.stringContaining('full') });
      expect(await box.on(payment(1))).toEqual(['paid unrecorded', 'say 001']);
      expect(box.scene()).toBe('paid');
      await box.clock.advance(CONFIG.paidHoldMs + PROBE_MS);
      expect(box.loop.state.faults.storage).toContain('full');
      disk.makeRoom();
      await box.clock.advance(PROBE_MS);
      expect(box.loop.state.faults.storage).toBeUndefined();
      expect(box.journal.status()).toMatchObject({ ok: true, reason: null });
      expect(box.loop.unwritten).toBe(0);
      box.die();

      const again = await boxIn(disk.folder);
      expect(again.announced()).toEqual(['001']);
      expect(await again.on(payment(1))).toEqual(['paid recorded']);
      expect(await again.on(push(2), drawn(2))).toEqual(['accepted', 'shown']);
      await again.stop();
    },
  );

  it.skipIf(memory.missing)(
    `AGT-5 a box whose disk is full at the start restores what it had stored${memory.note}`,
    async () => {
      const disk = await memoryDisk();
      const before = await boxIn(disk.folder);
      await before.on(push(1), drawn(1), payment(1), push(2), drawn(2));
      before.die();
      disk.fill();
      const box = await boxIn(disk.folder);
      expect(box.announced()).toEqual(['001']);
      expect(await box.on(payment(1))).toEqual(['paid recorded']);
      expect(await box.on(payment(2))).toEqual(['paid unrecorded', 'say 002']);
      disk.makeRoom();
      await box.clock.advance(PROBE_MS);
      box.die();
      expect((await boxIn(disk.folder)).announced()).toEqual(['001', '002']);
    },
  );

  it.skipIf(memory.missing)(
    `AGT-5 a box whose disk is full at its first start works as soon as there is room${memory.note}`,
    async () => {
      const disk = await memoryDisk();
      disk.fill();
      const box = await boxIn(disk.folder);
      expect(box.scene()).toBe('fault');
      expect(await box.on(payment(1, { pushId: null }), push(2))).toEqual([
        'paid unrecorded',
        'say 001',
        'STORAGE_FAULT',
      ]);
      disk.makeRoom();
      await box.clock.advance(PROBE_MS);
      expect(box.loop.state.faults.storage).toBeUndefined();
      box.die();
      expect((await boxIn(disk.folder)).announced()).toEqual(['001']);
    },
  );

  it.skipIf(memory.missing)(
    `AGT-5 a box whose disk is read-only at the start restores what it had stored, and writes once it may${memory.note}`,
    async () => {
      const disk = await memoryDisk();
      const before = await boxIn(disk.folder);
      await before.on(push(1), drawn(1), payment(1));
      const files = ['', '-wal'].map((it) => [it, readFileSync(join(disk.folder, JOURNAL_FILE + it))] as const);
      before.die();
      for (const [it, bytes] of files) writeFileSync(join(disk.folder, JOURNAL_FILE + it), bytes);
      disk.remount('ro');
      const box = await boxIn(disk.folder);
      expect(box.scene()).toBe('paid');
      expect(box.journal.status()).toMatchObject({ ok: false, reason: expect.stringContaining('read-only') });
      expect(await box.on(payment(1))).toEqual(['paid recorded']);
      expect(await box.on(payment(2), push(3))).toEqual(['paid unrecorded', 'say 002', 'STORAGE_FAULT']);
      disk.remount('rw');
      await box.clock.advance(PROBE_MS);
      expect(box.loop.state.faults.storage).toBeUndefined();
      box.die();
      expect((await boxIn(disk.folder)).announced()).toEqual(['001', '002']);
    },
  );

  it.skipIf(memory.missing)(
    `AGT-5 a disk that is mounted after the start is merged: nothing is announced again, unsent reports are sent${memory.note}`,
    async () => {
      const disk = await memoryDisk();
      const before = await boxIn(disk.folder);
      await before.on(payment(1, { pushId: null }), acked(1), payment(2, { pushId: null }));
      before.die();
      disk.unplug();
      const box = await boxIn(disk.folder);
      await box.on(payment(3, { pushId: null }));
      disk.plugIn();
      expect(await box.on(payment(2, { pushId: null }))).toEqual(['paid recorded', 'paid recorded']);
      expect(box.announced()).toEqual(['001', '002', '003']);
      box.die();
      expect((await boxIn(disk.folder)).announced()).toEqual(['001', '002', '003']);
    },
  );

  it.skipIf(memory.missing)(
    `AGT-5 a box whose disk is removed while it runs loses nothing, with or without it${memory.note}`,
    async () => {
      const disk = await memoryDisk();
      const box = await boxIn(disk.folder);
      await box.on(payment(1, { pushId: null }));
      disk.unplug();
      expect(await box.on(payment(2, { pushId: null }))).toEqual(['paid recorded', 'say 002']);
      box.die();
      const without = await boxIn(disk.folder);
      expect(without.announced()).toEqual(['001', '002']);
      disk.plugIn();
      expect(await without.on(payment(3, { pushId: null }))).toEqual(['paid recorded', 'say 003']);
      without.die();
      expect((await boxIn(disk.folder)).announced().sort()).toEqual(['001', '002', '003']);
    },
  );

  it.skipIf(device.missing)(
    `AGT-5 a box whose disk device fails accepts payments, and writes them once another mount works${device.note}`,
    async () => {
      const disk = await deviceDisk();
      const box = await boxIn(disk.folder);
      await box.on(payment(1, { pushId: null }));
      disk.fail();
      expect(await box.on(payment(2, { pushId: null }), push(3))).toEqual([
        'paid unrecorded',
        'say 002',
        'STORAGE_FAULT',
      ]);
      await box.clock.advance(PROBE_MS);
      expect(box.loop.state.faults.storage).toBeDefined();
      disk.unplug();
      disk.plugIn();
      await box.clock.advance(PROBE_MS);
      expect(box.loop.state.faults.storage).toBeUndefined();
      box.die();
      expect((await boxIn(disk.folder)).announced()).toEqual(['001', '002']);
    },
  );
});
