import { connectAsync } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { ENROL_TOPIC, enrolAnswerTopics, macCheckSum } from '../../../src/protocol/dialect.ts';
import { decodeVietQr } from '../../../src/protocol/vietqr.ts';
import type { FirmwareBox } from '../../support/firmware-box.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';
import { askFaults } from '../faults.ts';
import { ACCOUNT, partnerServer, processed, qrFor, type TestGateway } from '../harness.ts';
import { dialectGateway, firmware, LOGIN, TO_IT, VIETQR, VIETQR_BOX } from './support.ts';

const code = VIETQR_BOX.terminalCode;
const second = { orderId: 'DH002', content: 'DH002', qrCode: qrFor({ purpose: 'DH002' }) };

interface BoxView {
  online: boolean;
  dialect: string;
  confirms: boolean;
}
interface OrderView {
  orderId: string;
  status: string;
  unconfirmed: boolean;
  pushes: { status: string; confirmedAt: string | null }[];
}

const boxView = (gateway: TestGateway) => gateway.mock<BoxView>(`/boxes/${code}`);
const orders = async (gateway: TestGateway) =>
  Object.fromEntries((await gateway.mock<OrderView[]>('/orders')).map((it) => [it.orderId, it]));
const statusOf = async (gateway: TestGateway, orderId: string) => (await orders(gateway))[orderId]?.status;
const noticesOf = async (gateway: TestGateway) =>
  (await gateway.mock<{ boxes: Record<string, unknown>[] }[]>('/payments')).flatMap((it) =>
    it.boxes.filter(({ terminalCode }) => terminalCode === code),
  );

async function online(gateway: TestGateway, box: FirmwareBox): Promise<void> {
  await eventually(
    'the box is online',
    async () => (await boxView(gateway)).online && box.screen.kind !== 'certificate',
  );
}

async function shop() {
  const partner = await partnerServer(processed);
  const dataDir = await temporaryFolder();
  const options = { callback: { url: partner.url }, dataDir };
  return { options, gateway: await dialectGateway(options) };
}

async function shopWithBox() {
  const { options, gateway } = await shop();
  const box = firmware(gateway);
  await online(gateway, box);
  return { options, gateway, box };
}

/** A bare client with the shared login. */
async function bareClient(gateway: TestGateway) {
  const client = await connectAsync(gateway.mqttUrl ?? '', LOGIN, false);
  onTestFinished(() => client.endAsync(true));
  client.on('error', () => undefined);
  const received: string[] = [];
  client.on('message', (topic) => received.push(topic));
  return { client, received };
}

it('VQD-2 VQD-3 VQD-4 a box enrols, is greeted with its account, shows the pushed QR and says the payment once', async () => {
  const { gateway, box } = await shopWithBox();
  expect(decodeVietQr(box.screen.qrCode)).toMatchObject({
    ok: true,
    value: { account: ACCOUNT.bankAccount, bin: '970422', initiation: 'static', amount: undefined },
  });
  expect(await gateway.sendQr(TO_IT)).toMatchObject({ status: 200, body: { status: 'SUCCESS', message: '' } });
  await eventually('the QR', () => box.screen.kind === 'dynamic');
  expect(box.screen).toMatchObject({ qrCode: qrFor(), amount: 50_000 });
  expect((await gateway.testCallback()).status).toBe(200);
  await eventually('the payment', () => box.spoken.length > 0);
  const said = /^Đã nhận 50000 đồng, nội dung DH001, lúc \d+ giờ \d+ phút \d+ giây$/;
  expect(box.spoken).toEqual([expect.stringMatching(said)]);
  expect(box.types()).toEqual(['N16', 'N17', 'N05']);
  expect(box.dropped).toEqual([]);
  const wire = await gateway.mock<{ entries: { kind: string; box?: string; body?: { type: string } }[] }>('/wire');
  const messages = wire.entries.filter((it) => it.kind === 'message' && it.box === code).map((it) => it.body?.type);
  expect(messages).toEqual(['enrol', 'N16', 'N17', 'N05']);
  expect(JSON.stringify([wire, gateway.log])).not.toContain(VIETQR.checkSumSalt);
});

