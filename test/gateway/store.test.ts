import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openStore } from '../../src/gateway/store/store.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { temporaryFolder } from '../support/net.ts';

const BOX = 'VVB000001';
const order = (id: string) => ({
  id,
  partner: 'demo',
  order_id: id,
  bank_account: '1',
  bank_code: 'MB',
  user_bank_name: 'A',
  amount: 9_999_999_999_999,
  content: 'x',
  trans_type: 'C' as const,
  qr_code: `qr-${id}`,
  terminal_code: '',
  sub_terminal_code: '',
  service_code: '',
  sign: '',
  url_link: '',
  created_at_ms: 1,
});
const push = (id: string, order_ref: string) => ({
  id,
  order_ref,
  terminal_code: BOX,
  created_at_ms: 2,
  expires_at_ms: 1000,
});
const payment = (id: string, order_ref: string | null) => ({
  ...{ id, order_ref, partner: 'demo', order_id: '', reference_number: 'r', bank_account: '1', bank_code: 'MB' },
  ...{ amount: 9_999_999_999_999, content: 'x', trans_type: 'C' as const, paid_at_ms: 5 },
});

async function opened(folder?: string) {
  const store = await openStore(folder ?? (await temporaryFolder()));
  onTestFinished(() => store.close().catch(() => undefined));
  return store;
}

