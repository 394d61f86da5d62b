import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { expectCommitsAfterCuts, keep, keptIn, openedFile, sync } from './power-cut-fixture.ts';

/** A disk whose waits end when the test says so. */
function heldDisk() {
  const waits: PromiseWithResolvers<void>[] = [];
  let isHeld = false;
  return {
    waits,
    hold: () => {
      isHeld = true;
    },
    sync: async (fd: number) => {
      if (!isHeld) return sync(fd);
      const wait = Promise.withResolvers<void>();
      waits.push(wait);
      await wait.promise;
    },
  };
}

/** Settles after what has its data already. */
const turn = () => new Promise<void>((done) => setImmediate(done));

describe('a commit', () => {
  it('is told, and shown to readers, only once the disk has it; one wait serves all that came before it', async () => {
    const disk = heldDisk();
    const db = await openedFile(await temporaryFolder(), disk.sync);
    await keep(db, 'row-0');
    disk.hold();
    const told: string[] = [];
    const tell = (what: string) => () => void told.push(what);
    const first = keep(db, 'row-1').then(tell('row-1'));
    await turn();
    const later = ['row-2', 'row-3', 'row-4'].map((name) => keep(db, name).then(tell(name)));
    const read = keptIn(db).then((names) => told.push(names.join()));
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect([told, disk.waits.length]).toEqual([[], 1]);
    disk.waits[0]?.resolve();
    await first;
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect([told, disk.waits.length]).toEqual([['row-1'], 2]);
    disk.waits[1]?.resolve();
    await Promise.all([...later, read]);
    expect(told).toEqual(['row-1', 'row-2', 'row-3', 'row-4', 'row-0,row-1,row-2,row-3,row-4']);
    expect(disk.waits).toHaveLength(2);
  });

  it('a commit that the disk refused fails, and so does every later commit', async () => {
    const disk = heldDisk();
    const db = await openedFile(await temporaryFolder(), disk.sync);
    await keep(db, 'row-0');
    disk.hold();
    const [written, read] = [keep(db, 'row-1'), keptIn(db)];
    for (let turns = 0; turns < 20 && disk.waits.length === 0; turns += 1) await turn();
    disk.waits[0]?.reject(new Error('EIO: i/o error, fdatasync'));
    const failure = { code: 'STORAGE_FAULT', severity: 'fatal', message: expect.stringContaining('EIO: i/o error') };
    await expect(written).rejects.toMatchObject(failure);
    await expect(read).rejects.toMatchObject(failure);
    await expect(keep(db, 'row-2')).rejects.toMatchObject(failure);
    await expect(keptIn(db)).rejects.toMatchObject(failure);
  });
});

it('a power cut at any moment leaves every commit that was reported, and a sound file (seed 1)', () =>
  expectCommitsAfterCuts(1));
