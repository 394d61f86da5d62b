import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';
import type { Trial } from '../check-context.ts';
import type { TlsIdentities, TlsIdentity } from '../gateway/tls-listener.ts';
import { RETURN_MS } from '../subject.ts';

/** What comes after a handshake comes within this. */
const LOGIN_MS = 2_000;

/** TLS 1.1, and TLS 1.2 without authenticated encryption; the level is what OpenSSL asks for such. */
const OLD = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const;
const WEAK = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
  ciphers: 'ECDHE-ECDSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:@SECLEVEL=0',
} as const;

const WRONG: readonly [clause: string, title: string, face: (faces: TlsIdentities) => TlsIdentity][] = [
  ['TLS-1', 'that speaks TLS 1.1 at most', ({ valid: right }) => ({ ...right, limits: OLD })],
  ['TLS-1', 'that speaks no authenticated encryption', ({ valid: right }) => ({ ...right, limits: WEAK })],
  ['TLS-2', 'with a certificate of another authority', ({ otherAuthority: stranger }) => stranger],
  ['TLS-2', 'with a certificate that has expired', ({ expired }) => expired],
  ['TLS-2', 'with a certificate for another host', ({ otherHost: elsewhere }) => elsewhere],
];

/** What a box does beyond its own machine (PROTOCOL.md, clauses TLS-1 and TLS-2). */
export const TLS_CHECKS = WRONG.map(([clause, title, face]) =>
  boxCheck(clause, `says nothing to a gateway ${title}`, (trial) => judgeFace(trial, face), { needs: ['tls'] }),
);

async function judgeFace(trial: Trial, face: (faces: TlsIdentities) => TlsIdentity): Promise<void> {
  const { gateway } = trial;
  const { session } = gateway;
  const before = gateway.logins.length;
  const attempts = gateway.tlsHandshakes;
  gateway.useTlsIdentity(face);
  try {
    gateway.cut();
    await trial.given('a box that tries to come back', () =>
      trial.until('a connection', RETURN_MS, () => gateway.tlsHandshakes > attempts),
    );
    await trial.time.wait(LOGIN_MS);
    if (gateway.logins.length > before) throw new Mismatch('it logged in there');
  } finally {
    gateway.useTlsIdentity(({ valid: right }) => right);
  }
  await trial.nextSession(session);
}
