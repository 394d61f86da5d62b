// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NotAsExpected, openPaybox, type Paybox, PayboxRefusal } from '../../src/bench/library/index.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { opened, shop, thrownBy } from './opened.ts';

const LIBRARY = resolve(import.meta.dirname, '../../src/bench/library/index.ts');

/** A sale by HTTP, as a back end makes it; the answer of send-qr. */
async function sell({ serviceUrl, partner, account, boxes }: Paybox, order: { amount: number; content: string }) {
  const post = async (path: string, authorization: string, body: object = {}) => {
    const headers = { authorization, 'content-type': 'application/json' };
    const answer = await fetch(`${serviceUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, string>;
  };
  const { username, password } = partner;
  const login = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const bearer = `Bearer ${(await post('/api/token_generate', login)).access_token}`;
  const sale = { ...account, ...order, orderId: order.content, transType: 'C', qrType: 0 };
  const { qrCode } = await post('/api/qr/generate-customer', bearer, sale);
  const [{ terminalCode, serialNumber } = { terminalCode: '', serialNumber: '' }] = boxes;
  const { bankAccount, bankCode } = account;
  const signed = `${password}${bankAccount}${order.amount}${bankCode}`;
  const checkSum = createHash('md5').update(signed).digest('hex');
  const amount = String(order.amount);
  const push = { ...order, amount, bankAccount, bankCode, qrCode, terminalCode, serialNumber, orderId: order.content };
  return post('/api/tid/send-qr', bearer, { ...push, checkSum });
}

/** The programs that a process has started and that are there. */
async function childrenOf(pid: number): Promise<number[]> {
  const listed = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return listed.split(' ').filter(Boolean).map(Number);
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

describe('the library for tests', () => {
  it('waits in real time, and skips time on request without running away from a shop that answers', async () => {
    const { taken, callbackUrl } = await shop(400);
    const paybox = await opened({ callbackUrl });
    await paybox.push({ amount: 1_000, content: 'SLOW' });
    await paybox.pay({ amount: 1_000, content: 'SLOW' });
    // In less time than the answer takes: the callback would be given up long before it, by the gateway's time.
    await paybox.skip('30m');
    await paybox.expect({ callback: { payment: '${pay.transactionId}', attempts: 1 } });
    expect(taken).toHaveLength(1);
    await paybox.push({ amount: 1_000, content: 'OLD' });
    const beganMs = performance.now();
    const late = await thrownBy(paybox.expect({ state: 'idle', within: '300ms' }));
    expect(performance.now() - beganMs).toBeGreaterThan(250);
    expect(late).toBeInstanceOf(NotAsExpected);
    await paybox.skip('10m');
    await paybox.expect({ state: 'idle', qr: 'none' });
  });

  it('lets a shop wait for the gateway beside a skip', async () => {
    const paybox = await opened();
    await paybox.fault('push-lost');
    const beganMs = performance.now();
    const sold = sell(paybox, { amount: 1_000, content: 'LOST' });
    await paybox.expect({ fault: { name: 'push-lost', happened: 1 } });
    await paybox.skip('15s');
    expect(await sold).toEqual({ status: 'FAILED', message: 'BOX_TIMEOUT' });
    expect(performance.now() - beganMs).toBeLessThan(5_000);
  });

  it('serves many tests side by side with one program', async () => {
    const all = await Promise.all([1, 2, 3, 4, 5, 6].map(() => opened({ boxes: 2 })));
    await Promise.all(
      all.map(async (paybox, index) => {
        const order = { amount: 1_000 * (index + 1), content: `DH${index}` };
        await paybox.push(order, { box: 2 });
        await paybox.expect({ state: 'showing', text: `${index + 1}.000 ₫` }, { box: 2 });
        await paybox.expect({ state: 'idle' });
        await paybox.pay(order);
        await paybox.expect({ state: 'paid', settled: true }, { box: 2 });
      }),
    );
    expect(new Set(all.map(({ serviceUrl }) => serviceUrl)).size).toBe(6);
    expect(await childrenOf(process.pid)).toHaveLength(1);
  });

  it('keeps the screen of an expectation that fails, and says where', async () => {
    const screens = join(await temporaryFolder(), 'kept');
    const paybox = await opened({ screens });
    await paybox.push({ amount: 50_000, content: 'DH1' });
    const error = (await thrownBy(paybox.expect({ state: 'paid', within: '100ms' }))) as NotAsExpected;
    expect(error).toBeInstanceOf(NotAsExpected);
    const [message, file] = error.message.split('\nscreen: ');
    expect(message).toBe('VVB000001: state: expected "paid", is "showing", after 100ms');
    expect(error.stack).toContain('library.long.test.ts');
    expect(error.screen).toBe(file);
    expect(decodeQrTwice(await readFile(file ?? ''))[0]).toMatch(/^000201/);
    expect((await readdir(screens)).filter((name) => name.endsWith('.png'))).toHaveLength(1);
    expect(await readFile(join(screens, '.gitignore'), 'utf8')).toBe('*\n');
  });

  it('says the failure also where no screen can be kept', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'file'), '');
    const paybox = await opened({ screens: join(folder, 'file', 'kept') });
    const error = (await thrownBy(paybox.expect({ state: 'paid', within: '50ms' }))) as Error;
    expect(error.message).toMatch(/^VVB000001: state: expected "paid".*\nscreen not kept: ENOTDIR/);
  });

  it('leaves a folder that is there as it is, but for the screen', async () => {
    const screens = await temporaryFolder();
    await writeFile(join(screens, '.gitignore'), 'node_modules\n');
    const paybox = await opened({ screens });
    await expect(paybox.expect({ state: 'paid', within: '50ms' })).rejects.toThrow(NotAsExpected);
    expect(await readFile(join(screens, '.gitignore'), 'utf8')).toBe('node_modules\n');
    expect((await readdir(screens)).filter((name) => name.endsWith('.png'))).toHaveLength(1);
  });

  it.each<[work: (paybox: Paybox) => Promise<unknown>, message: RegExp]>([
    [
      () => openPaybox({ callbackURL: 'x' } as never),
      /^openPaybox: unknown key callbackURL; options are callbackUrl, boxes/,
    ],
    [() => openPaybox({ callbackUrl: 'shop' }), /^openPaybox: callbackUrl: expected an address, as http/],
    [() => openPaybox({ boxes: 1_000 }), /^openPaybox: boxes: /],
    [() => openPaybox({ transport: 'pigeon' }), /transport pigeon/],
    [(it) => it.expect({ stat: 'paid' } as never), /^step: expect: unknown key stat/],
    [(it) => it.expect({ state: 'idle' }, { box: 2 }), /^step: box: there is no box 2: the rig has 1/],
    [(it) => it.fault('link-cutt' as never), /^step: fault: expected one of/],
    [(it) => it.skip('5 moons'), /^step: wait: expected a time with its unit/],
    [(it) => it.screen(3), /has no box 3/],
    [(it) => it.expect(null as never), /expect: expected conditions/],
    [(it) => it.skip(5 as never), /skip: expected a time/],
    [(it) => it.pay({ amount: 5n as never, content: 'DH1' }), /step: not a value of JSON/],
  ])('names what is wrong in one line %#', async (work, message) => {
    const paybox = await opened();
    const error = await thrownBy(work(paybox));
    expect(error).toBeInstanceOf(PayboxRefusal);
    expect((error as Error).message).toMatch(message);
  });

  it('says that the program is gone, and starts another', async () => {
    const paybox = await opened();
    const [pid = 0] = await childrenOf(process.pid);
    const waiting = thrownBy(paybox.expect({ state: 'paid', within: '1min' }));
    process.kill(pid, 'SIGKILL');
    expect(await waiting).toMatchObject({
      name: 'PayboxRefusal',
      message: expect.stringMatching(/^paybox ended with SIGKILL/),
    });
    expect(await thrownBy(paybox.status())).toBeInstanceOf(PayboxRefusal);
    await paybox.close();
    await (await opened()).expect({ state: 'idle' });
  });

  it.each<[how: string, more: string, signal: 'SIGKILL' | undefined]>([
    ['is killed', 'await new Promise((done) => setTimeout(done, 60_000));', 'SIGKILL'],
    ['ends without close', '', undefined],
  ])('leaves no process when the test %s', async (_how, more, signal) => {
    const folder = await temporaryFolder();
    const file = join(folder, 'shop.mjs');
    const code = [
      `import { openPaybox } from ${JSON.stringify(LIBRARY)};`,
      'const paybox = await openPaybox();',
      'await paybox.push({ amount: 1, content: "A" });',
      `console.log('children ' + (await import('node:fs')).readFileSync('/proc/self/task/' + process.pid + '/children'));`,
      more,
    ];
    await writeFile(file, code.join('\n'));
    await mkdir(join(folder, 'tmp'));
    const program = run(process.execPath, [file], { TMPDIR: join(folder, 'tmp') });
    const listed = await eventually('it is open', () => /children (\d+)/.exec(program.output())?.[1]);
    const pid = Number(listed);
    if (signal !== undefined) program.child.kill(signal);
    await program.ended;
    await eventually('its program has ended', () => !isThere(pid));
    expect(await readdir(join(folder, 'tmp'))).toEqual([]);
  });
});
