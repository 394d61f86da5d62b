import { readFile, stat } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually, freePort } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { type Ready, up } from './up-fixture.ts';
import { getJson, Shop } from './walk.ts';

describe('paybox up', () => {
  it('SEL-1 paybox up sells at its box as README says, without a name of the box', async () => {
    const { at } = await up();
    const gateway = ['--gateway', new URL(at.baseUrl).origin];
    const sold = await payboxToEnd('sell', '--amount', '7000', '--no-wait', ...gateway);
    expect(sold).toEqual({ code: 0, output: expect.stringContaining('VVB000001 shows 7.000 ₫') });
    const other = await payboxToEnd('sell', '--amount', '7000', '--box', 'VVB000002', ...gateway);
    expect(other).toEqual({ code: 1, output: expect.stringContaining('in the system: VVB000001') });
  });

  it('SEL-2 SRC-24 SRC-25 paybox up sells at a live shop, and gets the money from the public service beside it', async () => {
    const { at } = await up('--live-demo', '--service-port', `${await freePort()}`);
    const shopOrigin = new URL(at.baseUrl).origin;
    const { adminTokenFile = '' } = at;
    const sell = ['sell', '--gateway', shopOrigin, '--admin-token-file', adminTokenFile, '--json'];
    expect((await fetch(`${shopOrigin}/admin/v1/sales`)).status).toBe(401);
    const sold = await payboxToEnd(...sell, '--amount', '50000', '--no-wait');
    const { id, content, qrCode } = JSON.parse(sold.output) as Record<'id' | 'content' | 'qrCode', string>;
    const screen = await fetch(`${at.boxUrl}/screen.png`);
    expect(decodeQrTwice(new Uint8Array(await screen.arrayBuffer()))).toEqual([qrCode, qrCode]);
    const service = new Shop(at.serviceUrl);
    await service.login();
    const pay = () => service.pay({ amount: 50_000, content }, at.account.bankAccount);
    const shopItself = new Shop(at.baseUrl);
    await expect(shopItself.login()).rejects.toThrow();
    expect((await pay()).body.status).toBe('SUCCESS');
    await eventually('paid', async () => (await getJson(`${at.boxUrl}/status`)).state === 'paid');
    const headers = { authorization: `Bearer ${(await readFile(adminTokenFile, 'utf8')).trim()}` };
    const sale = async () => (await fetch(`${shopOrigin}/admin/v1/sales/${id}`, { headers })).json();
    expect(await sale()).toMatchObject({ status: 'paid', paid: 50_000 });
    const words = async () => (await getJson<{ voice: { said: number } }>(`${at.boxUrl}/status`)).voice.said;
    expect(await eventually('the words', async () => (await words()) || undefined)).toBe(1);
  });

  it('AGT-8 paybox up shows the same QR again after the box was killed, and pays it', async () => {
    const first = await up();
    const shop = new Shop(first.at.baseUrl);
    await shop.login();
    const generated = await shop.generate({ amount: 70_000, content: 'DH7', orderId: 'DH7' });
    expect((await shop.sendQr(generated.body)).body).toEqual({ status: 'SUCCESS', message: '' });
    await first.running.stop('SIGKILL');

    const [http, mqtt, box] = first.ports;
    const ready = join(first.data, 'again.json');
    const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`, '--box-port', `${box}`];
    const running = paybox('up', '--data', first.data, ...ports, '--no-open', '--ready-file', ready);
    const at = await readyFile<Ready>(ready, running);
    expect(await getJson(`${at.boxUrl}/status`)).toMatchObject({ state: 'showing', order: { orderId: 'DH7' } });
    await shop.login();
    expect((await shop.pay({ amount: 70_000, content: 'DH7' })).body.status).toBe('SUCCESS');
    await eventually('paid', async () => (await getJson(`${at.boxUrl}/status`)).state === 'paid');
    expect(await running.stop('SIGTERM')).toBe(0);
  });

  it('paybox up refuses what is wrong with the documented codes, and the QR stays', async () => {
    const { at } = await up();
    const shop = new Shop(at.baseUrl);
    await shop.login();
    const { body: qr } = await shop.generate({ amount: 50_000, content: 'DH1', orderId: 'DH1' });
    const { body: other } = await shop.generate({ amount: 60_000, content: 'DH2', orderId: 'DH2' });
    expect((await shop.sendQr(qr)).body.status).toBe('SUCCESS');
    const failing = { terminalCode: '', serialNumber: '' };
    const wrong: [string, Record<string, unknown>][] = [
      ['E39', { checkSum: '0'.repeat(32) }],
      ['E46', { amount: true }],
      ['E46', failing],
      ['E35', { terminalCode: 'VVB999999', serialNumber: '' }],
      ['E35', { serialNumber: 'VVB999999' }],
      ['QR_INVALID', { qrCode: `${String(qr.qrCode).slice(0, -4)}0000` }],
      ['QR_MISMATCH', { qrCode: other.qrCode }],
    ];
    for (const [code, change] of wrong) {
      const answer = await shop.sendQr(qr, change);
      expect([code, answer]).toEqual([code, { status: 400, body: { status: 'FAILED', message: code } }]);
    }
    expect((await shop.post('/api/tid/send-qr', '{"amount":')).body.message).toBe('E46');
    expect(await shop.post('/api/tid/send-qr', {}, { authorization: 'Bearer none' })).toMatchObject({ status: 401 });
    expect((await getJson(`${at.boxUrl}/status`)).order).toMatchObject({ orderId: 'DH1' });
  });

  it('paybox up explains a refusal to who pushes from the command line', async () => {
    const { at } = await up();
    const refused = await payboxToEnd('push', '--gateway', at.baseUrl, '--amount', '50000', '--content', 'Cà phê');
    expect(refused).toEqual({ code: 1, output: expect.stringMatching(/E34, content has an accent/) });
    const push = (content: string) =>
      payboxToEnd('push', '--gateway', at.baseUrl, '--amount', '50000', '--content', content);
    const { output: help } = await payboxToEnd('push', '--help');
    expect(help.replaceAll(/\s+/g, ' ')).toMatch(/at most 25 letters .* takes at most 19 letters/);
    expect(await push('x'.repeat(26))).toEqual({ code: 1, output: expect.stringMatching(/E26/) });
    const warned = expect.stringMatching(/will not take this content: it takes 1 to 19 letters[\s\S]*SUCCESS/);
    expect(await push('x'.repeat(25))).toEqual({ code: 0, output: warned });
    const offline = await payboxToEnd(
      'push',
      '--gateway',
      at.baseUrl,
      '--amount',
      '1',
      '--content',
      'X',
      '--box',
      'VVB000009',
    );
    expect(offline).toEqual({ code: 1, output: expect.stringMatching(/FAILED: E35, no box/) });
  });

  const elsewhere = Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  it.skipIf(elsewhere === undefined)(
    'paybox up --host serves other machines, who need the token for all but the screen of a sandbox without samples',
    async () => {
      const { running, data, ports } = await up('--host', '0.0.0.0');
      const token = (await readFile(join(data, 'admin-token'), 'utf8')).trim();
      expect((await stat(join(data, 'admin-token'))).mode & 0o777).toBe(0o600);
      const [gateway, box] = [`http://${elsewhere}:${ports[0]}`, `http://${elsewhere}:${ports[2]}`];
      const statusOf = async (url: string, headers = {}) => (await fetch(url, { headers })).status;
      const bearer = { authorization: `Bearer ${token}` };
      for (const url of [`${gateway}/_mock/boxes`, `${box}/status`, `${box}/_mock/faults`, `${box}/events`]) {
        expect({ url, status: await statusOf(url) }).toEqual({ url, status: 401 });
      }
      for (const url of [`${gateway}/_mock/boxes`, `${box}/status`, `${box}/_mock/faults`]) {
        expect({ url, status: await statusOf(url, bearer) }).toEqual({ url, status: 200 });
      }
      await expect(fetch(`http://${elsewhere}:${ports[1]}`)).rejects.toThrow();
      const shop = new Shop(`${gateway}/vqr`);
      await shop.login();
      const order = await shop.generate({ amount: 50_000, content: 'DH001', orderId: 'DH001' });
      expect((await shop.sendQr(order.body)).body).toEqual({ status: 'SUCCESS', message: '' });
      expect(running.output()).not.toContain(token);
      expect(await running.stop()).toBe(0);
    },
  );
});
