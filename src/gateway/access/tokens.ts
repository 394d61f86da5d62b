import { createSecretKey } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { TOKEN_SECONDS } from '../../protocol/http-api.ts';
import type { Store } from '../store/store.ts';

const ISSUER = 'paybox-gateway';
const ALGORITHM = 'HS256';
const SECRET_BYTES = 32;

/** Issues and reads the bearer tokens of partners. */
export interface Tokens {
  issue(partner: string): Promise<string>;
  /** Returns the partner of a token that this gateway has signed and that is still valid. */
  read(token: string): Promise<string | undefined>;
}

/**
 * Opens the tokens (RFC 7519, HS256). Their secret is in the store, so they stay valid after a restart and at
 * other gateways of the database, which share `clock`. The first call loads `jose`: a gateway that no partner calls does not load it.
 */
export async function createTokens(store: Store, clock: { wallMs: Clock['wallMs'] }, random: Random): Promise<Tokens> {
  const secret = await store.setting('token-secret', () => random.secret(SECRET_BYTES));
  const key = createSecretKey(secret, 'base64url');
  return {
    issue: async (partner) => {
      const { SignJWT } = await import('jose/jwt/sign');
      // The time is rounded up, so that a token never expires too early.
      const iat = Math.ceil(clock.wallMs() / 1000);
      const claims = { iss: ISSUER, sub: partner, jti: random.uuid(), iat, exp: iat + TOKEN_SECONDS };
      return new SignJWT(claims).setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' }).sign(key);
    },
    read: async (token) => {
      const { jwtVerify } = await import('jose/jwt/verify');
      const currentDate = new Date(clock.wallMs());
      const rules = { algorithms: [ALGORITHM], issuer: ISSUER, requiredClaims: ['sub', 'exp'], currentDate };
      return jwtVerify(token, key, rules).then(
        ({ payload }) => payload.sub,
        () => undefined,
      );
    },
  };
}
