import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { type AgentAt, type GatewayAt, startConfigured } from '../support/processes.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { getJson, PARTNER, Shop } from './walk.ts';

// A live gateway takes no identity of the demo, and no sample.
const secret = () => randomBytes(24).toString('base64url');
const ACCOUNT = { bankAccount: '0987654321', bankCode: 'MB', userBankName: 'TRAN THI B' };
const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: secret() };
const BACK_END = { username: 'back-end', password: secret() };
const AT_SERVICE = { username: 'service', password: secret() };
const ORDER = { amount: 50_000, content: 'ban 7', orderId: 'HD-7' };

/** All addresses are of this machine: the public service is a gateway in its sandbox, the shop one that is live. */
it('SRC-24 SRC-25 MAT-1 SYN-2 MOD-1 a live shop sells by the QR on its box, and the public service tells it of the money', {
  timeout: 180_000,
}, async () => {
  const backEnd = await startPartnerServer();
  const [shopPort, mqttPort] = [await freePort(), await freePort()];
  const hook = `http://127.0.0.1:${shopPort}/hooks/vietqr`;
  const shopConfig = {
    mode: 'live',
    http: { port: shopPort },
    mqtt: { embedded: { port: mqttPort } },
    dataDir: 'shop',
    contentPrefix: 'code',
    accounts: [ACCOUNT],
    boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
    partners: [{ ...BACK_END, accounts: [ACCOUNT.bankAccount], callback: { url: backEnd.url } }],
    sources: [{ kind: 'vietqr', name: 'vietqr', ...AT_SERVICE }],
  };
  const auth = { kind: 'token', url: `${hook}/api/token_generate`, ...AT_SERVICE };
  const callback = { url: `${hook}/bank/api/transaction-sync`, auth };
  const serviceConfig = {
    http: { port: await freePort() },
    mqtt: null,
    dataDir: 'service',
    accounts: [ACCOUNT],
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback }],
  };
  const agentConfig = {
    box: BOX,
    link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqttPort}` },
    displays: [{ driver: 'png', path: 'screen.png' }],
    voice: { driver: 'page' },
    http: { port: await freePort() },
    dataDir: 'box',
  };
  const shopFolder = await temporaryFolder();
  const shop = await startConfigured<GatewayAt>('gateway', shopConfig, shopFolder);
  const service = await startConfigured<GatewayAt>('gateway', serviceConfig, await temporaryFolder());
  const { boxUrl } = (await startConfigured<AgentAt>('agent', agentConfig, await temporaryFolder())).at;
  const status = () => getJson<Record<string, unknown>>(`${boxUrl}/status`);
  await eventually('idle', async () => (await status()).state === 'idle');

  // The back end has an order put on the box, and a phone reads it off the screen.
  const atShop = new Shop(shop.at.baseUrl);
  await atShop.login(BACK_END);
  const { body: made } = await atShop.generate({ ...ORDER, ...ACCOUNT });
  const covered = `${BACK_END.password}${ACCOUNT.bankAccount}${ORDER.amount}${ACCOUNT.bankCode}`;
  const checkSum = createHash('md5').update(covered).digest('hex');
  const sent = await atShop.sendQr(made, { bankAccount: ACCOUNT.bankAccount, checkSum });
  expect(sent.body).toEqual({ status: 'SUCCESS', message: '' });
  const [read = '', other] = decodeQrTwice(new Uint8Array(await (await fetch(`${boxUrl}/screen.png`)).arrayBuffer()));
  const qr = decodeVietQr(read);
  if (!qr.ok) throw new Error(qr.reason);
  expect([other, qr.value.account, qr.value.amount]).toEqual([read, ACCOUNT.bankAccount, ORDER.amount]);
  expect(qr.value.purpose).toMatch(/^PB[2-9A-HJ-NP-Z]{7} ban 7$/);

  // No test pays at a live shop.
  const payment = { amount: ORDER.amount, content: String(qr.value.purpose) };
  expect((await atShop.pay(payment, ACCOUNT.bankAccount)).body).toEqual({ status: 'FAILED', message: 'E75' });

  const atService = new Shop(service.at.baseUrl);
  await atService.login();
  expect((await atService.pay(payment, ACCOUNT.bankAccount)).body.status).toBe('SUCCESS');
  await eventually('paid', async () => (await status()).state === 'paid');
  const said = async () => Object(await status()).voice.said as number;
  await eventually('the words', async () => (await said()) > 0);
  await eventually('the back end', () => backEnd.received.length > 0);
  expect(await status()).toMatchObject({ lastPayment: { orderId: ORDER.orderId, amount: ORDER.amount } });

  // The service tells it again, as it does when an answer was lost.
  const serviceOrigin = new URL(service.at.baseUrl).origin;
  const delivered = async () =>
    (await getJson<{ id: string; status: string; attempts: object[] }[]>(`${serviceOrigin}/_mock/callbacks`))[0];
  const { id } = await eventually('its callback', async () =>
    (await delivered())?.status === 'delivered' ? delivered() : undefined,
  );
  await fetch(`${serviceOrigin}/_mock/callbacks/${id}/resend`, { method: 'POST' });
  await eventually('the second attempt', async () => (await delivered())?.attempts.length === 2);
  expect(await said()).toBe(1);
  const token = await readFile(join(shopFolder, 'shop', 'admin-token'), 'utf8');
  const listed = await fetch(`http://127.0.0.1:${shopPort}/_mock/payments`, {
    headers: { authorization: `Bearer ${token.trim()}` },
  });
  const payments = (await listed.json()) as { transactionId: string; amount: number }[];
  expect(payments).toMatchObject([{ amount: ORDER.amount, orderId: ORDER.orderId, source: 'vietqr' }]);
  expect(backEnd.received.map(({ body }) => [body.transactionid, body.orderId, body.amount])).toEqual([
    [payments[0]?.transactionId, ORDER.orderId, ORDER.amount],
  ]);
});