it.each([
  ['upper case with colons', '02:00:5E:10:00:01', 'as-sent'],
  ['upper case, older answer', '02:00:5E:10:00:01', 'plain'],
  ['dotted', '02.00.5E.10.00.01', 'as-sent'],
  ['small letters without separators', '02005e100001', 'as-sent'],
] as const)('VQD-2 answers a MAC address in %s', async (_what, macAddr, answerSpelling) => {
  const gateway = await dialectGateway();
  await online(gateway, firmware(gateway, { macAddr, answerSpelling }));
});

it('VQD-2 gives no answer to a wrong checkSum, an unknown MAC address or anything else', async () => {
  const gateway = await dialectGateway();
  const { client, received } = await bareClient(gateway);
  const known = VIETQR_BOX.macAddr;
  const unknown = '02:00:5E:10:00:99';
  await client.subscribeAsync([...enrolAnswerTopics(known), ...enrolAnswerTopics(unknown)], { qos: 1 });
  const requests = [
    { macAddr: known, checkSum: macCheckSum(known, 'another salt') },
    { macAddr: known, checkSum: macCheckSum(known, VIETQR.checkSumSalt).toUpperCase() },
    { macAddr: unknown, checkSum: macCheckSum(unknown, VIETQR.checkSumSalt) },
    { macAddr: '+', checkSum: macCheckSum('+', VIETQR.checkSumSalt) },
  ];
  for (const request of requests) await client.publishAsync(ENROL_TOPIC, JSON.stringify(request), { qos: 1 });
  await eventually('the refusals', () => gateway.logged('enrolment-refused').length === requests.length);
  const right = { macAddr: known, checkSum: macCheckSum(known, VIETQR.checkSumSalt) };
  await client.publishAsync(ENROL_TOPIC, JSON.stringify(right), { qos: 1 });
  await eventually('the answers to the right one', () => received.length === 2);
  expect(received.toSorted()).toEqual(enrolAnswerTopics(known).toSorted());
});

it('VQD-3 tells a box without an account that it is connected, and nothing else', async () => {
  const gateway = await dialectGateway({}, { account: undefined });
  const box = firmware(gateway);
  await eventually('the greeting', () => box.types().includes('N00'));
  expect(box.types()).toEqual(['N00']);
  expect(box.screen).toEqual({ kind: 'certificate', qrCode: `paybox:${code}` });
  expect((await gateway.sendQr(TO_IT)).body.message).toBe('E36');
});

