import type { LoginAttempt } from '../../src/gateway/common/logins.ts';

export const RIGHT: LoginAttempt = { kind: 'partner', username: 'demo', secret: 'right', expected: 'right' };
export const WRONG: LoginAttempt = { ...RIGHT, secret: 'wrong' };
