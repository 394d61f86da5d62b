import type { HookRequest } from './source.ts';

/** Headers by which a source, or a program that tries a hook, proves its origin, as their makers write them. */
const PROOFS = [
  'Authorization',
  'X-SePay-Signature',
  'X-SePay-Timestamp',
  'X-Casso-Signature',
  'Secure-Token',
] as const;
/** Schemes of Authorization. Any other first word may be a secret. */
const SCHEMES = ['Apikey', 'Basic', 'Bearer', 'Digest', 'HMAC'] as const;

/**
 * Why a request has no proof where its source expects one: `X-SePay-Signature is missing: this source has auth.kind hmac;
 * the call came with Authorization: Apikey`. It says which headers came instead, never what is in them.
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
