import { createHmac } from 'node:crypto';
import { bankTime } from '../support/providers.ts';
import { ACCOUNT, type Answer, type TestGateway, type TestOptions, testGateway } from './harness.ts';

export const SEPAY_KEY = 'Key-Of-SePay-At-Hooks-0123';
export const SEPAY = { kind: 'sepay', name: 'sepay', auth: { kind: 'apikey', key: SEPAY_KEY } };

/** A gateway with the source `sepay`. */
export function hookedGateway({ config, ...options }: TestOptions = {}): Promise<TestGateway> {
  return testGateway({ ...options, config: { sources: [SEPAY], ...config } });
}

/** A SePay webhook of 50,000 dong for DH001, as a bank sends that on. */
export const sepayBody = (change: Record<string, unknown> = {}) => ({
  id: 92_704,
  gateway: 'MBBank',
  transactionDate: bankTime(Date.now()),
  accountNumber: ACCOUNT.bankAccount,
  subAccount: null,
  code: null,
  content: 'MBVCB.3278907687.DH001.CT tu 9990001 NGUYEN VAN B toi 0123456789 NGUYEN VAN A tai MB',
  transferType: 'in',
  transferAmount: 50_000,
  accumulated: 0,
  referenceCode: 'FT26001000001',
  description: '',
  ...change,
});

export const byKey = { authorization: `Apikey ${SEPAY_KEY}` };

/** The headers with which SePay signs a body. */
export function signedBySepay(secret: string, body: string | Buffer, wallMs = Date.now()): Record<string, string> {
  const stamp = String(Math.floor(wallMs / 1000));
  const hex = createHmac('sha256', secret).update(`${stamp}.`).update(body).digest('hex');
  return { 'x-sepay-signature': `sha256=${hex}`, 'x-sepay-timestamp': stamp };
}

/** POSTs to a hook, JSON with the right key unless told otherwise; an empty header is left out. */
export async function tellHook(
  { origin }: { origin: string },
  body: unknown = sepayBody(),
  { name = 'sepay', headers = byKey }: { name?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const answer = await fetch(`${origin}/hooks/${name}`, {
    method: 'POST',
    headers: Object.entries({ 'content-type': 'application/json', ...headers }).filter(([, value]) => value !== ''),
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? {} : JSON.parse(text), headers: answer.headers };
}
