import { PayboxError } from '../lib/errors.ts';
import { crc16 } from './crc16.ts';
import { LIMITS } from './fields.ts';
import { optional, pathTo, type Rule, readTemplate, required, type Template, TlvRefusal, writeField } from './tlv.ts';
import { checkWallet, isNamedByOwner, otherPayee, readWallet, unnamedOfMomo } from './wallets.ts';

/** The content of a VietQR payload (PROTOCOL.md, clause QRP-2). */
export interface VietQr {
  /** Six digits. */
  bin: string;
  /** Account or card: 1 to 19 ASCII letters or digits. */
  account: string;
  service: 'account' | 'card';
  initiation: 'static' | 'dynamic';
  /** Whole đồng, 1 to 9,999,999,999,999; `undefined` lets the payer choose. */
  amount: number | undefined;
  /** Tag 52, four digits. */
  categoryCode?: string;
  /** Tag 59, at most 25 characters. */
  merchantName?: string;
  /** Tag 60, at most 15 characters. */
  merchantCity?: string;
  /**
   * Tags 62-01, 62-05, 62-07 and 62-08, at most 25 characters each and 83 together. A purpose that is read may be
   * longer.
   */
  bill?: string;
  reference?: string;
  terminal?: string;
  purpose?: string;
}

/** The decoded payload; or the path of the wrong tag (`54`, `38-01-00`) and one line with the reason. */
export type VietQrResult = { ok: true; value: VietQr } | { ok: false; tag: string; reason: string };

const NAPAS = 'A000000727';
const SERVICES = { QRIBFTTA: 'account', QRIBFTTC: 'card' } as const;
const INITIATIONS = { '11': 'static', '12': 'dynamic' } as const;

/** More digits may be an account, a telephone number or a template: these all have more. */
const STRAY_DIGITS_MAX = 5;
/** In a wallet's tag, more characters may be an alias or an address. */
const STRAY_CHARS_MAX = 5;
/** Some banks repeat the account in a tag of their own, without its leading letters, as MS00. */
const BANK_MARK_CHARS = 4;
/** Account of a MoMo wallet at a bank. MoMo also reads the characters after its first ten from 62-05. */
const MOMO_ACCOUNT = /^99MM/;
const MOMO_REFERENCE = 'MOMOW2W';

const textUpTo = (max: number): Rule => ({ pattern: new RegExp(`^.{1,${max}}$`), words: `at most ${max} characters` });

const RULES = {
  version: { pattern: /^01$/, words: '01' },
  initiation: { pattern: /^1[12]$/, words: '11 or 12' },
  provider: { pattern: new RegExp(`^${NAPAS}$`), words: NAPAS },
  service: { pattern: /^QRIBFTT[AC]$/, words: 'QRIBFTTA or QRIBFTTC' },
  bin: { pattern: /^\d{6}$/, words: 'six digits' },
  account: {
    pattern: new RegExp(`^[A-Za-z0-9]{1,${LIMITS.bankAccountMax}}$`),
    words: `1 to ${LIMITS.bankAccountMax} letters or digits`,
  },
  category: { pattern: /^\d{4}$/, words: 'four digits' },
  currency: { pattern: /^704$/, words: '704' },
  amount: { pattern: /^[1-9]\d{0,12}$/, words: 'whole đồng, 1 to 13 digits without a leading zero' },
  country: { pattern: /^VN$/, words: 'VN' },
  merchantName: textUpTo(25),
  merchantCity: textUpTo(15),
  postalCode: textUpTo(10),
  label: textUpTo(LIMITS.contentMax),
  /** The public service prefixes the content, and so exceeds the length of a label. */
  purpose: textUpTo(LIMITS.readPurposeMax),
  crc: { pattern: /^[0-9A-F]{4}$/, words: 'four upper-case hexadecimal digits' },
  template: { pattern: /^./, words: 'a template' },
} as const satisfies Record<string, Rule>;

/**
 * Decodes and checks a VietQR payload (PROTOCOL.md, clauses QRP-1 to QRP-8). `walletIds` are those that the owner of its
 * account has named. Never throws.
 */
export function decodeVietQr(payload: string, walletIds: readonly string[] = []): VietQrResult {
  try {
    return { ok: true, value: decode(payload, walletIds) };
  } catch (error) {
    if (error instanceof TlvRefusal) return { ok: false, tag: error.tag, reason: error.message };
    throw error;
  }
}

