import { once } from 'node:events';
import { copyFile, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SnapshotMaker } from '../../src/gateway/store/engines/snapshot.ts';
import { openStore } from '../../src/gateway/store/store.ts';
import { systemClock } from '../../src/lib/clock.ts';
import {
  ACCOUNT,
  BOX1,
  BOX2,
  partnerServer,
  processed,
  status,
  type TestGateway,
  testGateway,
} from '../gateway/harness.ts';
import { memoryDisk, withoutDisks } from '../support/disk.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { keptLog } from '../support/kept-log.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

/** So that a copy takes a while. */
const BALLAST_BYTES = 24_000_000;
/** What a push, or the end of the gateway, may take while a backup is made, on a machine that runs many tests. */
const PUSH_MS_MAX = 20_000;

describe('a copy that the engine gives up', () => {
  const failing = (errcode: number) => Object.assign(new Error('given up'), { code: 'ERR_SQLITE_ERROR', errcode });
  const makerOf = async (...errors: Error[]) => {
    const store = join(await temporaryFolder(), 'gateway.sqlite');
    await writeFile(store, 'whole');
    const maker = new SnapshotMaker(store, async (file) => {
      const error = errors.shift();
      if (error !== undefined) throw error;
      await copyFile(store, file);
    });
    return { maker, errors };
  };

  it('is begun anew where somebody else used the store at that moment', async () => {
    const { maker } = await makerOf(failing(0), failing(5));
    const copy = await maker.make();
    expect(await copy.readFile('utf8')).toBe('whole');
    await copy.close();
  });

  it.each([
    ['for a full disk', 13, 1],
    ['three times', 6, 3],
  ])('is given up %s', async (_why, errcode, attempts) => {
    const { maker, errors } = await makerOf(...Array.from({ length: 5 }, () => failing(errcode)));
    await expect(maker.make()).rejects.toThrow('cannot be written: given up');
    expect(errors).toHaveLength(5 - attempts);
  });
});

const disk = withoutDisks('memory');

type Payment = { transactionId: string };

/** Sells and pays at one box, one after the other, until it is told to end. */
async function trade(gateway: TestGateway) {
  const paid: string[] = [];
  const pushMs: number[] = [];
  let isOver = false;
  const loop = async () => {
    for (let n = 0; !isOver; n += 1) {
      const began = performance.now();
      expect((await gateway.sendQr({ orderId: `DH${n}` })).body.status).toBe('SUCCESS');
      pushMs.push(performance.now() - began);
      const { status: code, body } = await gateway.testCallback();
      expect(code).toBe(200);
      paid.push(String(body.message));
    }
  };
  const trading = loop();
  await Promise.race([trading, eventually('a few payments', () => paid.length > 3)]);
  return {
    paid,
    pushMs,
    end: () => {
      isOver = true;
      return trading;
    },
  };
}

const idsOf = async (gateway: TestGateway) =>
  (await gateway.mock<Payment[]>('/payments?limit=500')).map((it) => it.transactionId);

