/* The QR payload, written from PROTOCOL.md (clauses QRP) alone. */

export interface Payee {
  bin: string;
  account: string;
  isCard: boolean;
  amount: number | undefined;
}

const AID = 'A000000727';
const SHORT = 5;

/** Throws an error for a payload that a box must refuse. */
export function payeeOf(qr: string): Payee {
  need(/^[\x20-\x7e]{1,512}$/.test(qr), 'printable ASCII');
  const tags = tagsOf(qr);
  const order = [...tags.keys()];
  need(order[0] === '00' && order.at(-1) === '63', '00 first, 63 last');
  need(crcOf(qr.slice(0, -4)) === qr.slice(-4), 'crc');
  need(tags.get('00') === '01' && /^1[12]$/.test(tags.get('01') ?? ''), '00 and 01');
  need(tags.get('53') === '704' && tags.get('58') === 'VN', 'currency and country');
  need(/^\d{4}$/.test(tags.get('52') ?? '0000'), '52');
  need(/^[1-9]\d{0,12}$/.test(tags.get('54') ?? '1'), '54');
  need((tags.get('59') ?? '').length <= 25 && (tags.get('60') ?? '').length <= 15, 'names');
  const merchant = tagsOf(tags.get('38') ?? '');
  need(
    [...merchant.keys()].every((tag) => ['00', '01', '02'].includes(tag)),
    'tags in 38',
  );
  const service = merchant.get('02') ?? '';
  need(merchant.get('00') === AID && ['QRIBFTTA', 'QRIBFTTC'].includes(service), '38');
  const beneficiary = tagsOf(merchant.get('01') ?? '');
  const [bin = '', account = ''] = [beneficiary.get('00'), beneficiary.get('01')];
  need(/^\d{6}$/.test(bin) && /^[A-Za-z0-9]{1,19}$/.test(account) && beneficiary.size === 2, 'beneficiary');
  for (const [tag, value] of tags) checkOther(Number(tag), value, account);
  const amount = tags.get('54');
  return { bin, account, isCard: service === 'QRIBFTTC', amount: amount === undefined ? undefined : Number(amount) };
}

/** No second payee, whichever wallet reads it (QRP-7). */
function checkOther(tag: number, value: string, account: string): void {
  need(tag === 38 || tag < 2 || tag > 51, 'a second merchant account');
  need(tag < 55 || tag > 57, 'a tip or a fee');
  if (tag >= 64) need(value.length <= SHORT || isAccount(value, account), 'a long value');
  if (tag !== 62) return;
  for (const [inner, text] of tagsOf(value)) {
    if (['01', '05', '07', '08'].includes(inner)) need(text.length <= 25, 'a long text in 62');
    const mayName = inner === '02' || inner === '05' || Number(inner) >= 10;
    const isShort = text.replaceAll(/\D/g, '').length <= SHORT && !text.startsWith('MOMOW2W');
    need(!mayName || isShort || isAccount(text, account), 'a payee in 62');
  }
}

function isAccount(value: string, account: string): boolean {
  return account.endsWith(value) && value.length >= account.length - 4;
}

/** Each tag once, none empty. */
function tagsOf(text: string): Map<string, string> {
  const tags = new Map<string, string>();
  for (let at = 0; at < text.length; ) {
    const [, tag = '', length = ''] = /^(\d\d)(\d\d)/.exec(text.slice(at)) ?? [];
    const value = text.slice(at + 4, at + 4 + Number(length));
    need(value.length > 0 && value.length === Number(length) && !tags.has(tag), `tag ${tag}`);
    tags.set(tag, value);
    at += 4 + value.length;
  }
  return tags;
}

function crcOf(text: string): string {
  let crc = 0xffff;
  for (const char of text) {
    crc ^= char.charCodeAt(0) << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021) & 0xffff;
  }
  return crc.toString(16).toUpperCase().padStart(4, '0');
}

function need(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`the QR is wrong: ${what}`);
}
