import { z } from 'zod';
import { readTemplate, required, type Template, TlvRefusal } from './tlv.ts';

/* QRs of Vietnamese wallets inside the payload of NAPAS (PROTOCOL.md, clause QRP-8). */

/** Ids of wallets for one account. */
export const WALLET_IDS_MAX = 16;
/** A wallet's name for an account, as it appears in a QR: of MoMo in 62-05 or 26-02, of ZaloPay in 26-01. */
export const walletId = z.string().regex(/^[A-Za-z0-9]{4,25}$/, '4 to 25 letters or digits, as they stand in the QR');

/** The account that a QR names in tag 38. */
interface Beneficiary {
  bin: string;
  account: string;
}

/** Describes a form of account, with the fields that tag 26 may have for it besides 00. */
interface Form {
  bin: string;
  account: RegExp;
  fields: Readonly<Record<string, RegExp>>;
  /** The field by which the wallet may find a payee: the owner of the account has to have named it. */
  payee: string;
  isPayeeRequired: boolean;
}

const ZALOPAY = { bin: '970454', payee: '01', isPayeeRequired: true };
const WALLETS: ReadonlyMap<string, readonly Form[]> = new Map([
  [
    'vn.momo',
    [
      {
        bin: '971025',
        account: /^PMC\d{16}$/,
        fields: { '02': /^[A-Za-z0-9]{4,25}$/ },
        payee: '02',
        isPayeeRequired: false,
      },
    ],
  ],
  [
    'vn.zalopay',
    [
      { ...ZALOPAY, account: /^99ZP\d{5}M\d{8}$/, fields: { '01': /^[A-Za-z0-9]{15}$/, '02': /^002$/ } },
      {
        ...ZALOPAY,
        account: /^99ZP\d{5}O\d{8}$/,
        fields: { '01': /^18\d{4}$/, '02': /^001$/, '03': /^\d{16,18}$/ },
      },
    ],
  ],
]);

const VNPAY = 'A000000775';
/** Tags that EMVCo gives to card schemes, by the first tag of each. */
const SCHEMES = [
  ['02', 'Visa'],
  ['04', 'Mastercard'],
  ['06', 'a card scheme'],
  ['09', 'Discover'],
  ['11', 'American Express'],
  ['13', 'JCB'],
  ['15', 'UnionPay'],
  ['17', 'a card scheme'],
] as const;
const SCHEMES_END = '26';

/** Returns why no QR may have this further merchant account (tags 02 to 51, without 38). */
export function otherPayee(tag: string): string {
  const scheme = tag < SCHEMES_END ? SCHEMES.findLast(([first]) => first <= tag)?.[1] : undefined;
  const named = scheme === undefined ? '' : ` of ${scheme}`;
  return `another merchant account${named} is not allowed, a wallet might pay that one`;
}

/**
 * Reads tag 26 of a wallet. Nobody can compare its payee with tag 38, so only two wallets are accepted.
 *
 * @throws TlvRefusal for every other tag 26. For VNPAY, it has the name of the wallet.
 */
export function readWallet(text: string): { domain: string; forms: readonly Form[]; template: Template } {
  const template = readTemplate(text, '26');
  const domain = template.values.get('00') ?? '';
  if (domain === VNPAY) throw new TlvRefusal('26', 'VNPAY-QR is not allowed: it does not say which account it pays');
  const forms = WALLETS.get(domain);
  if (forms === undefined) throw new TlvRefusal('26', otherPayee('26'));
  return { domain, forms, template };
}

/**
 * Checks that tag 26 fits the account of tag 38, and names no other payee than the owner has.
 *
 * @throws TlvRefusal if it does not.
 */
export function checkWallet(
  { domain, forms, template }: ReturnType<typeof readWallet>,
  { bin, account }: Beneficiary,
  ids: readonly string[],
): void {
  const form = forms.find((it) => it.bin === bin && it.account.test(account));
  if (form === undefined)
    throw new TlvRefusal('26', `${domain} does not fit the account ${account} at ${bin} in tag 38`);
  for (const [tag, value] of template.values) {
    if (tag === '00') continue;
    if (form.fields[tag]?.test(value) !== true) {
      throw new TlvRefusal(`26-${tag}`, `${JSON.stringify(value)} has no place in a QR of ${domain}`);
    }
  }
  const payee = template.values.get(form.payee);
  if (payee === undefined && form.isPayeeRequired) required(template, form.payee, { pattern: /./, words: 'an id' });
  if (payee !== undefined && !ids.includes(payee)) throw new TlvRefusal(`26-${form.payee}`, unnamed(payee, account));
}

/**
 * Returns whether 62-05 is the id that the owner of a MoMo account has named. It cannot be derived from the account.
 */
export function isNamedByOwner(path: string, value: string, account: string, ids: readonly string[]): boolean {
  return isOfMomo(path, value, account) && ids.includes(value);
}

/** Explains where the owner names a 62-05 of MoMo that he has not named; undefined for any other value. */
export function unnamedOfMomo(path: string, value: string, account: string): string | undefined {
  return isOfMomo(path, value, account) ? unnamed(value, account) : undefined;
}

function isOfMomo(path: string, value: string, account: string): boolean {
  return path === '62-05' && /^PSP\d{16}$/.test(account) && /^MOMOW2W\d{7,8}$/.test(value);
}

function unnamed(id: string, account: string): string {
  return `a wallet could pay ${JSON.stringify(id)}, which is not among walletIds of ${account}`;
}