describe('a backup of a gateway that works', () => {
  it('BAK-1 BAK-2 has every payment that was acknowledged before it, and what was owed is told from it', async () => {
    const [dataDir, folder] = [await temporaryFolder(), await temporaryFolder()];
    const ballast = await openStore({ dataDir }, keptLog().log);
    await ballast.setting('ballast', () => 'x'.repeat(BALLAST_BYTES));
    await ballast.close();
    const away = await partnerServer(status(503));
    const config = { confirmTimeoutMs: 2 * PUSH_MS_MAX };
    const gateway = await testGateway({ dataDir, callback: { url: away.url }, config });
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const reported = String((await gateway.testCallback()).body.message);
    await box.send({ type: 'paid', transactionId: reported, orderId: '', amount: 50_000, recorded: true }, reported);
    expect((await box.next('ack')).reportIds).toEqual([reported]);

    const trading = await trade(gateway);
    const before = [...trading.paid];
    const pushesBefore = trading.pushMs.length;
    const file = join(folder, 'backup');
    const made = await payboxToEnd('backup', file, '--gateway', gateway.origin);
    expect(made).toMatchObject({ code: 0, output: expect.stringMatching(/MiB, \d+ orders, \d+ payments/) });
    const meanwhile = trading.pushMs.slice(pushesBefore);
    await trading.end();
    expect(meanwhile.length).toBeGreaterThan(3);
    expect(Math.max(...meanwhile)).toBeLessThan(PUSH_MS_MAX);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(dataDir)).not.toContainEqual(expect.stringContaining('backup'));
    const again = await payboxToEnd('backup', file, '--gateway', gateway.origin);
    expect(again).toMatchObject({ code: 2, output: expect.stringContaining('is there already') });
    const inUse = await payboxToEnd('restore', file, '--data', dataDir, '--replace');
    expect(inUse).toMatchObject({ code: 2, output: expect.stringContaining('a gateway uses the store') });
    await gateway.close();

    const elsewhere = join(folder, 'elsewhere');
    expect(await payboxToEnd('restore', file, '--data', elsewhere)).toMatchObject({ code: 0 });
    const partner = await partnerServer(processed);
    const restored = await testGateway({ dataDir: elsewhere, callback: { url: partner.url } });
    const there = await idsOf(restored);
    expect([reported, ...before].filter((id) => !there.includes(id))).toEqual([]);
    const sameBox = await connectFakeBox({ gateway: restored, identity: BOX1, transport: 'mqtt' });
    await eventually('each payment but the reported one at the box', () => {
      const told = new Set(sameBox.of('payment').map((it) => it.transactionId));
      return Math.min(told.size, 100) === Math.min(there.length - 1, 100) && !told.has(reported);
    });
    await eventually('each callback, once', async () => {
      const told = partner.calls.map((it) => String(JSON.parse(it.body).transactionid));
      expect(new Set(told).size).toBe(told.length);
      return told.length === there.length && told.every((id) => there.includes(id));
    });
  });

  it('BAK-2 REG-7 says that registry.key belongs beside it, and a restore without that says what is missing', async () => {
    const [dataDir, folder] = [await temporaryFolder(), await temporaryFolder()];
    const gateway = await testGateway({ dataDir, config: { registry: 'store' } });
    const file = join(folder, 'backup');
    const made = await payboxToEnd('backup', file, '--gateway', gateway.origin);
    expect(made).toMatchObject({ code: 0, output: expect.stringContaining('keep registry.key of dataDir beside it') });
    const place = join(folder, 'elsewhere');
    const restored = () => payboxToEnd('restore', file, '--data', place, '--replace');
    expect((await restored()).output).toMatch(/will not start yet: .*registry\.key is missing.*put the file back/);
    await copyFile(join(dataDir, 'registry.key'), join(place, 'registry.key'));
    expect((await restored()).output).toMatch(/; start the gateway$/m);
  });

  it('BAK-2 is put in the place of a store only with --replace, which moves it aside', async () => {
    const [dataDir, folder] = [await temporaryFolder(), await temporaryFolder()];
    const partner = await partnerServer(processed);
    const gateway = await testGateway({ dataDir, callback: { url: partner.url } });
    const first = String((await gateway.testCallback()).body.message);
    const file = join(folder, 'backup');
    expect(await payboxToEnd('backup', file, '--gateway', gateway.origin)).toMatchObject({ code: 0 });
    const second = String((await gateway.testCallback()).body.message);
    await gateway.close();

    const refused = await payboxToEnd('restore', file, '--data', dataDir);
    expect(refused).toMatchObject({ code: 2, output: expect.stringContaining('--replace') });
    const { code, output } = await payboxToEnd('restore', file, '--data', dataDir, '--replace');
    expect(code).toBe(0);
    const aside = /the store that was there is (\S+) now/.exec(output)?.[1] ?? '';
    expect((await stat(join(dataDir, 'gateway.sqlite'))).mode & 0o777).toBe(0o600);
    const restored = await testGateway({ dataDir });
    expect(await idsOf(restored)).toEqual([first]);
    const other = await temporaryFolder();
    await writeFile(join(other, 'gateway.sqlite'), await readFile(aside));
    expect((await idsOf(await testGateway({ dataDir: other }))).toSorted()).toEqual([first, second].toSorted());
  });

  it.each([
    ['is none', (file: string) => writeFile(file, 'nothing of the kind'), 'is not a backup'],
    ['is cut', async (file: string) => writeFile(file, (await readFile(file)).subarray(0, 40_000)), 'is damaged'],
    [
      'has a damaged page',
      async (file: string) => writeFile(file, (await readFile(file)).fill(0x5a, 8_192, 12_288)),
      'is damaged',
    ],
  ])('BAK-2 is refused where it %s, and nothing is changed', async (_what, damage, words) => {
    const folder = await temporaryFolder();
    const gateway = await testGateway();
    const file = join(folder, 'backup');
    expect(await payboxToEnd('backup', file, '--gateway', gateway.origin)).toMatchObject({ code: 0 });
    await damage(file);
    const refused = await payboxToEnd('restore', file, '--data', join(folder, 'new'));
    expect(refused).toMatchObject({ code: 2, output: expect.stringContaining(words) });
    expect(await readdir(folder)).toEqual(['backup']);
  });

  it('BAK-1 is for admins, one at a time, and ends with the gateway', async () => {
    const dataDir = await temporaryFolder();
    const ballast = await openStore({ dataDir }, keptLog().log);
    await ballast.setting('ballast', () => 'x'.repeat(BALLAST_BYTES));
    await ballast.close();
    const gateway = await testGateway({ dataDir, config: { adminToken: 'An-admin-token-of-this-test' } });
    expect((await fetch(`${gateway.origin}/_mock/backup`)).status).toBe(401);
    const headers = { authorization: 'Bearer An-admin-token-of-this-test' };
    const ask = () => fetch(`${gateway.origin}/_mock/backup`, { headers });
    const answers = await Promise.all([ask(), ask(), ask()]);
    expect(answers.map((it) => it.status).toSorted()).toEqual([200, 409, 409]);
    const refused = answers.find((it) => it.status === 409);
    expect(await refused?.json()).toMatchObject({ message: 'NO_BACKUP', reason: expect.stringContaining('another') });
    const began = systemClock.monotonicMs();
    await gateway.close();
    expect(systemClock.monotonicMs() - began).toBeLessThan(PUSH_MS_MAX);
    expect((await readdir(dataDir)).toSorted()).toEqual(['gateway.mark', 'gateway.sqlite']);
  });

  it.skipIf(disk.missing)(`tells who asks for one that there is no room for it${disk.note}`, async () => {
    const target = await memoryDisk();
    target.fill();
    const gateway = await testGateway();
    const file = join(target.folder, 'backup');
    const asked = await payboxToEnd('backup', file, '--gateway', gateway.origin);
    expect(asked).toMatchObject({ code: 1, output: expect.stringContaining(`make room where ${file} is`) });
    expect(asked.output).not.toContain('start the gateway');
    expect(await readdir(target.folder)).toEqual(['ballast']);
  });

  it('tells who asks for one where no gateway is', async () => {
    const file = join(await temporaryFolder(), 'backup');
    const asked = await payboxToEnd('backup', file, '--gateway', 'http://127.0.0.1:9');
    expect(asked).toMatchObject({ code: 3, output: expect.stringContaining('start the gateway') });
    await expect(stat(file)).rejects.toThrow('ENOENT');
  });
});

