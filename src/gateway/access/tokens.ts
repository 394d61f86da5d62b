import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { TOKEN_SECONDS } from '../../protocol/http-api.ts';
import type { Store } from '../../store/store.ts';

const ISSUER = 'paybox-gateway';
const SECRET_BYTES = 32;

/** Issues and reads the bearer tokens of partners. */
export interface Tokens {
  issue(partner: string): Promise<string>;
  /** The partner of a token of this gateway that is still valid. */
  read(token: string): Promise<string | undefined>;
}

/** Tokens signed with a secret in the store, so that they are valid after a restart. */
export async function createTokens(store: Store, clock: Clock, random: Random): Promise<Tokens> {
  const secret = await store.setting('token-secret', () => random.secret(SECRET_BYTES));
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', Buffer.from(secret, 'base64url'), algorithm, false, [
    'sign',
    'verify',
  ]);
  return {
    issue: (partner) => {
      // Rounded up, so that a token never expires too early.
      const issuedAt = Math.ceil(clock.wallMs() / 1000);
      return new SignJWT()
        .setProtectedHeader({ alg: 'HS256', typ: 'JWT' })
        .setIssuer(ISSUER)
        .setSubject(partner)
        .setJti(random.uuid())
        .setIssuedAt(issuedAt)
        .setExpirationTime(issuedAt + TOKEN_SECONDS)
        .sign(key);
    },
    read: async (token) => {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: ['HS256'],
          issuer: ISSUER,
          requiredClaims: ['sub', 'exp'],
          currentDate: new Date(clock.wallMs()),
        });
        return payload.sub;
      } catch {
        return undefined;
      }
    },
  };
}
