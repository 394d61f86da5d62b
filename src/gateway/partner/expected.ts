import { LIMITS } from '../../protocol/fields.ts';

/** Reasons that several calls give for a refusal. They are ASCII, because they are sent in a header. */
export const EXPECTED = {
  amount: `amount: expected whole dong from 1 to ${LIMITS.amountMax}, without point, comma and leading zero`,
  transType: 'transType: expected C or D',
  bankAccount: `bankAccount: expected 1 to ${LIMITS.bankAccountMax} letters or digits`,
  bankCode: 'bankCode: expected the short name of a bank, as MB, or a BIN, as 970422',
  uncoded: 'expected no code of an order in it (PB and 7 characters, VQR and 10), nor the beginning of one at its end',
  ownAccount: 'bankAccount: expected an account of this partner',
  ownBank: 'bankCode: expected the bank of this account',
} as const;