/** EMVCo: every payload begins with its version; an account at a bank stands behind the name of NAPAS. */
const PAYABLE = new RegExp(`^000201|${NAPAS}`);

/** Returns whether a wallet could take this text for a payment, whomever it pays and however broken it is. */
export function isPayable(text: string): boolean {
  return PAYABLE.test(
    text
      .normalize('NFKC')
      .replaceAll(/[^0-9A-Za-z]/g, '')
      .toUpperCase(),
  );
}

/**
 * Returns the payload of these fields, in the order of clause QRP-2. It refuses everything that the decoder would
 * refuse (PROTOCOL.md, clause QRP-6), an empty text too: leave the key out instead.
 *
 * @throws PayboxError `QR_INVALID`, naming the wrong tag.
 */
export function encodeVietQr(fields: VietQr): string {
  try {
    refuseLongPurpose(fields);
    const payload = build(fields);
    decode(payload, []);
    return payload;
  } catch (error) {
    if (!(error instanceof TlvRefusal)) throw error;
    const fix = `correct what goes into tag ${error.tag}`;
    throw new PayboxError('QR_INVALID', error.message, { severity: 'fatal', fix, cause: error });
  }
}

function refuseLongPurpose({ purpose = '' }: VietQr): void {
  if (purpose.length <= LIMITS.contentMax) return;
  throw new TlvRefusal('62-08', `${purpose.length} characters, at most ${LIMITS.contentMax} are written`);
}

function decode(payload: string, walletIds: readonly string[]): VietQr {
  const root = readRoot(payload);
  required(root, '00', RULES.version);
  refuseOtherMoney(root);
  const inWallet = root.values.get('26');
  const wallet = inWallet === undefined ? undefined : readWallet(inWallet);
  required(root, '53', RULES.currency);
  required(root, '58', RULES.country);
  const amount = optional(root, '54', RULES.amount);
  const beneficiary = readAccount(required(root, '38', RULES.template));
  if (wallet !== undefined) checkWallet(wallet, beneficiary, walletIds);
  optional(root, '61', RULES.postalCode);
  refuseOtherPayees(root, beneficiary.account);
  return {
    initiation: INITIATIONS[required(root, '01', RULES.initiation) as keyof typeof INITIATIONS],
    ...beneficiary,
    amount: amount === undefined ? undefined : Number(amount),
    ...present({
      categoryCode: optional(root, '52', RULES.category),
      merchantName: optional(root, '59', RULES.merchantName),
      merchantCity: optional(root, '60', RULES.merchantCity),
    }),
    ...readLabels(optional(root, '62', RULES.template), beneficiary.account, walletIds),
  };
}

/** Returns the outermost fields, after frame and CRC were checked (PROTOCOL.md, clauses QRP-3 and QRP-4). */
function readRoot(payload: string): Template {
  if (payload.length > LIMITS.qrCodeMax) {
    throw new TlvRefusal('00', `the payload has ${payload.length} characters, the limit is ${LIMITS.qrCodeMax}`);
  }
  const root = readTemplate(payload, '');
  const tags = [...root.values.keys()];
  if (tags[0] !== '00') throw new TlvRefusal('00', 'the payload does not begin with it');
  const crc = required(root, '63', RULES.crc);
  if (tags.at(-1) !== '63') throw new TlvRefusal('63', `tag ${tags.at(-1)} stands after it`);
  const computed = crc16(payload.slice(0, -crc.length));
  if (crc !== computed) throw new TlvRefusal('63', `the CRC is ${crc}, the payload gives ${computed}`);
  return root;
}

/**
 * Refuses other payees and tips: a wallet may pay any account that it knows, and adds fees to the amount (PROTOCOL.md,
 * clause QRP-2).
 */
function refuseOtherMoney(root: Template): void {
  for (const tag of root.values.keys()) {
    if (tag >= '02' && tag <= '51' && tag !== '38' && tag !== '26') throw new TlvRefusal(tag, otherPayee(tag));
    if (tag >= '55' && tag <= '57') throw new TlvRefusal(tag, 'tips and fees are not allowed, they change the amount');
  }
}

