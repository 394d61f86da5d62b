import { stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { BoxSecrets } from '../../src/gateway/common/box-secrets.ts';
import { createDirectory, VirtualAccountTable } from '../../src/gateway/common/directory.ts';
import { accept } from '../../src/gateway/common/result.ts';
import { Vault } from '../../src/gateway/common/vault.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { RegistryChanges } from '../../src/gateway/registry/changes.ts';
import { seedRegistry, writeFileRows } from '../../src/gateway/registry/seed.ts';
import type { Store, StorePlace } from '../../src/gateway/store/store.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { opened } from '../store/rows.ts';
import { ENGINES } from '../support/stores.ts';
import { ACCOUNT, BOX1, BOX2, BOXES, OTHER_ACCOUNT } from './harness.ts';
import { storedOf, worldOf } from './stage-records.ts';

const PARTNER = {
  username: 'demo',
  password: 'demo-secret',
  accounts: [ACCOUNT.bankAccount],
  callback: { url: 'http://127.0.0.1:9/', auth: { kind: 'bearer', token: 'callback-token' } },
};

function configOf(change: Record<string, unknown> = {}) {
  const listed = { partners: [PARTNER], accounts: [ACCOUNT, OTHER_ACCOUNT], boxes: BOXES };
  return parseGatewayConfig({ dataDir: 'x', ...listed, ...change }, 'test');
}

/** A store as a gateway with this configuration opens it at its start. */
async function startedWith(place: StorePlace, change: Record<string, unknown> = {}) {
  const config = configOf(change);
  const store = await opened(place);
  const { registry } = store;
  const vault = await Vault.open(place.dataDir, registry, systemRandom);
  await seedRegistry(registry, config, { vault, atMs: 1 });
  const virtualAccounts = new VirtualAccountTable();
  const world = worldOf({ config });
  const directory = createDirectory(world, { registry, enrolled: store.boxSecrets, vault, virtualAccounts });
  return { world, store, directory };
}

const boxesIn = async ({ registry }: Store) =>
  (await registry.page('boxes', { limit: 100 })).map((it) => [it.terminal_code, it.serial_number, it.managed]);

for (const engine of ENGINES) {
  describe.skipIf(engine.missing)(`the registry on ${engine.name}`, () => {
    const place = engine.places();

    it('REG-2 has the rows of the file: added, changed, removed, and only once', async () => {
      const at = await place();
      const { store } = await startedWith(at);
      expect(await boxesIn(store)).toEqual(BOXES.map((it) => [it.terminalCode, it.serialNumber, 'file']));
      expect(await store.registry.changes(10)).toHaveLength(3);
      await writeFileRows(store.registry, configOf(), 2);
      expect(await store.registry.changes(10)).toHaveLength(3);
      // Two boxes swap their serial numbers.
      const [one, two] = [
        { ...BOX1, serialNumber: BOX2.serialNumber },
        { ...BOX2, serialNumber: BOX1.serialNumber },
      ];
      await writeFileRows(store.registry, configOf({ boxes: [one, two] }), 3);
      expect(await boxesIn(store)).toEqual([one, two].map((it) => [it.terminalCode, it.serialNumber, 'file']));
      const [removed, changed] = await store.registry.changes(2);
      expect([removed?.what, JSON.parse(removed?.detail ?? '')]).toEqual([
        'removed',
        { count: 2, names: ['VVB000003', 'VVB000004'] },
      ]);
      expect([changed?.who, changed?.what, changed?.target]).toEqual(['file', 'changed', 'boxes']);
    });

    it('REG-2 REG-7 keeps the secrets of the file in the file', async () => {
      const at = await place();
      const { store, directory } = await startedWith(at);
      expect(await directory.partner('demo')).toMatchObject({ password: 'demo-secret', disabled: false });
      expect(await directory.box(BOX1.terminalCode)).toMatchObject({ secret: BOX1.secret, enrols: false });
      expect(await store.registry.find('partners', 'demo')).toMatchObject({ password: null, callback: null });
      expect(await store.registry.find('boxes', BOX1.terminalCode)).toMatchObject({ secret: null });
      await expect(stat(join(at.dataDir, 'registry.key'))).rejects.toThrow('ENOENT');
    });

    it('REG-9 of two who change or add one row at the same time, one wins and the other is told', async () => {
      const { world, store, directory } = await startedWith(await place(), { registry: 'store' });
      const changes = new RegistryChanges(world, storedOf({ store, directory }));
      const by = { who: 'test', address: '127.0.0.1' };
      const row = await store.registry.find('boxes', BOX1.terminalCode);
      const seen = new Date(row?.changed_at_ms ?? 0).toISOString();
      const linkTo = (account: string | null) =>
        changes.change({ ...by, seen }, 'boxes', BOX1.terminalCode, () =>
          accept({ what: 'linked', columns: { account }, detail: {} }),
        );
      const changed = await Promise.all([linkTo(null), linkTo(OTHER_ACCOUNT.bankAccount), linkTo(ACCOUNT.bankAccount)]);
      expect(changed.filter((it) => it.ok)).toHaveLength(1);
      expect(changed.flatMap((it) => (it.ok ? [] : [it.code]))).toEqual(['ROW_CHANGED', 'ROW_CHANGED']);
      const won = [null, OTHER_ACCOUNT.bankAccount, ACCOUNT.bankAccount][changed.findIndex((it) => it.ok)];
      expect((await store.registry.find('boxes', BOX1.terminalCode))?.account).toBe(won);
      // Of other columns of one row, nothing is lost.
      const both = [{ disabled: 1 }, { serial_number: 'VVB900099' }].map((columns) =>
        changes.change(by, 'boxes', BOX2.terminalCode, () => accept({ what: 'changed', columns, detail: {} })),
      );
      expect((await Promise.all(both)).every((it) => it.ok)).toBe(true);
      expect(await store.registry.find('boxes', BOX2.terminalCode)).toMatchObject({
        disabled: 1,
        serial_number: 'VVB900099',
      });
      const columns = { content_prefix: null, partner: null, bank_code: 'MB' };
      const adds = ['A', 'B', 'C'].map((user_bank_name) =>
        changes.add(by, 'accounts', { bank_account: '9', user_bank_name, ...columns, ...changes.fresh() }),
      );
      const added = await Promise.all(adds);
      expect(added.flatMap((it) => (it.ok ? [] : [it.code]))).toEqual(['NAME_TAKEN', 'NAME_TAKEN']);
      const name = ['A', 'B', 'C'][added.findIndex((it) => it.ok)];
      expect((await store.registry.find('accounts', '9'))?.user_bank_name).toBe(name);
    });

    it('REG-7 wraps the secrets of enrolled boxes, also those that an earlier version has stored', async () => {
      const at = await place();
      const { store } = await startedWith(at);
      const { registry, boxSecrets } = store;
      const row = { terminal_code: 'VVB000005', serial_number: 'VVB900005', enrolled_at_ms: 1 };
      await boxSecrets.keep({ ...row, secret: 'of-an-earlier-version', wrapped: 0 });
      const vault = await Vault.open(at.dataDir, registry, systemRandom);
      const secrets = await BoxSecrets.open(store, vault);
      await secrets.keep({ ...row, terminal_code: 'VVB000006', secret: 'of-this-version' });
      expect(await boxSecrets.plain(10)).toEqual([]);
      const known = [await secrets.get('VVB000005', 'VVB900005'), await secrets.get('VVB000006', 'VVB900005')];
      expect(known).toEqual(['of-an-earlier-version', 'of-this-version']);
      expect(String(await boxSecrets.get('VVB000005', 'VVB900005'))).toMatch(/^[\w-]{60,}$/);
      const again = await Vault.open(at.dataDir, registry, systemRandom);
      const reopened = await BoxSecrets.open(store, again);
      expect(await reopened.get('VVB000006', 'VVB900005')).toBe('of-this-version');
    });

    it('REG-2 starts with no box of the file that has the serial number of another one', async () => {
      const at = await place();
      const { store } = await startedWith(at, { registry: 'store', boxes: [BOX1] });
      const taken = { ...BOX2, serialNumber: BOX1.serialNumber };
      await expect(writeFileRows(store.registry, configOf({ boxes: [taken] }), 2)).rejects.toThrow(
        `boxes: ${BOX2.terminalCode} has the serialNumber ${BOX1.serialNumber} of ${BOX1.terminalCode}`,
      );
      expect(await boxesIn(store)).toEqual([[BOX1.terminalCode, BOX1.serialNumber, 'store']]);
    });

    it('REG-3 REG-7 begins an empty store with the file, and then leaves it alone', async () => {
      const at = await place();
      const first = await startedWith(at, { registry: 'store', boxes: [BOX1] });
      const row = await first.store.registry.find('partners', 'demo');
      expect(JSON.stringify([row, await first.store.registry.find('boxes', BOX1.terminalCode)])).not.toMatch(
        /demo-secret|callback-token|Secret-of-box/,
      );
      expect((await stat(join(at.dataDir, 'registry.key'))).mode & 0o777).toBe(0o600);
      await first.store.close();
      const nothing = { registry: 'store', partners: [], accounts: [ACCOUNT], boxes: [] };
      const { store, directory } = await startedWith(at, nothing);
      expect(await boxesIn(store)).toEqual([[BOX1.terminalCode, BOX1.serialNumber, 'store']]);
      expect(await directory.partner('demo')).toMatchObject({
        password: 'demo-secret',
        callback: { auth: { kind: 'bearer', token: 'callback-token' }, decimals: false },
      });
      expect(await directory.box(BOX1.terminalCode)).toMatchObject({ secret: BOX1.secret, enrols: false });
      // A secret opens in its own row only.
      const other = await store.registry.find('boxes', BOX1.terminalCode);
      if (other === undefined) throw new Error('no box');
      const stolen = { ...other, terminal_code: BOX2.terminalCode, serial_number: BOX2.serialNumber };
      await store.registry.put('boxes', stolen);
      await expect(directory.box(BOX2.terminalCode)).rejects.toThrow(/secret boxes\/VVB000002\/secret .* is damaged/);
    });

    it('REG-3 takes over what the file managed, also where others have been added', async () => {
      const at = await place();
      const { store } = await startedWith(at);
      await store.registry.put('boxes', {
        ...{ terminal_code: 'VVB000009', serial_number: 'VVB900009', account: null, dialect: 'paybox', mac_addr: null },
        ...{ confirm: null, secret: null, managed: 'store', disabled: 1, changed_at_ms: 1 },
      });
      await store.close();
      const later = await startedWith(at, { registry: 'store', boxes: [BOX1] });
      expect(await boxesIn(later.store)).toEqual([
        [BOX1.terminalCode, BOX1.serialNumber, 'store'],
        ['VVB000009', 'VVB900009', 'store'],
      ]);
      expect(await later.directory.box('VVB000009')).toMatchObject({ disabled: true, secret: undefined, enrols: true });
      expect(await later.directory.box(BOX1.terminalCode)).toMatchObject({ secret: BOX1.secret });
    });

    it.each([
      ['missing', (file: string) => unlink(file)],
      ['another key', (file: string) => writeFile(file, systemRandom.secret(32))],
    ])('REG-7 starts with no store whose key is %s', async (how, change) => {
      const at = await place();
      const { store } = await startedWith(at, { registry: 'store' });
      const file = join(at.dataDir, 'registry.key');
      await change(file);
      await expect(Vault.open(at.dataDir, store.registry, systemRandom)).rejects.toThrow(`${file} is ${how}`);
    });

    it('REG-1 lists page after page, and finds by the beginning of a name', async () => {
      const { store } = await startedWith(await place());
      const first = await store.registry.page('boxes', { limit: 3 });
      const after = first.at(-1)?.terminal_code;
      const rest = await store.registry.page('boxes', { limit: 3, after });
      expect([...first, ...rest].map((it) => it.terminal_code)).toEqual(BOXES.map((it) => it.terminalCode));
      const named = (text: string, column: 'terminal_code' | 'serial_number') =>
        store.registry
          .page('boxes', { limit: 9, begins: { column, text } })
          .then((rows) => rows.map((it) => it.terminal_code));
      expect(await named('VVB00000', 'terminal_code')).toHaveLength(4);
      expect(await named('VVB000002', 'terminal_code')).toEqual([BOX2.terminalCode]);
      expect(await named('VVB900002', 'serial_number')).toEqual([BOX2.terminalCode]);
      expect(await named('%', 'serial_number')).toEqual([]);
      const where = { column: 'account', value: ACCOUNT.bankAccount } as const;
      const ofAccount = await store.registry.page('boxes', { limit: 9, where });
      expect(ofAccount.map((it) => it.terminal_code)).toEqual([BOX1.terminalCode, BOX2.terminalCode]);
    });
  });
}
