/** The result of a credit. With `account-unknown` or `too-old` it is stored without a payment. */
export type CreditResult = 'duplicate' | 'paid' | 'unmatched' | 'account-unknown' | 'too-old';
