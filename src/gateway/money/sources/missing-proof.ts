import type { HookRequest } from './source.ts';

/** The headers by which a source, or a program that tries a hook, proves its origin. */
const PROOFS = [
  'Authorization',
  'X-SePay-Signature',
  'X-SePay-Timestamp',
  'X-Casso-Signature',
  'Secure-Token',
] as const;
/** The schemes of Authorization. Any other first word may be a secret, so it is not shown. */
const SCHEMES = ['Apikey', 'Basic', 'Bearer', 'Digest', 'HMAC'] as const;

/**
 * Describes a missing proof: `X-SePay-Signature is missing: this source has auth.kind hmac; the call came with
 * Authorization: Apikey`. It names the headers that came instead, never their values.
 */
export function missingProof(
  proof: string,
  { setUp, headers }: { setUp: string } & Pick<HookRequest, 'headers'>,
): string {
  const came = PROOFS.filter((it) => headers[it.toLowerCase()] !== undefined).map((it) =>
    it === 'Authorization' ? authorizationIn(headers) : it,
  );
  return `${proof}: this source has ${setUp}; the call came with ${came.join(', ') || 'no header of a proof'}`;
}

function authorizationIn({ authorization = '' }: HookRequest['headers']): string {
  const word = authorization.trim().split(/\s/, 1)[0]?.toLowerCase();
  const scheme = SCHEMES.find((it) => it.toLowerCase() === word);
  return `Authorization${scheme === undefined ? ' of no known scheme' : `: ${scheme}`}`;
}