describe('a push to a box that confirms nothing', () => {
  it('VQD-5 a push in the dialect succeeds once it is sent to the connected box, and the console and lists say no more', async () => {
    const { gateway } = await shopWithBox();
    expect(await boxView(gateway)).toMatchObject({ dialect: 'vietqr', confirms: false, online: true });
    expect(await gateway.mock('/boxes/VVB000001')).toMatchObject({ dialect: 'paybox', confirms: true });
    await gateway.sendQr(TO_IT);
    const { DH001 } = await orders(gateway);
    expect(DH001).toMatchObject({ status: 'sent', unconfirmed: true });
    expect(DH001?.pushes).toMatchObject([{ status: 'sent', confirmedAt: null }]);
  });

  it('VQD-5 SND-5 a push in the dialect is refused while nobody listens on the topic of the box', async () => {
    const gateway = await dialectGateway();
    expect((await gateway.sendQr(TO_IT)).body.message).toBe('BOX_OFFLINE');
    const { client } = await bareClient(gateway);
    const { macAddr } = VIETQR_BOX;
    const request = { macAddr, checkSum: macCheckSum(macAddr, VIETQR.checkSumSalt) };
    await client.publishAsync(ENROL_TOPIC, JSON.stringify(request), { qos: 1 });
    expect((await gateway.sendQr(TO_IT)).body.message).toBe('BOX_OFFLINE');
    const box = firmware(gateway);
    await online(gateway, box);
    await box.stop();
    await eventually('the box is gone', async () => !(await boxView(gateway)).online);
    expect((await gateway.sendQr(TO_IT)).body.message).toBe('BOX_OFFLINE');
  });

  it.each(['displayed', 'accepted'])(
    'VQD-5 a push in the dialect is refused by name when its box shall confirm that it is %s',
    async (confirm) => {
      const gateway = await dialectGateway({}, { confirm });
      const box = firmware(gateway);
      await online(gateway, box);
      expect((await gateway.sendQr(TO_IT)).body.message).toBe('BOX_CONFIRMS_NOTHING');
      expect((await gateway.sendQr({ ...TO_IT, qrCode: 'no QR' })).body.message).toBe('QR_INVALID');
      expect(box.types()).toEqual(['N16']);
      expect(await orders(gateway)).toEqual({});
    },
  );

  it('VQD-5 a push in the dialect ends on its screen when it is cancelled, and a newer one just replaces it', async () => {
    const { gateway, box } = await shopWithBox();
    await gateway.sendQr(TO_IT);
    await gateway.sendQr({ ...TO_IT, ...second });
    await eventually('replaced', async () => (await statusOf(gateway, 'DH001')) === 'replaced');
    await gateway.mock('/orders/DH001/cancel', 'POST');
    await gateway.mock('/orders/DH002/cancel', 'POST');
    await eventually('the end of the QR', () => box.types().at(-1) === 'N12');
    expect(box.types()).toEqual(['N16', 'N17', 'N17', 'N12']);
    expect(box.screen.kind).toBe('idle');
    expect(await statusOf(gateway, 'DH002')).toBe('cancelled');
  });

  it('VQD-5 a push in the dialect ends on its screen with its lifetime', async () => {
    const gateway = await dialectGateway({ config: { qrLifetimeSeconds: 1 } });
    const box = firmware(gateway);
    await online(gateway, box);
    await gateway.sendQr(TO_IT);
    await eventually('expired', async () => (await statusOf(gateway, 'DH001')) === 'expired');
    await eventually('the end of the QR', () => box.types().at(-1) === 'N12');
    expect(box.types()).toEqual(['N16', 'N17', 'N12']);
  });

  it('VQD-5 a push in the dialect is shown again to a box that comes back, for the rest of its lifetime', async () => {
    const { gateway, box } = await shopWithBox();
    await gateway.sendQr(TO_IT);
    await eventually('the QR', () => box.screen.kind === 'dynamic');
    const before = box.notices.length;
    box.cut();
    await eventually('the QR again', () => box.notices.length > before + 1 && box.screen.kind === 'dynamic');
    expect(new Set(box.types().slice(before))).toEqual(new Set(['N16', 'N17']));
    expect(await statusOf(gateway, 'DH001')).toBe('sent');
  });

  it('VQD-5 a push in the dialect is refused while firmware that came back does not subscribe', async () => {
    const { gateway } = await shop();
    const box = firmware(gateway, { resubscribes: false });
    await online(gateway, box);
    box.cut();
    await eventually('enrolled again', () => box.enrolments === 2);
    await eventually('offline', async () => !(await boxView(gateway)).online);
    expect((await gateway.sendQr(TO_IT)).body.message).toBe('BOX_OFFLINE');
  });
});