describe('the store', () => {
  it('keeps everything over a new start, in its order', async () => {
    const folder = join(await temporaryFolder(), 'made', 'anew');
    const first = await opened(folder);
    await first.orders.add(order('a'));
    await first.orders.startPush(push('p1', 'b'), order('b'));
    expect(await first.setting('key', () => 'one')).toBe('one');
    await first.close();
    const second = await opened(folder);
    await second.orders.add(order('c'));
    const orders = await second.orders.newest(10);
    expect(orders.map((it) => [it.id, it.status, it.amount])).toEqual([
      ['c', 'created', 9_999_999_999_999],
      ['b', 'pushed', 9_999_999_999_999],
      ['a', 'created', 9_999_999_999_999],
    ]);
    expect(await second.setting('key', () => 'two')).toBe('one');
  });

  it('opens a folder whose first start broke off in mid-migration', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'gateway.sqlite');
    const before = new DatabaseSync(file);
    // The last table of the migration is in the way: it breaks off there with all the others made.
    before.exec('CREATE TABLE notices (x)');
    before.close();
    await expect(openStore(folder)).rejects.toThrow('notices');
    const after = new DatabaseSync(file);
    after.exec('DROP TABLE notices');
    after.close();
    const store = await opened(folder);
    await store.orders.add(order('a'));
    expect(await store.orders.newest(10)).toHaveLength(1);
  });

  it('refuses a folder that another gateway uses', async () => {
    const folder = await temporaryFolder();
    await opened(folder);
    await expect(openStore(folder)).rejects.toThrow(ConfigError);
  });

  it.each([
    ['no database', (file: string) => writeFile(file, 'something else that is long enough to be looked at'.repeat(50))],
    ['a folder', (file: string) => mkdir(file)],
  ])('refuses a file that is %s, by name', async (_name, spoil) => {
    const folder = await temporaryFolder();
    await spoil(join(folder, 'gateway.sqlite'));
    await expect(openStore(folder)).rejects.toThrow(/dataDir: the store .*gateway\.sqlite cannot be opened/);
  });

  it('keeps a payment whole or not at all', async () => {
    const store = await opened();
    await store.orders.add(order('a'));
    const twice = [BOX, BOX].map((terminal_code) => ({ terminal_code, push_id: null }));
    await expect(store.payments.add(payment('t', 'a'), twice, undefined)).rejects.toThrow();
    expect(await store.payments.newest(10)).toEqual([]);
    expect((await store.orders.find('a'))?.status).toBe('created');
  });

  it('lets a paid order stay paid, whatever its push comes to', async () => {
    const store = await opened();
    await store.orders.startPush(push('p', 'a'), order('a'));
    await store.payments.add(payment('t', 'a'), [{ terminal_code: BOX, push_id: 'p' }], undefined);
    expect(await store.orders.confirmPush('p', BOX, 'shown', 6)).toBe(true);
    expect(await store.orders.endPush('p', BOX, 'replaced', 7)).toBe(true);
    expect((await store.orders.find('a'))?.status).toBe('paid');
  });

  it('lets an order follow its newest push only', async () => {
    const store = await opened();
    await store.orders.startPush(push('p1', 'a'), order('a'));
    await store.orders.startPush(push('p2', 'a'), undefined);
    await store.orders.confirmPush('p2', BOX, 'shown', 3);
    expect(await store.orders.endPush('p1', BOX, 'replaced', 4)).toBe(true);
    expect(await store.orders.find('a')).toMatchObject({ status: 'shown', shown_push_id: 'p2' });
  });

  it('CBK-6 pays what a box shows, else what it is about to show, else the newest unpaid, else the newest paid', async () => {
    const store = await opened();
    const paidBy = async (atMs = 5) => (await store.orders.findPaidBy(order('any'), atMs))?.id;
    for (const id of ['shown', 'sent']) await store.orders.startPush(push(id, id), order(id));
    for (const id of ['old', 'new']) await store.orders.add(order(id));
    await store.orders.confirmPush('shown', BOX, 'shown', 3);
    expect(await paidBy()).toBe('shown');
    expect(await paidBy(1000)).toBe('new');
    for (const id of ['shown', 'sent', 'new', 'old']) {
      expect(await paidBy()).toBe(id);
      await store.payments.add(payment(`of ${id}`, id), [], undefined);
    }
    expect(await paidBy()).toBe('new');
  });

  it.each(['failed', 'cancelled', 'ended'] as const)('MSG-3 flips nothing of a push that is %s', async (status) => {
    const store = await opened();
    await store.orders.startPush(push('p', 'a'), order('a'));
    if (status === 'failed') await store.orders.failPush('p', BOX, 'BOX_TIMEOUT', 3, false);
    if (status === 'cancelled') await store.orders.cancel('a', 3);
    if (status === 'ended') await store.orders.endPush('p', BOX, 'expired', 3);
    const before = await store.orders.find('a');
    expect(await store.orders.confirmPush('p', BOX, 'accepted', 4)).toBe(false);
    expect(await store.orders.confirmPush('p', BOX, 'shown', 4)).toBe(false);
    expect(await store.orders.failPush('p', BOX, 'DISPLAY_FAULT', 4, true)).toBe(false);
    expect(await store.orders.confirmPush('p', 'VVB000002', 'shown', 4)).toBe(false);
    expect(await store.orders.find('a')).toEqual(before);
    expect((await store.orders.pushesOf(['a'])).map((it) => it.status)).toEqual([status]);
  });

  it('MSG-9 withdraws what a box may still show: unsure or cancelled, not ended, not over', async () => {
    const store = await opened();
    for (const id of ['sure', 'unsure', 'cancelled', 'ended']) await store.orders.startPush(push(id, id), order(id));
    await store.orders.failPush('sure', BOX, 'DISPLAY_FAULT', 3, true);
    await store.orders.failPush('unsure', BOX, 'BOX_TIMEOUT', 3, false);
    await store.orders.cancel('cancelled', 3);
    await store.orders.failPush('ended', BOX, 'BOX_OFFLINE', 3, false);
    await store.orders.endPush('ended', BOX, 'withdrawn', 4);
    const ids = async (atMs: number) => (await store.orders.toWithdraw(BOX, atMs)).map((it) => it.id).sort();
    expect(await ids(999)).toEqual(['cancelled', 'unsure']);
    expect(await ids(1000)).toEqual([]);
  });
});