/** Languages, reserved and unreserved tags: a wallet may understand them, but this program does not (clause QRP-7). */
function refuseOtherPayees(root: Template, account: string): void {
  for (const [tag, value] of root.values) {
    if (tag >= '64' && value.length > STRAY_CHARS_MAX) refuseUnlessOwn(tag, value, account);
  }
}

/** Refuses a label that may be read as another account than that in tag 38 (PROTOCOL.md, clause QRP-7). */
function refuseOtherPayee(path: string, label: string, account: string): void {
  const isOfWallet = label.toUpperCase().startsWith(MOMO_REFERENCE);
  if (isOfWallet || label.replaceAll(/\D/g, '').length > STRAY_DIGITS_MAX) refuseUnlessOwn(path, label, account);
}

function refuseUnlessOwn(path: string, value: string, account: string): void {
  const isOwn = value.length >= account.length - BANK_MARK_CHARS && account.endsWith(value);
  const isOwnWallet = MOMO_ACCOUNT.test(account) && value === `${MOMO_REFERENCE}${account.slice(10)}`;
  if (isOwn || isOwnWallet) return;
  const problem = unnamedOfMomo(path, value, account);
  throw new TlvRefusal(
    path,
    problem ?? `a wallet could read ${JSON.stringify(value)} as another account than ${account}`,
  );
}

function readAccount(text: string): Pick<VietQr, 'bin' | 'account' | 'service'> {
  const provider = readTemplate(text, '38');
  refuseOthers(provider, ['00', '01', '02']);
  required(provider, '00', RULES.provider);
  const beneficiary = readTemplate(required(provider, '01', RULES.template), '38-01');
  refuseOthers(beneficiary, ['00', '01']);
  return {
    bin: required(beneficiary, '00', RULES.bin),
    account: required(beneficiary, '01', RULES.account),
    service: SERVICES[required(provider, '02', RULES.service) as keyof typeof SERVICES],
  };
}

function readLabels(
  text: string | undefined,
  account: string,
  walletIds: readonly string[],
): Pick<VietQr, 'bill' | 'reference' | 'terminal' | 'purpose'> {
  if (text === undefined) return {};
  const labels = readTemplate(text, '62');
  for (const [tag, value] of labels.values) {
    const path = pathTo('62', tag);
    if (isNamedByOwner(path, value, account, walletIds)) continue;
    if (tag === '02' || tag === '05' || tag >= '10') refuseOtherPayee(path, value, account);
  }
  return present({
    bill: optional(labels, '01', RULES.label),
    reference: optional(labels, '05', RULES.label),
    terminal: optional(labels, '07', RULES.label),
    purpose: optional(labels, '08', RULES.purpose),
  });
}

function refuseOthers(template: Template, known: readonly string[]): void {
  for (const tag of template.values.keys()) {
    if (!known.includes(tag)) throw new TlvRefusal(pathTo(template.path, tag), `it has no place in ${template.path}`);
  }
}

function build(fields: VietQr): string {
  const keyFor = (table: object, value: string) => Object.entries(table).find((entry) => entry[1] === value)?.[0];
  const beneficiary = writeField('38-01', '00', fields.bin) + writeField('38-01', '01', fields.account);
  const provider =
    writeField('38', '00', NAPAS) +
    writeField('38', '01', beneficiary) +
    writeField('38', '02', keyFor(SERVICES, fields.service));
  const labels =
    writeField('62', '01', fields.bill) +
    writeField('62', '05', fields.reference) +
    writeField('62', '07', fields.terminal) +
    writeField('62', '08', fields.purpose);
  const covered = [
    writeField('', '00', '01'),
    writeField('', '01', keyFor(INITIATIONS, fields.initiation)),
    writeField('', '38', provider),
    writeField('', '52', fields.categoryCode),
    writeField('', '53', '704'),
    writeField('', '54', fields.amount === undefined ? undefined : String(fields.amount)),
    writeField('', '58', 'VN'),
    writeField('', '59', fields.merchantName),
    writeField('', '60', fields.merchantCity),
    writeField('', '62', labels === '' ? undefined : labels),
    '6304',
  ].join('');
  return covered + crc16(covered);
}

/** Returns the keys that have a value. */
function present<K extends string>(values: Record<K, string | undefined>): { [P in K]?: string } {
  return Object.fromEntries(Object.entries(values).filter((entry) => entry[1] !== undefined)) as { [P in K]?: string };
}
