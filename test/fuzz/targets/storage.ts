import { randomUUID } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { JOURNAL_FILE, openJournal } from '../../../src/device/agent/journal/journal.ts';
import type { Entry } from '../../../src/device/box/entry.ts';
import { restore } from '../../../src/device/box/restore.ts';
import { statusView, view } from '../../../src/device/box/view.ts';
import { sceneText } from '../../../src/device/display/text.ts';
import { openStore } from '../../../src/gateway/store/store.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { PayboxError } from '../../../src/lib/errors.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated, pick } from '../bytes.ts';
import { ACCOUNT, BOX1, QR_CODE } from '../corpus.ts';
import { mutatedJson } from '../json.ts';
import { listeningLog } from '../logs.ts';
import { hold, holdNamed, type Target, type World } from '../target.ts';

const pushId = '00000000-0000-4000-8000-000000000001';
const transactionId = '00000000-0000-4000-8000-000000000002';
const order = { pushId, orderId: 'DH1', amount: 50_000, content: 'Cà phê', qrCode: QR_CODE, holder: ACCOUNT };
const payment = {
  ...{ transactionId, orderId: 'DH1', amount: 50_000, content: 'Cà phê', paidAtMs: 1_700_000_000_000 },
  ...{ late: true, due: { amount: 70_000, paid: 50_000 } },
};
const ENTRIES: Entry[] = [
  { kind: 'push', order: { ...order, expiresAtMs: 4_000_000_000_000, lifetimeMs: 60_000 } },
  { kind: 'shown', pushId },
  { kind: 'ended', pushId, orderId: 'DH1', how: 'expired' },
  { kind: 'refused', pushId },
  { kind: 'payment', payment, pushId },
  { kind: 'payment-displayed', transactionId },
  { kind: 'payment-dropped', transactionId },
  { kind: 'account', account: ACCOUNT, announcedAtMs: 1_700_000_000_000 },
  { kind: 'mark', shown: true, changedAtMs: 1_700_000_000_000 },
  { kind: 'acked', ids: [transactionId, pushId] },
];
const LINES = ENTRIES.map((entry) => Buffer.from(JSON.stringify(entry)));
const CONFIG = {
  terminalCode: BOX1.terminalCode,
  serialNumber: BOX1.serialNumber,
  version: '1',
  paidHoldMs: 1,
  endedHoldMs: 1,
  plainLink: false,
  sandboxMark: true,
};
const COMPANIONS = ['', '-wal', '-shm'];

/** An entry that can be read restores a box that can say how it is. */
function holdRestores(entries: readonly Entry[]): void {
  const at = { monotonicMs: systemClock.monotonicMs(), wallMs: systemClock.wallMs() };
  const state = restore(CONFIG, { entries, intact: true }, at, true);
  hold(JSON.stringify(statusView(state)) !== '' && typeof sceneText(view(state)) === 'string', () => 'no status');
}

/** Whatever its file holds, a box has a journal that opens, keeps a payment, and gives it back to the next start. */
function holdJournals(folder: string, fresh: { log: ReturnType<typeof listeningLog>['log'] }): number {
  const open = () => openJournal(folder, BOX1.terminalCode, { clock: systemClock, log: fresh.log });
  const journal = open();
  const { reason, setAside } = journal.status();
  if (reason !== null) holdNamed(reason);
  hold(setAside.length <= 5, () => `${setAside.length} files are set aside`);
  const entries = journal.load();
  holdRestores(entries);
  const kept: Entry = { kind: 'payment', payment: { ...payment, transactionId: randomUUID() }, pushId: null };
  void journal.append([kept]);
  journal.close();
  const again = open();
  const found = again.load();
  again.close();
  hold(
    found.some((it) => it.kind === 'payment' && it.payment.transactionId === kept.payment.transactionId),
    () => 'what was appended is not there after a restart',
  );
  return entries.length;
}

async function emptied(folder: string): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
}

/** The bytes of a journal with these entries, as a program leaves them that was stopped, or killed. */
async function journalFiles(world: World): Promise<Buffer> {
  const folder = await world.folder();
  const { log } = listeningLog(systemClock);
  const journal = openJournal(folder, BOX1.terminalCode, { clock: systemClock, log });
  await journal.append(ENTRIES);
  journal.close();
  return readFileSync(join(folder, JOURNAL_FILE));
}