describe.skipIf(missing)(`a backup of a gateway on PostgreSQL${note}`, () => {
  const server = postgresServer();
  const configFor = async (databaseUrl: string) => {
    const file = join(await temporaryFolder(), 'gateway.yaml');
    const box = { ...BOX2, account: ACCOUNT.bankAccount };
    await writeFile(
      file,
      JSON.stringify({ dataDir: '.', databaseUrl, accounts: [ACCOUNT], boxes: [box], partners: [] }),
    );
    return file;
  };

  it('BAK-3 is made by pg_dump beside its work, and restored into an empty database', async () => {
    const [from, to] = [await server().database(), await server().database()];
    const partner = await partnerServer(processed);
    const gateway = await testGateway({ callback: { url: partner.url }, config: { databaseUrl: from } });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const trading = await trade(gateway);
    const before = [...trading.paid];
    const file = join(await temporaryFolder(), 'backup');
    const running = paybox('backup', file, '--config', await configFor(from));
    await once(running.child, 'close');
    expect([running.child.exitCode, running.output()]).toEqual([0, expect.stringContaining('of PostgreSQL')]);
    await trading.end();
    const asked = await payboxToEnd('backup', `${file}2`, '--gateway', gateway.origin);
    expect(asked).toMatchObject({ code: 1, output: expect.stringContaining('--config') });
    const full = await payboxToEnd('restore', file, '--config', await configFor(from));
    expect(full).toMatchObject({ code: 2, output: expect.stringContaining('is not empty') });
    expect(await payboxToEnd('restore', file, '--config', await configFor(to))).toMatchObject({ code: 0 });
    const there = await idsOf(await testGateway({ config: { databaseUrl: to } }));
    expect(before.filter((id) => !there.includes(id))).toEqual([]);
  });
});
