import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { JOURNAL_FILE } from '../../src/device/agent/journal/journal.ts';
import { storeFile } from '../../src/gateway/store/store-files.ts';
import { isPlainText, withoutUnseen } from '../../src/lib/text.ts';
import { ACCOUNT, BOX1, OTHER_ACCOUNT, testGateway } from '../gateway/harness.ts';
import { startRealBox } from '../security/real-box.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { at, STORE } from './admin-command.ts';

const TOKEN = 'A-long-admin-token-of-a-test';
const LATER_MS = 60_000;

describe('paybox admin', () => {
  it('REG-4 THR-7 paybox admin prints no name that commands the terminal, and changes and removes its row', async () => {
    const dataDir = await temporaryFolder();
    const first = await testGateway({ ...STORE, dataDir });
    await first.close();
    const names = ['evil\u001b[2J', 'nul\0byte', 'turned\u202eround', 'c1\u009b31m'];
    const db = new DatabaseSync(storeFile(dataDir));
    const old = "insert into partners (username, managed, disabled, changed_at_ms) values (?, 'store', 0, 1)";
    for (const name of names) db.prepare(old).run(name);
    db.close();
    const gateway = await testGateway({ ...STORE, dataDir });
    const admin = at(gateway);
    for (const args of [['list'], ['list', '--json'], ['list', '--limit', '3']]) {
      const { code, output } = await admin('partners', ...args);
      expect([args, code, isPlainText(output.replaceAll('\n', ''))]).toEqual([args, 0, true]);
      expect(output).toContain('evil\\u001b[2J');
    }
    const after = await admin('partners', 'list', '--after', 'evil\\u001b[2J', '--limit', '1');
    expect(after.output).toMatch(/^nul\\u0000byte /m);
    // As it is printed, and as a program that reads JSON has it.
    for (const name of names) {
      const printed = withoutUnseen(name);
      const others: string[][] = [
        ['show', printed],
        ['disable', printed],
        ['rotate', printed],
        ['change', printed, '--callback-url', 'https://shop.example/sync'],
      ];
      const steps = [...(name === names[0] ? others : []), ['remove', name.includes('\0') ? printed : name]];
      for (const [verb = '', ...args] of steps) {
        const { code, output } = await admin('partners', verb, ...args);
        expect([verb, output, code]).toEqual([
          verb,
          expect.stringContaining(verb === 'show' ? 'username' : printed),
          0,
        ]);
        expect(isPlainText(output.replaceAll('\n', ''))).toBe(true);
      }
    }
    const left = await gateway.mock('/../admin/v1/partners');
    expect(left.map(({ username }) => username)).toEqual(['demo', 'other']);
    const added = await admin('partners', 'add', 'evil\u001b[2J');
    expect([added.code, added.output]).toEqual([1, expect.stringContaining('no control character')]);
  });

  it('REG-4 paybox admin accepts any name in a path, but NUL', async () => {
    const dataDir = await temporaryFolder();
    const first = await testGateway({ ...STORE, dataDir });
    await first.close();
    const db = new DatabaseSync(storeFile(dataDir));
    db.prepare("update partners set username = ? where username = 'other'").run('a\u001bb');
    db.close();
    const { origin } = await testGateway({ ...STORE, dataDir });
    const remove = (name: string) => fetch(`${origin}/admin/v1/partners/${name}`, { method: 'DELETE' });
    expect((await remove('a%00b')).status).toBe(404);
    expect((await fetch(`${origin}/admin/v1/accounts/5550001/unlink`, { method: 'POST' })).status).toBe(200);
    expect((await remove(encodeURIComponent('a\u001bb'))).status).toBe(200);
  });

  it('paybox admin says what to do about what is refused', async () => {
    const gateway = await testGateway({ config: { adminToken: TOKEN } });
    const folder = await temporaryFolder();
    const token = join(folder, 'token');
    await writeFile(token, TOKEN);
    const admin = at(gateway);
    const nobody = await freePort();
    const refused: [args: string[], code: number, says: string][] = [
      [['partners', 'list'], 1, '--admin-token-file'],
      [
        ['partners', 'disable', 'demo', '--admin-token-file', token],
        1,
        "expected a row that the gateway's file does not manage",
      ],
      [['boxes', 'show', 'VVB000099', '--admin-token-file', token], 1, 'expected one of the boxes in the registry'],
      [['boxes', 'show', 'VVB000099', '--admin-token-file', token], 1, 'not VVB000099 (E96)\n'],
      [
        ['accounts', 'add', '1', '--admin-token-file', token],
        1,
        'refused: bankCode: expected a text, but it is missing',
      ],
      [
        ['sources', 'add', 'x', '--admin-token-file', token],
        1,
        'refused: kind: expected one of sepay, casso, payos, vietqr',
      ],
      [
        ['boxes', 'add', 'VVB000098', '--serial', BOX1.serialNumber, '--admin-token-file', token],
        1,
        `not that of ${BOX1.terminalCode} (NAME_TAKEN)`,
      ],
      [
        ['boxes', 'add', BOX1.terminalCode, '--serial', 'VVB900098', '--admin-token-file', token],
        1,
        'that none of the boxes',
      ],
      [['boxes', 'change', 'VVB000001', '--admin-token-file', token], 2, 'paybox admin boxes change --help'],
      [['sources', 'add', 'x', '--file', join(folder, 'none'), '--admin-token-file', token], 2, 'cannot be read'],
      [['boxes', 'dance'], 2, 'unknown command'],
      [['boxes', 'list', '--gateway', `http://127.0.0.1:${nobody}`], 3, 'cannot be reached'],
    ];
    for (const [args, code, says] of refused) {
      const ended = await admin(...args);
      expect([args, ended.code, ended.output]).toEqual([args, code, expect.stringContaining(says)]);
      expect(ended.output).not.toContain(TOKEN);
    }
    const listed = await admin('partners', 'list', '--admin-token-file', token);
    expect(listed).toEqual({ code: 0, output: expect.stringContaining('of the file') });
  });

  it('ROL-4 ROL-5 paybox admin makes a token, once, with which a cashier sells and does nothing else, and revokes it', async () => {
    const gateway = await testGateway({ config: { adminToken: TOKEN, registry: 'store' } });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http', onShow: (it, show) => void it.shown(show) });
    const folder = await temporaryFolder();
    const [root, till, config] = ['root', 'till', 'gateway.yaml'].map((it) => join(folder, it)) as [
      string,
      string,
      string,
    ];
    await writeFile(root, TOKEN);
    await writeFile(config, JSON.stringify({ dataDir: 'data', adminToken: TOKEN }));
    const admin = at(gateway);
    const made = await admin(
      'tokens',
      'add',
      'till-1',
      '--role',
      'cashier',
      '--box',
      BOX1.terminalCode,
      '--config',
      config,
    );
    const token = /^token: (paybox_\S{32})$/m.exec(made.output)?.[1] ?? '';
    expect(made).toEqual({
      code: 0,
      output: `till-1 is added\ntoken: ${token}\n  shown once: keep it now, nobody can read it later\n`,
    });
    await writeFile(till, `${token}\n`);
    const sell = (...args: string[]) =>
      payboxToEnd('sell', ...args, '--gateway', gateway.origin, '--admin-token-file', till);
    const sold = await sell('--amount', '50000', '--no-wait', '--json');
    const { code, soldBy } = JSON.parse(sold.output) as Record<string, string>;
    expect([sold.code, soldBy]).toEqual([0, 'till-1']);
    expect((await sell('--cancel', String(code))).output).toContain('is cancelled');
    expect((await sell('--list')).output).toContain('1 sale, 0 of them paid');
    expect(await sell('--amount', '50000', '--box', 'VVB000004')).toEqual({
      code: 1,
      output: expect.stringContaining(`expected a box of this token: ${BOX1.terminalCode}`),
    });
    const refused: string[][] = [
      ['sources', 'add', 'own', '--file', config],
      ['boxes', 'link', BOX1.terminalCode, OTHER_ACCOUNT.bankAccount],
      ['tokens', 'add', 'more', '--role', 'admin'],
      ['audit'],
    ];
    for (const args of refused) {
      const { code, output } = await admin(...args, '--admin-token-file', till);
      expect([args, code, output]).toEqual([
        args,
        1,
        expect.stringMatching(/with the role cashier[\s\S]*paybox admin tokens add/),
      ]);
    }
    const listed = await admin('tokens', 'list', '--admin-token-file', root);
    expect(listed.output).toMatch(
      /^TOKEN +ROLE +BOXES +MADE +BY +LAST USED\ntill-1 +cashier +VVB000001 +\S+ +config +\S+Z\n$/,
    );
    expect(listed.output).not.toContain(token);
    const audit = await admin('audit', '--limit', '2', '--admin-token-file', root);
    expect(audit.output).toMatch(/till-1 +127\.0\.0\.1 +cancelled +sales\//);
    const revoked = await admin('tokens', 'revoke', 'till-1', '--admin-token-file', root);
    expect(revoked).toEqual({ code: 0, output: 'till-1 is revoked\n' });
    expect((await sell('--list')).code).toBe(1);
    const none = await admin('tokens', 'list', '--admin-token-file', root);
    expect(none.output).toBe('no tokens\n');
    expect((await admin('tokens', 'list', '--revoked', '--json', '--admin-token-file', root)).output).toContain(
      '"revokedAt":"2',
    );
  });

  it('ROL-3 paybox admin finds the first token of a live gateway by its file, and says where to look without it', async () => {
    const folder = await temporaryFolder();
    const own = { mode: 'live', accounts: [OTHER_ACCOUNT], partners: [], boxes: [] };
    const gateway = await testGateway({ dataDir: join(folder, 'data'), config: own });
    const config = join(folder, 'gateway.yaml');
    await writeFile(config, JSON.stringify({ dataDir: 'data', mode: 'live' }));
    const admin = at(gateway);
    const without = await admin('tokens', 'list');
    expect([without.code, without.output]).toEqual([1, expect.stringContaining('admin-token of its dataDir')]);
    expect(await admin('tokens', 'list', '--config', config)).toEqual({ code: 0, output: 'no tokens\n' });
    expect((await payboxToEnd('sell', '--list', '--gateway', gateway.origin, '--config', config)).code).toBe(0);
    expect((await payboxToEnd('keys', '--gateway', gateway.origin, '--config', config)).code).toBe(0);
  });

  it('REG-5 REG-6 AGT-13 a box that is linked anew says so on its screen at once, and a disabled one takes its QR away', async () => {
    // Both at once: most of it is the time for which an account stays on a screen.
    await Promise.all([expectChangesOnScreen('mqtt'), expectChangesOnScreen('http')]);
  });
});

async function expectChangesOnScreen(transport: 'mqtt' | 'http'): Promise<void> {
  const gateway = await testGateway(STORE);
  const admin = at(gateway);
  const box = await startRealBox(BOX1, { transport, url: transport === 'mqtt' ? gateway.mqttUrl : gateway.origin });
  const screen = async () => {
    const picture = await fetch(`${box.origin}/screen.png`);
    return Buffer.from(await picture.arrayBuffer()).toString('base64');
  };
  /** Whether it has shown people this account for its time: its journal says so then. */
  const hasShown = async ({ bankAccount }: typeof ACCOUNT) => {
    const files = ['', '-wal'].map((end) => readFile(join(box.dataDir, `${JOURNAL_FILE}${end}`), 'latin1'));
    return (await Promise.all(files)).join('').includes(`"kind":"account","account":{"bankAccount":"${bankAccount}"`);
  };
  const idle = await screen();
  expect(await hasShown(OTHER_ACCOUNT)).toBe(false);
  expect((await admin('boxes', 'link', BOX1.terminalCode, OTHER_ACCOUNT.bankAccount)).code).toBe(0);
  await eventually('another screen', async () => (await screen()) !== idle, LATER_MS);
  await eventually('the new account on it', () => hasShown(OTHER_ACCOUNT), LATER_MS);
  expect((await admin('boxes', 'link', BOX1.terminalCode, ACCOUNT.bankAccount)).code).toBe(0);
  const pushed = async () => (await gateway.sendQr()).body.status === 'SUCCESS';
  await eventually('a QR', pushed, LATER_MS);
  expect((await box.status()).order?.orderId).toBe('DH001');
  expect((await admin('boxes', 'link', BOX1.terminalCode, OTHER_ACCOUNT.bankAccount)).code).toBe(0);
  const isGone = async () => (await box.status()).order === null;
  await eventually('the QR of the old account to go', isGone, LATER_MS);
  expect((await admin('boxes', 'link', BOX1.terminalCode, ACCOUNT.bankAccount)).code).toBe(0);
  await eventually('a QR again', pushed, LATER_MS);
  expect((await admin('boxes', 'disable', BOX1.terminalCode)).code).toBe(0);
  await eventually('the QR of the disabled box to go', isGone, LATER_MS);
  const text = async () => (await fetch(`${box.origin}/screen.txt`)).text();
  await eventually('its screen to say why', async () => /đang bị tắt/.test(await text()), LATER_MS);
  expect(await (await fetch(`${box.origin}/status`)).json()).toMatchObject({ fault: { code: 'BOX_DISABLED' } });
  expect((await gateway.sendQr({ orderId: 'DH3' })).body.message).toBe('BOX_OFFLINE');
  expect((await admin('boxes', 'enable', BOX1.terminalCode)).code).toBe(0);
  await eventually('it to be back', async () => (await box.status()).online, LATER_MS);
}
