import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { opened, order, pay } from './rows.ts';

describe.skipIf(missing)(`shards of one PostgreSQL database${note}`, () => {
  const server = postgresServer();
  const shards = async (...indexes: number[]) => {
    const databaseUrl = await server().database();
    const dataDir = await temporaryFolder();
    const open = (index: number, member = 'a') => opened({ dataDir, databaseUrl, shard: { index, member } });
    const stores = [];
    for (const index of indexes) stores.push(await open(index));
    return { databaseUrl, open, stores };
  };

  it('shards of one PostgreSQL database have orders and payments of their own', async () => {
    const { stores } = await shards(0, 1, 2);
    for (const [i, store] of stores.entries()) {
      await store.orders.add(order(`order-${i}`));
      await pay(store, `payment-${i}`);
    }
    for (const [i, store] of stores.entries()) {
      expect((await store.orders.newest(10)).map((it) => it.id)).toEqual([`order-${i}`]);
      expect((await store.payments.newest(10)).map((it) => it.id)).toEqual([`payment-${i}`]);
    }
  });

  it('shards of one PostgreSQL database read one registry, and have one secret of tokens', async () => {
    const { stores } = await shards(0, 7);
    const [first, other] = stores;
    const row = {
      account: null,
      dialect: 'paybox',
      mac_addr: null,
      confirm: null,
      disabled: 0,
      managed: 'store',
    } as const;
    await first?.registry.add('boxes', {
      ...row,
      terminal_code: 'VVB000001',
      serial_number: 'VVB900001',
      secret: null,
      changed_at_ms: 1,
    });
    expect((await other?.registry.find('boxes', 'VVB000001'))?.serial_number).toBe('VVB900001');
    expect(await other?.registry.boxBy('serial_number', 'VVB900001')).toBeDefined();
    expect(await other?.registry.boxesOf('none')).toEqual([]);
    expect(await other?.registry.isOnBox('none', 1)).toBe(false);
    const made = await other?.ofAll.setting('name', () => 'first');
    expect([made, await first?.ofAll.setting('name', () => 'second')]).toEqual(['first', 'first']);
    expect(await other?.setting('name', () => 'own')).toBe('own');
  });

  it('shards of one PostgreSQL database belong to one gateway each', async () => {
    const { open, stores } = await shards(0, 1);
    await expect(open(1, 'b')).rejects.toThrow(/another gateway uses shard 1 of /);
    await stores[1]?.close();
    await open(1, 'b');
  });
});