describe('a payment', () => {
  it('VQD-6 a payment received while the box is away is announced when it is back, and only once', async () => {
    const { gateway, box } = await shopWithBox();
    await box.stop();
    await eventually('offline', async () => !(await boxView(gateway)).online);
    await gateway.testCallback();
    expect(await noticesOf(gateway)).toMatchObject([{ toldAt: null, reportedAt: null, unconfirmed: null }]);
    const back = firmware(gateway);
    await eventually('the payment', () => back.spoken.length > 0);
    back.cut();
    await eventually('the third greeting', () => back.types().filter((it) => it === 'N16').length > 1);
    await online(gateway, back);
    expect(back.spoken).toHaveLength(1);
    expect(await noticesOf(gateway)).toMatchObject([
      { toldAt: expect.any(String), reportedAt: null, unconfirmed: 'sent' },
    ]);
  });

  it('VQD-8 a payment from before the box was there for the first time is never announced, also after a restart', async () => {
    const { options, gateway } = await shop();
    for (const content of ['OLD1', 'OLD2']) await gateway.testCallback({ content });
    const box = firmware(gateway);
    await online(gateway, box);
    await gateway.testCallback({ content: 'NEW1' });
    await eventually('the new payment', () => box.spoken.length > 0);
    await box.stop();
    await eventually('offline', async () => !(await boxView(gateway)).online);
    await gateway.testCallback({ content: 'NEW2' });
    await gateway.close();
    const again = await dialectGateway(options);
    const back = firmware(again);
    await eventually('the payment of its absence', () => back.spoken.length > 0);
    await again.testCallback({ content: 'NEW3' });
    await eventually('the newest payment', () => back.spoken.length > 1);
    expect([...box.spoken, ...back.spoken]).toEqual(['NEW1', 'NEW2', 'NEW3'].map((it) => expect.stringContaining(it)));
    const old = { toldAt: null, unconfirmed: 'not sent: too old' };
    expect((await noticesOf(again)).slice(-2)).toMatchObject([old, old]);
  });

  it('VQD-6 a payment in the dialect has a text of its own, also when it is equal to another', async () => {
    const { gateway, box } = await shopWithBox();
    for (let at = 0; at < 4; at += 1) await gateway.testCallback();
    await eventually('the payments', () => box.spoken.length === 4);
    expect(new Set(box.spoken).size).toBe(4);
  });

  it('VQD-6 the next run of the gateway does not resend a payment that was sent or may have been', async () => {
    const { options, gateway, box } = await shopWithBox();
    await gateway.sendQr(TO_IT);
    await gateway.testCallback();
    await eventually('the payment', () => box.spoken.length === 1);
    await box.stop();
    await gateway.close();
    const again = await dialectGateway(options);
    const later = firmware(again);
    await online(again, later);
    await again.testCallback({ content: 'LATER' });
    await eventually('the next payment', () => later.spoken.length > 0);
    expect(later.spoken).toEqual([expect.stringContaining('LATER')]);
  });

  it('VQD-6 a payment of the order on the screen is announced there, and its QR is not removed before', async () => {
    const { gateway, box } = await shopWithBox();
    await gateway.sendQr(TO_IT);
    await eventually('the QR', () => box.screen.kind === 'dynamic');
    await gateway.mock('/orders/DH001/pay', 'POST');
    await eventually('the payment', () => box.screen.kind === 'paid');
    expect(box.types()).toEqual(['N16', 'N17', 'N05']);
    expect(await statusOf(gateway, 'DH001')).toBe('paid');
  });
});

it('FLT-9 VQD-4 link-twice sends the next notice twice, and the one after it once', async () => {
  const { gateway, box } = await shopWithBox();
  const order = { fault: 'link-twice', box: code };
  expect((await askFaults(gateway, '', 'POST', order)).status).toBe(201);
  await gateway.testCallback({ content: 'FIRST' });
  await eventually('the payment twice', () => box.spoken.length === 2);
  await gateway.testCallback({ content: 'SECOND' });
  await eventually('the next payment', () => box.spoken.length === 3);
  expect(box.spoken).toEqual(['FIRST', 'FIRST', 'SECOND'].map((it) => expect.stringContaining(it)));
  expect(new Set(box.spoken).size).toBe(2);
  expect(gateway.logged('fault-triggered')).toMatchObject([{ fault: 'link-twice' }]);
});

it('VQD-5 the log names a box that enrolled and does not listen', async () => {
  const clock = new VirtualClock();
  const gateway = await dialectGateway({ clock });
  const { client } = await bareClient(gateway);
  const { macAddr } = VIETQR_BOX;
  const request = { macAddr, checkSum: macCheckSum(macAddr, VIETQR.checkSumSalt) };
  await client.publishAsync(ENROL_TOPIC, JSON.stringify(request), { qos: 1 });
  await eventually('the warning', async () => {
    await clock.advance(15_000);
    return gateway.logged('box-not-answering').length > 0;
  });
  expect(gateway.logged('box-not-answering')).toMatchObject([
    { box: code, reason: expect.stringContaining('restarted') },
  ]);
});
