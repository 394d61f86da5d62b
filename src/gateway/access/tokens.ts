import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { TOKEN_SECONDS } from '../../protocol/http-api.ts';
import type { Store } from '../../store/store.ts';

const ISSUER = 'paybox-gateway';
const SECRET_BYTES = 32;
/** The only header that is read: whoever sends a token cannot choose the algorithm. */
const HEADER = base64url(JSON.stringify({ alg: 'HS256', typ: 'JWT' }));

const claims = z.object({ iss: z.literal(ISSUER), sub: z.string(), exp: z.int() });

/** Issues and reads the bearer tokens of partners. */
export interface Tokens {
  issue(partner: string): string;
  /** The partner of a token of this gateway that is still valid. */
  read(token: string): string | undefined;
}

/**
 * Tokens (RFC 7519, HS256) signed with a secret in the store, so that they are valid after a restart. `clock` is one that all
 * members of a cluster share.
 */
export async function createTokens(store: Store, clock: Pick<Clock, 'wallMs'>, random: Random): Promise<Tokens> {
  const secret = Buffer.from(await store.ofAll.setting('token-secret', () => random.secret(SECRET_BYTES)), 'base64url');
  const signatureOf = (signed: string) => createHmac('sha256', secret).update(signed, 'utf8').digest('base64url');
  return {
    issue: (partner) => {
      // Rounded up, so that a token never expires too early.
      const iat = Math.ceil(clock.wallMs() / 1000);
      const told = { iss: ISSUER, sub: partner, jti: random.uuid(), iat, exp: iat + TOKEN_SECONDS };
      const signed = `${HEADER}.${base64url(JSON.stringify(told))}`;
      return `${signed}.${signatureOf(signed)}`;
    },
    read: (token) => {
      const [header, payload = '', signature = '', ...more] = token.split('.');
      if (header !== HEADER || more.length > 0) return undefined;
      if (!equalSecrets(signature, signatureOf(`${header}.${payload}`))) return undefined;
      // It is what this gateway has signed.
      const told = claims.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')));
      return told.success && told.data.exp > Math.floor(clock.wallMs() / 1000) ? told.data.sub : undefined;
    },
  };
}

function base64url(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64url');
}
