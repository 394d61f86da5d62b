import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import {
  amountOfText,
  amountText,
  boxCodeIn,
  boxIdOf,
  boxIdTopic,
  DIALECT_RIGHTS,
  decodeEnrolAnswer,
  decodeEnrolRequest,
  decodeNotice,
  enrolAnswerTopics,
  isAmong,
  macAddress,
  macCheckSum,
  macDigits,
  macWithColons,
  packetBytes,
  paidTopic,
  parseHostTopic,
} from '../../src/protocol/dialect.ts';

const MAC = '02:00:5E:10:00:01';
const json = (value: unknown) => JSON.stringify(value);

it.each(['02:00:5e:10:00:01', '02.00.5E.10.00.01', '0200.5e10.0001', '02-00-5E-10-00-01', '02005E100001'])(
  'VQD-2 the MAC address %s has one form',
  (text) => {
    expect(macAddress.safeParse(text).success).toBe(true);
    expect(macDigits(text)).toBe('02005E100001');
    expect(macWithColons(text)).toBe(MAC);
  },
);

it.each(['', '02:00:5E:10:00', '02:00:5E:10:00:0G', '+/#', '02:00:5E:10:00:01/x', '02::00:5E:10:00:01'])(
  'VQD-2 %j is no MAC address',
  (text) => {
    expect(macAddress.safeParse(text).success).toBe(false);
  },
);

it('VQD-2 the answer to an enrolment goes to both spellings, once where they are equal', () => {
  expect(enrolAnswerTopics(MAC)).toEqual([
    '/vqr/handle-box/response/02:00:5E:10:00:01',
    '/vqr/handle-box/response/02005E100001',
  ]);
  expect(enrolAnswerTopics('02005e100001')).toEqual(['/vqr/handle-box/response/02005e100001']);
});

it('VQD-2 the checkSum is the MD5 of the MAC address as sent and the salt', () => {
  const md5 = (text: string) => createHash('md5').update(text).digest('hex');
  expect(macCheckSum(MAC, 'sample-salt')).toBe(md5(`${MAC}sample-salt`));
  expect(macCheckSum(MAC.toLowerCase(), 'sample-salt')).not.toBe(macCheckSum(MAC, 'sample-salt'));
});

it('VQD-3 a boxId holds code and salt, without padding', () => {
  const boxId = boxIdOf('VVB000001', 'sample-salt?');
  expect(boxId).toBe('VlZCMDAwMDAxc2FtcGxlLXNhbHQ_');
  expect(boxIdTopic(boxId)).toBe(`vietqr/boxId/${boxId}`);
  expect(boxCodeIn(boxId)).toBe('VVB000001');
  expect(boxCodeIn(boxIdOf('VVB000001', ''))).toBe('VVB000001');
  expect(boxCodeIn('bm90IGEgYm94IGNvZGU')).toBeUndefined();
});

it.each([
  [1, '1'],
  [999, '999'],
  [1_000, '1,000'],
  [50_000, '50,000'],
  [9_999_999_999_999, '9,999,999,999,999'],
])('VQD-4 the amount %d is written %s', (amount, text) => {
  expect(amountText(amount)).toBe(text);
  expect(amountOfText(text)).toBe(amount);
});

it.each([
  ['50000', 50_000],
  ['50.000', 50_000],
  ['1.250.000', 1_250_000],
  ['25000.0', 25_000],
  ['50,000.00', 50_000],
  ['+50,000 VND', 50_000],
  [' 50.000đ ', 50_000],
])('VQD-4 the amount text %j is read as %d', (text, amount) => {
  expect(amountOfText(text)).toBe(amount);
});

it.each(['', '0', '-50,000', '50,00', '5,0000', '50.5', '1,250.000', 'abc', '99,999,999,999,999', '5e3', '0x10'])(
  'VQD-4 %j is no amount',
  (text) => {
    expect(amountOfText(text)).toBeUndefined();
  },
);

