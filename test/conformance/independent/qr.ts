import type { Fault } from './faults.ts';

const BINS = new Map(
  Object.entries({
    ...{ MB: '970422', VCB: '970436', BIDV: '970418', ICB: '970415', VBA: '970405', TCB: '970407' },
    ...{ VPB: '970432', ACB: '970416', TPB: '970423', STB: '970403', ABB: '970425' },
  }),
);

/** The BIN of a bank, by its short name or its BIN (GEN-3). */
export function binOf(bankCode: string): string | undefined {
  return BINS.get(bankCode) ?? [...BINS.values()].find((bin) => bin === bankCode);
}

/** CRC-16/CCITT-FALSE. */
function crcOf(text: string): string {
  let crc = 0xffff;
  for (const byte of Buffer.from(text, 'latin1')) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
  }
  return crc.toString(16).toUpperCase().padStart(4, '0');
}

const tag = (id: string, value: string) => `${id}${String(value.length).padStart(2, '0')}${value}`;

export interface QrFacts {
  bin: string;
  account: string;
  /** Without one the QR is static. */
  amount: number | undefined;
  content: string;
}

/** Writes a QR (QRP-1 to QRP-3, GEN-5). */
export function writeQr({ bin, account, amount, content }: QrFacts, faults: ReadonlySet<Fault>): string {
  const payee = faults.has('a QR pays to another account') ? `${account.slice(0, -1)}Z` : account;
  const asked = faults.has('a QR asks for ten times the amount') ? (amount ?? 0) * 10 : amount;
  const printed =
    amount === undefined
      ? faults.has('a static QR has an amount') && '10000'
      : !faults.has('a QR has no amount') && String(asked);
  const said = faults.has('a QR has another content') ? content.replace(/.$/, 'Z') : content;
  const purpose = faults.has('a QR has a prefix before its content') ? `VQR ${said}`.slice(0, 25) : said;
  const isDynamic = amount !== undefined && !faults.has('a dynamic QR says that it is static');
  const open = [
    faults.has('a QR begins with its second tag') ? '' : tag('00', '01'),
    tag('01', isDynamic ? '12' : '11'),
    tag('38', tag('00', 'A000000727') + tag('01', tag('00', bin) + tag('01', payee)) + tag('02', 'QRIBFTTA')),
    tag('53', faults.has('a QR is in dollars') ? '840' : '704'),
    printed ? tag('54', printed) : '',
    tag('58', 'VN'),
    purpose === '' ? '' : tag('62', tag('08', purpose)),
    '6304',
  ].join('');
  if (faults.has('the CRC of a QR is wrong')) return `${open}${crcOf(`${open} `)}`;
  if (faults.has('the CRC of a static QR is wrong') && !isDynamic) return `${open}${crcOf(`${open} `)}`;
  return `${open}${crcOf(open)}`;
}

/** The tags of a level, in their order; undefined for what is doubled, empty, cut off or no tag. */
function tagsOf(text: string): Map<string, string> | undefined {
  const tags = new Map<string, string>();
  for (let at = 0; at < text.length; ) {
    const id = text.slice(at, at + 2);
    const length = text.slice(at + 2, at + 4);
    const value = text.slice(at + 4, at + 4 + Number(length));
    if (!/^\d\d$/.test(id) || !/^\d\d$/.test(length) || value === '' || value.length !== Number(length)) return;
    if (tags.has(id)) return;
    tags.set(id, value);
    at += 4 + value.length;
  }
  return tags;
}

export interface ReadQr {
  bin: string;
  account: string;
  amount: number | undefined;
  isCard: boolean;
}

const KNOWN: readonly (readonly [id: string, value: RegExp, isNeeded: boolean])[] = [
  ['00', /^01$/, true],
  ['01', /^1[12]$/, true],
  ['52', /^\d{4}$/, false],
  ['53', /^704$/, true],
  ['54', /^[1-9]\d{0,12}$/, false],
  ['58', /^VN$/, true],
  ['59', /^.{1,25}$/, false],
  ['60', /^.{1,15}$/, false],
  ['61', /^.{1,10}$/, false],
];

/** What a QR asks for; undefined for an invalid one (QRP-1 to QRP-5, QRP-7). */
export function readQr(text: string, faults: ReadonlySet<Fault>): ReadQr | undefined {
  if (!/^[ -~]{1,512}$/.test(text)) return;
  const end = faults.has('what stands after a CRC is ignored') ? text.lastIndexOf('6304') + 8 : text.length;
  const open = text.slice(0, end - 4);
  const tags = tagsOf(text.slice(0, end));
  if (tags === undefined || [...tags.keys()][0] !== '00' || [...tags.keys()].at(-1) !== '63') return;
  if (tags.get('63') !== crcOf(open) && !faults.has('the CRC of a pushed QR is not looked at')) return;
  const wrong = ([id, value, isNeeded]: (typeof KNOWN)[number]) => {
    const given = tags.get(id);
    return given === undefined ? isNeeded : !value.test(given);
  };
  if (KNOWN.some(wrong)) return;
  const payee = payeeOf(tags.get('38') ?? '');
  if (payee === undefined) return;
  if (!faults.has('a pushed QR may have a second payee') && !hasOnePayee(tags, payee.account)) return;
  const amount = tags.get('54');
  return { ...payee, amount: amount === undefined ? undefined : Number(amount) };
}

function payeeOf(template: string): Pick<ReadQr, 'bin' | 'account' | 'isCard'> | undefined {
  const tags = tagsOf(template);
  const inner = tagsOf(tags?.get('01') ?? '');
  const [bin, account] = [inner?.get('00') ?? '', inner?.get('01') ?? ''];
  const service = tags?.get('02') ?? '';
  const isRight =
    tags?.size === 3 &&
    tags.get('00') === 'A000000727' &&
    inner?.size === 2 &&
    /^\d{6}$/.test(bin) &&
    /^[A-Za-z0-9]{1,19}$/.test(account) &&
    /^QRIBFTT[AC]$/.test(service);
  return isRight ? { bin, account, isCard: service === 'QRIBFTTC' } : undefined;
}

/** Whether no other wallet finds another payee, a tip or a fee (QRP-7). */
function hasOnePayee(tags: ReadonlyMap<string, string>, account: string): boolean {
  const repeats = (value: string) =>
    [0, 1, 2, 3, 4].some((cut) => value === account.slice(cut) && value !== '') ||
    (value.startsWith('MOMOW2W') && account.startsWith('99MM') && value.slice(7) === account.slice(10));
  const more = tagsOf(tags.get('62') ?? '');
  if (more === undefined) return false;
  for (const [id, value] of tags) {
    const number = Number(id);
    if (number >= 2 && number <= 51 && number !== 38) return false;
    if (number >= 55 && number <= 57) return false;
    if (number >= 64 && value.length > 5 && !repeats(value)) return false;
  }
  for (const [id, value] of more) {
    const number = Number(id);
    if (['01', '05', '07', '08'].includes(id) && value.length > 25) return false;
    const isPlace = number === 2 || number === 5 || number >= 10;
    const isLong = value.replace(/\D/g, '').length > 5 || value.startsWith('MOMOW2W');
    if (isPlace && isLong && !repeats(value)) return false;
  }
  return true;
}
