import { crc16 } from '../../../../protocol/crc16.ts';
import { decodeVietQr } from '../../../../protocol/vietqr.ts';
import { Mismatch, PreconditionFailed } from '../../check.ts';
import { type Body, type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { summaryOf } from '../client.ts';
import { expectCode, forEachCase } from '../expectations.ts';
import { recordOf } from '../json.ts';
import type { Order } from '../subject.ts';
import { bodiesByType } from './generate.ts';

const CRC_CHARS = 4;
/** Sub-tag 00 of tag 38: NAPAS. */
const NAPAS_ID = '0010A000000727';
/** The published check value of CRC-16/CCITT-FALSE. */
const CRC_OF_DIGITS = ['123456789', '29B1'] as const;

/** Returns the QR of an answer. Throws PreconditionFailed without one: GEN-1 judges that. */
async function payloadOf(t: CheckContext, body: Body = t.generateBody()): Promise<string> {
  const called = await t.generate(body);
  const { qrCode } = recordOf(called.json);
  if (typeof qrCode === 'string' && qrCode !== '') return qrCode;
  throw new PreconditionFailed(`needs a QR, but the answer is ${summaryOf(called)}`);
}

function withCrc(payload: string): string {
  const open = payload.slice(0, -CRC_CHARS);
  return `${open}${crc16(open)}`;
}

/** Adds a field before the CRC. */
function added(payload: string, tag: string, value: string): string {
  const end = `6304${'0'.repeat(CRC_CHARS)}`;
  const field = `${tag}${String(value.length).padStart(2, '0')}${value}`;
  return withCrc(`${payload.slice(0, -end.length)}${field}${end}`);
}

async function expectInvalid(
  t: CheckContext,
  order: Order,
  cases: readonly (readonly [what: string, qrCode: string])[],
): Promise<void> {
  await forEachCase(cases, async ([what, qrCode]) => {
    expectCode(await t.sendPush(t.pushBody(order, qrCode)), 'QR_INVALID', `a QR ${what}`);
  });
}

/** Splits a payload into tags, lengths of two digits and values, from 00 to 63. Undefined for another form. */
function framed(payload: string): Map<string, string> | undefined {
  const values = new Map<string, string>();
  for (let at = 0; at < payload.length; ) {
    const [, tag, digits] = /^(\d\d)(\d\d)/.exec(payload.slice(at)) ?? [];
    const length = Number(digits);
    if (tag === undefined || !(length >= 1) || at + 4 + length > payload.length || values.has(tag)) return undefined;
    values.set(tag, payload.slice(at + 4, at + 4 + length));
    at += 4 + length;
  }
  return [...values.keys()][0] === '00' && [...values.keys()].at(-1) === '63' ? values : undefined;
}

export const payloadChecks: readonly ServiceCheck[] = [
  spec(
    'QRP-1',
    'the QR is a sequence of tag, length and value in printable ASCII, at most 512 characters',
    [],
    async (t) => {
      const payload = await payloadOf(t);
      if (!/^[\x20-\x7e]{1,512}$/.test(payload))
        throw new Mismatch(`not 1 to 512 printable ASCII characters: ${payload}`);
      if (framed(payload) === undefined) throw new Mismatch(`not tags of two digits, from 00 to 63: ${payload}`);
    },
  ),
  spec('QRP-2', 'the QR has the tags of NAPAS VietQR', [], async (t) => {
    // QRP-3 judges the CRC.
    const payload = withCrc(await payloadOf(t));
    const decoded = decodeVietQr(payload);
    if (!decoded.ok && framed(payload) !== undefined) throw new Mismatch(`tag ${decoded.tag}: ${decoded.reason}`);
    if (!decoded.ok) throw new PreconditionFailed('needs a QR of tags, lengths and values: QRP-1 judges that');
    // The gateway's code does not decode it, because the judge must not share its mistakes.
    const merchant = framed(payload)?.get('38') ?? '';
    if (!merchant.startsWith(NAPAS_ID)) throw new Mismatch(`tag 38: expected ${NAPAS_ID}…, is ${merchant}`);
  }),
  spec('QRP-3', 'tag 63 is the CRC of the whole QR', [], async (t) => {
    const [digits, published] = CRC_OF_DIGITS;
    if (crc16(digits) !== published) throw new Error('the bench itself makes another CRC than CRC-16/CCITT-FALSE');
    const payload = await payloadOf(t);
    const right = withCrc(payload);
    if (payload !== right) throw new Mismatch(`expected ${right.slice(-CRC_CHARS)}, is ${payload.slice(-CRC_CHARS)}`);
  }),
  spec('QRP-3', 'tag 63 is the CRC also in a static and a semi-dynamic QR', ['a box'], async (t) => {
    const bodies = bodiesByType(t);
    await forEachCase([bodies.static, bodies['semi-dynamic']], async (body) => {
      const payload = await payloadOf(t, body);
      if (payload !== withCrc(payload))
        throw new Mismatch(`the CRC of ${payload} is ${crc16(payload.slice(0, -CRC_CHARS))}`);
    });
  }),
  gap(
    'QRP-4',
    'a push of a QR with a doubled, empty or truncated tag, or with anything after its CRC, is QR_INVALID',
    ['a box'],
    (t) => {
      const order = t.newOrder();
      const qr = t.makeQr(order);
      return expectInvalid(t, order, [
        ['with a tag twice', added(qr, '58', 'VN')],
        ['with an empty tag', added(qr, '80', '')],
        ['that is cut', qr.slice(0, -10)],
        ['with a space after it', `${qr} `],
        ['that does not begin with 00', withCrc(qr.slice('000201'.length))],
        ['that is none', 'x'],
      ]);
    },
  ),
  gap('QRP-5', 'a push of a QR with one changed character is QR_INVALID', ['a box'], (t) => {
    const order = t.newOrder();
    const qr = t.makeQr(order);
    const places = [0, Math.floor(qr.length / 3), Math.floor(qr.length / 2), qr.length - 1];
    const changed = (at: number) => `${qr.slice(0, at)}${qr[at] === '7' ? '8' : '7'}${qr.slice(at + 1)}`;
    return expectInvalid(
      t,
      order,
      places.map((at) => [`with another character ${at}`, changed(at)]),
    );
  }),
  gap('QRP-7', 'a push of a QR with another payee, a tip or a fee is QR_INVALID', ['a box'], (t) => {
    const order = t.newOrder();
    const qr = t.makeQr(order);
    return expectInvalid(t, order, [
      ['with another merchant account', added(qr, '26', '0010A000000999')],
      ['with an account in an unreserved tag', added(qr, '80', '0312345678')],
      ['with an account in a language', added(qr, '64', '0002VI01100312345678')],
      ['with a tip', added(qr, '55', '01')],
      ['with a fee', added(qr, '56', '500')],
    ]);
  }),
];
