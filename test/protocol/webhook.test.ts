import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { signWebhook, webhookKey, webhookProblem } from '../../src/protocol/webhook.ts';

/** The published example of the Standard Webhooks libraries. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const ID = 'msg_p5jXN8AQM9LWM0D4loKWxJek';
const AT_SECONDS = 1_614_265_330;
const BODY = '{"test": 2432232314}';
const SIGNATURE = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';

const signed = { 'webhook-id': ID, 'webhook-timestamp': String(AT_SECONDS), 'webhook-signature': SIGNATURE };
const problem = (change: Record<string, string | string[] | undefined>, body = BODY, atMs = AT_SECONDS * 1000) =>
  webhookProblem(SECRET, { ...signed, ...change }, body, atMs);

it('SYN-8 a webhook is signed as the Standard Webhooks scheme says, and as openssl does', () => {
  expect(signWebhook(SECRET, ID, AT_SECONDS * 1000 + 999, BODY)).toEqual(signed);
  const key = Buffer.from(SECRET.slice(6), 'base64').toString('hex');
  const body = '{"content":"Cà phê"}';
  const mac = spawnSync('openssl', ['dgst', '-sha256', '-mac', 'HMAC', '-macopt', `hexkey:${key}`, '-binary'], {
    input: `${ID}.${AT_SECONDS}.${body}`,
  });
  expect(signWebhook(SECRET, ID, AT_SECONDS * 1000, body)['webhook-signature']).toBe(
    `v1,${mac.stdout.toString('base64')}`,
  );
});

it('a webhook is believed with one right signature among several, within five minutes', () => {
  expect(problem({})).toBeUndefined();
  expect(problem({ 'webhook-signature': `v1a,AAAA v1,AAAA ${SIGNATURE}` })).toBeUndefined();
  for (const seconds of [-300, 300]) expect(problem({}, BODY, (AT_SECONDS + seconds) * 1000)).toBeUndefined();
});

it.each<[string, Record<string, string | string[] | undefined>]>([
  ['without an id', { 'webhook-id': undefined }],
  ['without a time', { 'webhook-timestamp': undefined }],
  ['without a signature', { 'webhook-signature': undefined }],
  ['with another id', { 'webhook-id': 'msg_2' }],
  ['with another time', { 'webhook-timestamp': String(AT_SECONDS + 1) }],
  ['with a time that is no number', { 'webhook-timestamp': `${AT_SECONDS}.0` }],
  ['with an empty signature', { 'webhook-signature': '' }],
  ['with the signature of another version', { 'webhook-signature': SIGNATURE.replace('v1', 'v2') }],
  ['with a signature cut short', { 'webhook-signature': SIGNATURE.slice(0, -1) }],
  ['with two ids', { 'webhook-id': [ID, ID] }],
])('a webhook is not believed %s', (_name, change) => {
  expect(problem(change)).toMatch(/^it/);
});

it('a webhook is not believed with another body, nor long before or after', () => {
  expect(problem({}, `${BODY} `)).toBe('its signature is wrong');
  for (const seconds of [-301, 301]) {
    expect(problem({}, BODY, (AT_SECONDS + seconds) * 1000)).toBe('its timestamp is too old or too new');
  }
});

it.each([
  ['', false],
  ['whsec_', false],
  ['MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', false],
  [`whsec_${Buffer.alloc(23, 7).toString('base64')}`, false],
  [`whsec_${Buffer.alloc(24, 7).toString('base64')}`, true],
  [`whsec_${Buffer.alloc(64, 7).toString('base64')}`, true],
  [`whsec_${Buffer.alloc(65, 7).toString('base64')}`, false],
  [`whsec_${'A'.repeat(33)}`, false],
  [`whsec_${'-'.repeat(32)}`, false],
])('the secret %s: %s', (secret, isOne) => {
  expect(webhookKey(secret) !== undefined).toBe(isOne);
  if (!isOne) expect(() => signWebhook(secret, ID, 0, BODY)).toThrow(RangeError);
});