it('VQD-4 decodes the five messages, drops unknown fields and takes null for an absent text', () => {
  const decoded = [
    { notificationType: 'N17', amount: '50,000', qrCode: '000201', transactionReceiveId: 'x' },
    { notificationType: 'N05', amount: 50_000, message: null },
    { notificationType: 'N12' },
    { notificationType: 'N00', more: {} },
    { notificationType: 'N16', bankAccount: '0123456789', qrCode: '000201', userBankName: 'NGUYEN VAN A' },
  ].map((it) => decodeNotice(Buffer.from(json(it))));
  expect(decoded).toEqual(
    [
      { notificationType: 'N17', amount: 50_000, qrCode: '000201' },
      { notificationType: 'N05', amount: 50_000, message: '' },
      { notificationType: 'N12', transactionReceiveId: '' },
      { notificationType: 'N00' },
      {
        notificationType: 'N16',
        bankAccount: '0123456789',
        bankShortName: '',
        userBankName: 'NGUYEN VAN A',
        terminalCode: '',
        terminalName: '',
        qrCode: '000201',
        bankCode: '',
        imgBank: '',
        homePage: '',
      },
    ].map((value) => ({ ok: true, value })),
  );
});

it.each([
  ['no JSON', '{'],
  ['a bare object, as the WebSocket sends it', '{}'],
  ['another type', json({ notificationType: 'N07' })],
  ['no QR', json({ notificationType: 'N17', amount: '50,000' })],
  ['no amount', json({ notificationType: 'N17', amount: 'free', qrCode: '000201' })],
])('VQD-4 refuses %s with a reason', (_what, text) => {
  expect(decodeNotice(text)).toEqual({ ok: false, reason: expect.stringMatching(/./) });
});

it('VQD-2 decodes the enrolment of every firmware, and its answer', () => {
  const asked = { macAddr: MAC, checkSum: macCheckSum(MAC, 'sample-salt') };
  expect(decodeEnrolRequest(json({ ...asked, localIP: '192.0.2.7' }))).toEqual({ ok: true, value: asked });
  expect(decodeEnrolRequest(json({ ...asked, macAddr: '#' })).ok).toBe(false);
  const answer = { qrCertificate: 'sample', boxId: 'VlZC' };
  expect(decodeEnrolAnswer(json(answer))).toEqual({ ok: true, value: answer });
  expect(decodeEnrolAnswer(json({ ...answer, boxId: 'a/b' })).ok).toBe(false);
});

it.each([
  ['vietqr/request/VVB000001', 'generate', 'VVB000001', ['vietqr/response/S1']],
  ['vietqr/requestQR/S9', 'generate', 'S9', ['vietqr/responseQR/S1']],
  ['vietqr/request-status/S9', 'status', 'S9', ['vietqr/response-status/S1']],
  [
    'vietqr/test/transaction-callback',
    'testCallback',
    '',
    ['vietqr/response/transaction-callback', 'vietqr/transaction-callback/response'],
  ],
])('VQD-7 %s is a call of a host', (topic, call, terminalCode, answers) => {
  const parsed = parseHostTopic(topic);
  expect(parsed).toMatchObject({ call, terminalCode });
  expect(parsed?.answersFor('S1')).toEqual(answers);
});

it.each(['vietqr/request', 'vietqr/request/', 'vietqr/request/a/b', 'vietqr/response/S1', 'vietqr/cash/S1', 'x'])(
  'VQD-7 %s is no call of a host',
  (topic) => {
    expect(parseHostTopic(topic)).toBeUndefined();
  },
);

it('VQD-7 hosts hear of payments by terminal', () => {
  expect(paidTopic('S1')).toBe('vietqr/bdsd/S1');
});

it('VQD-4 counts the bytes of the packet that a box receives', () => {
  // Type and length byte, length of the topic, topic, packet id, payload.
  expect(packetBytes('a', 'ố')).toBe(2 + 2 + 1 + 2 + 3);
  expect(packetBytes('a', 'x'.repeat(200))).toBe(3 + 2 + 1 + 2 + 200);
});

it('VQD-1 a right for one level covers one topic name, no wildcard and no further level', () => {
  const { read } = DIALECT_RIGHTS;
  expect(isAmong(read, 'vietqr/boxId/abc')).toBe(true);
  for (const topic of ['vietqr/boxId/+', 'vietqr/boxId/#', 'vietqr/boxId/', 'vietqr/boxId/a/b', 'vietqr/boxId']) {
    expect([topic, isAmong(read, topic)]).toEqual([topic, false]);
  }
});