/** Where a file is changed, is said by its first bytes, so that an input is small: the file is always the same. */
function patched(file: Buffer, input: Buffer): Buffer {
  const places = Math.floor(input.length / 4);
  const changed = Buffer.from(file);
  for (let place = 0; place < places; place += 1) {
    const [high = 0, low = 0, how = 0, value = 0] = input.subarray(place * 4);
    // Half of the changes hit the head of the file and of its pages, where every byte means something.
    const at =
      how & 1
        ? ((high << 8) | low) % file.length
        : (((high % Math.ceil(file.length / 4_096)) << 12) | (low % 128)) % file.length;
    if (how === 255) return changed.subarray(0, at);
    changed[at] = value;
  }
  return changed;
}

const patches = (chance: Seeded) =>
  mutated([Buffer.from(Array.from({ length: 4 * (1 + chance.below(6)) }, () => chance.below(256)))], chance).subarray(
    0,
    400,
  );

const journalBytes: Target['open'] = async (world) => {
  const file = await journalFiles(world);
  const folder = await world.folder();
  const { log } = listeningLog(systemClock);
  return {
    feed: async (input) => {
      await emptied(folder);
      writeFileSync(join(folder, JOURNAL_FILE), input.length % 7 === 0 ? input : patched(file, input));
      return holdJournals(folder, { log }) > 0;
    },
  };
};

const journalEntries: Target['open'] = async (world) => {
  const folder = await world.folder();
  const { log } = listeningLog(systemClock);
  return {
    feed: async (input) => {
      await emptied(folder);
      openJournal(folder, BOX1.terminalCode, { clock: systemClock, log }).close();
      const db = new DatabaseSync(join(folder, JOURNAL_FILE));
      const insert = db.prepare('INSERT INTO entries (kind, json, crc) VALUES (?, ?, ?)');
      for (const line of input.toString().split('\n')) insert.run('x', line, line.length % 2 ? crc32(line) : null);
      db.close();
      return holdJournals(folder, { log }) > 0;
    },
  };
};

function entryLines(chance: Seeded): Buffer {
  const lines = Array.from({ length: 1 + chance.below(6) }, () =>
    chance.chance(0.5) ? pick(LINES, chance) : Buffer.from(mutatedJson(LINES, chance).toString().replaceAll('\n', ' ')),
  );
  return Buffer.from(lines.join('\n'));
}

/** The gateway's file: what is damaged is refused by name, at the start or where it is met. */
const gatewayStore: Target['open'] = async (world) => {
  const [made, folder] = [await world.folder(), await world.folder()];
  const { log } = listeningLog(systemClock);
  const store = await openStore({ dataDir: made }, log);
  await store.setting('token-secret', () => 'x'.repeat(40));
  await store.close();
  const name = 'gateway.sqlite';
  const file = readFileSync(join(made, name));
  return {
    feed: async (input) => {
      for (const companion of COMPANIONS) rmSync(join(folder, name + companion), { force: true });
      writeFileSync(join(folder, name), patched(file, input));
      let opened: Awaited<ReturnType<typeof openStore>>;
      try {
        opened = await openStore({ dataDir: folder }, log);
      } catch (error) {
        if (!(error instanceof PayboxError)) throw error;
        hold(error.message.includes(name), () => `names no file: ${error.message}`);
        holdNamed(error.message);
        return false;
      }
      try {
        await opened.orders.failUnfinished(systemClock.wallMs(), 'displayed');
        await opened.setting('token-secret', () => 'y');
        await Promise.all([opened.orders.newest(10), opened.payments.newest(10), opened.callbacks.pendingPartners()]);
        return true;
      } catch (error) {
        const isNamed = error instanceof PayboxError || (error instanceof Error && 'errcode' in error);
        hold(isNamed, () => `failed without a code: ${error}`);
        return false;
      } finally {
        await opened.close();
      }
    },
  };
};

export const STORAGE: Target[] = [
  { name: "journal's file", inputs: 350, make: patches, open: journalBytes },
  { name: "journal's entries", inputs: 350, make: entryLines, open: journalEntries },
  { name: "gateway's file", inputs: 100, make: patches, open: gatewayStore },
];
