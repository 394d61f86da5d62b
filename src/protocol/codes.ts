/**
 * The error table (PROTOCOL.md, clause ERR): all codes that the service or a box may answer, with their meaning. Codes
 * with E and three-digit ones belong to the public service; the named ones to paybox.
 */
export const CODES = {
  E02: 'amount is not a whole number of đồng from 1 to 9999999999999',
  E03: 'transType is not C or D',
  E05: 'unknown error inside the service',
  E09: 'content has the code of another order in it, or the beginning of a code at its end',
  E10: 'bankAccount is not 1 to 19 letters or digits',
  E24: 'no bank has this bankCode',
  E26: 'content is longer than 25 characters',
  E34: 'content has an accent or a special character',
  E35: 'no box in the system has this terminalCode and serialNumber',
  E36: 'the account is not in the system, or not the one linked to this box',
  E39: 'checkSum is not the MD5 of password, bankAccount, amount and bankCode',
  E46: 'the body is not JSON, is too large, or a parameter is missing or of the wrong type',
  E51: 'bankCode is not the bank of this account',
  E67: 'user not found',
  E74: 'the token or the credentials are missing, wrong or expired',
  E75: 'the test callback works in the sandbox only',
  E76: 'the partner has no transaction-sync endpoint configured',
  E77: 'the account does not belong to this partner',
  E95: 'type is neither 0 (by orderId) nor 1 (by referenceNumber)',
  E96: 'transaction not found',
  '002': 'amount is missing or not a whole number of đồng from 1 to 9999999999999',
  '003': 'transType is not C or D',
  '009': 'content is missing, longer than 19 characters, or has an accent or a special character',
  '010': 'bankAccount is missing or not 1 to 19 letters or digits',
  BOX_OFFLINE: 'the box is not connected',
  BOX_TIMEOUT: 'the box did not confirm in time; the push is withdrawn',
  BOX_CONFIRMS_NOTHING:
    'the box speaks the public dialect vietqr, which has no confirmation, and its configuration asks for one',
  QR_INVALID: 'the QR string is not a valid VietQR payload',
  QR_MISMATCH:
    'the account, bank or amount inside the QR differs from the request or from the account linked to the box',
  QR_STATIC: 'the QR has no amount, so the payer could pay any; push one of qrType 0 or 3',
  QR_NOT_MADE:
    'the provider that makes the QRs of this account made none; call again, or without it by the configuration',
  QR_ENDED: 'the provider takes no money for this QR any more; generate a new one',
  QR_TOO_DENSE: "the box's display cannot show this QR scannably",
  DISPLAY_FAULT: "the box's screen failed",
  STORAGE_FAULT: "the box's disk failed",
  FAULT_UNKNOWN:
    'the content begins with FAULT, but no content orders such a fault; X-Paybox-Reason lists the contents that do',
  REPLACED: 'a newer push took the screen before this one was on it',
  WITHDRAWN: 'the push was withdrawn or had expired before it reached the screen',
  NOT_REGISTERED: 'terminalCode, serialNumber or secret are not those of a box in the system',
  BOX_DISABLED: 'the box is disabled at the gateway; enabled there, it comes back by itself',
  ENROLMENT_CLOSED:
    'the gateway enrols no box with this terminalCode: its configuration has its secret, or closes enrolment',
  CODE_SHARED:
    'somebody else who asks to enrol under this terminalCode knows this code too, and the box shows a new one; or so many ask that nobody can tell',
  WRONG_CODE: 'no box that asks to enrol under this terminalCode shows this code',
  NOT_ALLOWED: 'the role of this token may not do that; an admin makes tokens of other roles',
  TOO_MANY_SALES: 'this token of a cashier has sold too often in a minute; Retry-After says when it may again',
  MANAGED_BY_FILE:
    "the row is the gateway's file's: change it there and start anew; with registry: store all but sources change here",
  NAME_TAKEN:
    'another row of the registry has this name or serialNumber, or had it as a token or as a source of another kind',
  ROW_CHANGED: 'somebody else changed the row since it was read',
  STILL_IN_USE: 'others are still linked to this row, or an order of the account is on a box',
  NO_BACKUP: 'the gateway makes no backup of its store now, for the reason beside the code',
  SUPERSEDED: 'another agent registered with the identity of this box',
  MOVED: 'the box has its home at another gateway, and says hello there',
  SESSION_ENDED: 'the gateway has no such session of the box any more; the box says hello anew',
} as const;

export type Code = keyof typeof CODES;

/** Returns a code with its meaning. */
export function explained(code: string): string {
  const meaning = Object.entries(CODES).find(([known]) => known === code)?.[1];
  return meaning === undefined ? code : `${code}, ${meaning}`;
}

/** Codes with which a box may refuse a push. */
export const BOX_REFUSALS = [
  'E36',
  'QR_INVALID',
  'QR_MISMATCH',
  'QR_TOO_DENSE',
  'DISPLAY_FAULT',
  'STORAGE_FAULT',
  'REPLACED',
  'WITHDRAWN',
] as const satisfies readonly Code[];

export type BoxRefusal = (typeof BOX_REFUSALS)[number];

const CHECK_REFUSALS = ['E46', 'E39', 'E77', 'E95', 'E96'] as const;

/** Codes of each call of a partner, in the order of its clause (PROTOCOL.md, clauses GEN-2, SND-2, CBK-2, CHK-2 and CAN-2). */
export const CALL_REFUSALS = {
  generate: ['E46', 'E02', 'E03', 'E10', 'E24', 'E26', 'E34', 'E09', 'E35', 'QR_NOT_MADE', 'FAULT_UNKNOWN'],
  sendQr: [
    ...['E46', 'E02', 'E39', 'E36', 'E77', 'E24', 'E51', 'E35', 'QR_INVALID', 'QR_MISMATCH', 'QR_STATIC'],
    ...['QR_ENDED', 'BOX_CONFIRMS_NOTHING', 'BOX_OFFLINE', 'BOX_TIMEOUT', 'QR_TOO_DENSE', 'DISPLAY_FAULT'],
    ...['STORAGE_FAULT', 'REPLACED', 'WITHDRAWN', 'FAULT_UNKNOWN'],
  ],
  testCallback: ['E75', 'E46', '010', '009', '002', '003', 'E77', 'E51', 'E76', 'FAULT_UNKNOWN'],
  checkOrder: CHECK_REFUSALS,
  checkEcommerceOrder: CHECK_REFUSALS,
  cancelQr: ['E46', 'E96'],
} as const satisfies Record<string, readonly Code[]>;
