import { parseJson } from '../../../../lib/http-client.ts';
import { PATHS } from '../../../../protocol/http-api.ts';
import { Breach, Mismatch } from '../../check.ts';
import { basicOf } from '../callback-listener.ts';
import { type Body, type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, summaryOf } from '../client.ts';
import { expectCode, expectRefused, expectStatus, forEachCase } from '../expectations.ts';
import { recordOf } from '../json.ts';
import type { ServiceAccess } from '../subject.ts';
import { whileBoxIsOn } from './pushing.ts';

const LIFETIME_MS = 300_000;
/** Tolerance of a lifetime, for clocks, networks and caches. */
const LEEWAY_MS = 10_000;

const BEARER_PATHS = [PATHS.generate, PATHS.sendQr, PATHS.testCallback];
const NO_JSON = '{';
/** Where a bearer is cut or changed that is right at its beginning. */
const CHARS_FROM_END = 4;

/** Returns wrong credentials. */
function wrongLogins({ username }: ServiceAccess): { what: string; authorization: string }[] {
  const basic = (text: string) => `Basic ${Buffer.from(text, 'utf8').toString('base64')}`;
  return [
    { what: 'no credentials', authorization: '' },
    { what: 'a wrong password', authorization: basic(`${username}:not the password`) },
    { what: 'an unknown user', authorization: basic('nobody-of-this-name:not the password') },
    { what: 'credentials that are no base64', authorization: 'Basic ***' },
    { what: 'another scheme', authorization: 'Digest username="x"' },
  ];
}

/** Returns credentials whose passwords are nearly right. */
function nearPasswords({ username, password }: ServiceAccess): { what: string; authorization: string }[] {
  const near = [
    ['a password with one more character', `${password}x`],
    ['a password without its last character', password.slice(0, -1)],
    ['a password in other case', inOtherCase(password)],
  ] as const;
  return near
    .filter(([, text]) => text !== password)
    .map(([what, text]) => ({ what, authorization: basicOf({ username, password: text }) }));
}

function inOtherCase(text: string): string {
  return text.replaceAll(/\p{L}/gu, (letter) =>
    letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase(),
  );
}

function headerOf({ headers }: Answer, scheme: string): boolean {
  return new RegExp(`^${scheme}\\b`, 'i').test(headers['www-authenticate'] ?? '');
}

/** Sends a generate request with this token. */
function used(t: CheckContext, token: string): Promise<Answer> {
  return t.post(PATHS.generate, t.generateBody(), { headers: { authorization: `Bearer ${token}` } });
}

async function freshToken(t: CheckContext): Promise<string> {
  t.subject.tokens.clear();
  return t.token();
}

export const tokenChecks: readonly ServiceCheck[] = [
  spec('TOK-1', 'Basic credentials get a bearer token for 300 seconds', [], async (t) => {
    const called = await t.login();
    const hint =
      called.status === 404 ? ' (is the path prefix of --service right, as in https://dev.example.com/vqr?)' : '';
    expectStatus(called, 200, `with the right credentials${hint}`);
    const { access_token, token_type, expires_in } = recordOf(called.json);
    if (typeof access_token !== 'string' || access_token === '') throw new Mismatch('the answer has no access_token');
    if (token_type !== 'Bearer') throw new Mismatch(`token_type: expected Bearer, is ${String(token_type)}`);
    if (expires_in !== 300) throw new Mismatch(`expires_in: expected the number 300, is ${JSON.stringify(expires_in)}`);
  }),
  spec('TOK-2', 'a token opens the other endpoints, more than once', [], async (t) => {
    const token = await freshToken(t);
    for (const time of ['first', 'second']) {
      const called = await used(t, token);
      if (called.status === 401 || called.status === 403) {
        throw new Mismatch(`the ${time} request with a fresh token is answered ${summaryOf(called)}`);
      }
    }
  }),
  gap('TOK-2', 'the token is a JWT, HS256, about the partner', [], async (t) => {
    const [head = '', payload = '', signature = ''] = (await t.token()).split('.');
    const part = (text: string) => recordOf(parseJson(Buffer.from(text, 'base64url').toString('utf8')));
    if (part(head).alg !== 'HS256' || signature === '') throw new Mismatch('the token is no JWT signed by HS256');
    const { username } = t.options.access;
    const { sub, iat, exp } = part(payload);
    if (sub !== username) throw new Mismatch('the subject of the token is not the partner');
    const lifetimeS = Number(exp) - Number(iat);
    if (Math.abs(lifetimeS - LIFETIME_MS / 1_000) * 1_000 > LEEWAY_MS) {
      throw new Breach(`the token says that it is valid for ${lifetimeS} s, and its answer says 300`);
    }
  }),
  spec(
    'TOK-2',
    'a token is good for 300 seconds, and no longer',
    ['minutes'],
    async (t) => {
      await expires(t, LEEWAY_MS);
    },
    LIFETIME_MS + 120_000,
  ),
  gap(
    'TOK-2',
    'a token ends to the second',
    ['minutes'],
    async (t) => {
      await expires(t, 1_500);
    },
    LIFETIME_MS + 120_000,
  ),
  gap('TOK-3', 'the body of a token request is not read, and needs no Content-Type', [], (t) =>
    forEachCase([undefined, '{}', 'not JSON', '{"username":"other"}'], async (body) => {
      const called = await t.login({ body });
      expectStatus(called, 200, body === undefined ? 'without a body' : `with the body ${body}`);
    }),
  ),
  spec('TOK-4', 'wrong or missing credentials get no token', [], (t) =>
    forEachCase([...wrongLogins(t.options.access), ...nearPasswords(t.options.access)], async (it) => {
      const { what, authorization } = it;
      const called = await t.login({ authorization });
      expectRefused(called, what);
      if (recordOf(called.json).access_token !== undefined) throw new Mismatch(`${what}: the answer has a token`);
    }),
  ),
  gap('TOK-4', 'wrong or missing credentials are 401 E74 with WWW-Authenticate: Basic', [], (t) =>
    forEachCase(wrongLogins(t.options.access), async ({ what, authorization }) => {
      const called = await t.login({ authorization });
      expectStatus(called, 401, what);
      expectCode(called, 'E74', what);
      if (!headerOf(called, 'Basic')) throw new Mismatch(`${what}: the answer has no WWW-Authenticate: Basic`);
    }),
  ),
  gap('TOK-4', 'an unknown user and a wrong password cannot be told apart', [], async (t) => {
    const [, wrong, unknown] = wrongLogins(t.options.access);
    const answers = [];
    for (const it of [wrong, unknown]) {
      const called = await t.login({ authorization: it?.authorization ?? '' });
      answers.push(`${summaryOf(called)} ${called.text} ${called.headers['www-authenticate']}`);
    }
    if (answers[0] !== answers[1]) throw new Mismatch(`they are answered ${answers.join(' and ')}`);
  }),
  spec('TOK-5', 'without a right bearer nothing is done', [], (t) =>
    whileBoxIsOn(t, () =>
      withoutBearer(t, rightRequests(t), nearBearers, (called, what) => expectRefused(called, what)),
    ),
  ),
  gap(
    'TOK-5',
    'without a right bearer it is 401 E74 with WWW-Authenticate: Bearer, before the body is looked at',
    [],
    (t) => {
      const broken = BEARER_PATHS.map((path) => ({ path, body: NO_JSON }));
      return withoutBearer(t, [...rightRequests(t), ...broken], wrongBearers, (called, what) => {
        expectStatus(called, 401, what);
        expectCode(called, 'E74', what);
        if (!headerOf(called, 'Bearer')) throw new Mismatch(`${what}: the answer has no WWW-Authenticate: Bearer`);
      });
    },
  ),
];

/** Run at the end: judges the tokens of all checks before. */
export const tokenEndCheck: ServiceCheck = spec(
  'TOK-2',
  'no token of the run ended before its time, whatever came meanwhile',
  [],
  async (t) => {
    const { issued, endedTokensMs } = t.subject;
    const nowMs = t.time.clock.monotonicMs();
    const oldest = issued.find(({ sinceMs }) => nowMs - sinceMs < LIFETIME_MS - LEEWAY_MS);
    const { token, sinceMs } = oldest ?? { token: await freshToken(t), sinceMs: nowMs };
    // Another login of the partner must not end it.
    await t.login();
    const { status } = await used(t, token);
    const [first] = [...endedTokensMs, ...(status === 401 || status === 403 ? [nowMs - sinceMs] : [])];
    if (first !== undefined)
      throw new Mismatch(`a token was refused after ${Math.round(first / 1_000)} s, expected 300 s`);
  },
);

/** After this many wrong passwords from one address the service compares none (PROTOCOL.md, clause TOK-6). */
const GUESSES = 30;

/** Run last: afterwards the service refuses logins from this address for a while. */
export const guessChecks: readonly ServiceCheck[] = [
  gap(
    'TOK-6',
    'wrong passwords are limited: 429 E74 with Retry-After; who was in before still gets in',
    ['guesses'],
    async (t) => {
      const authorization = `Basic ${Buffer.from(`nobody-${t.options.tag}:guess`).toString('base64')}`;
      const answers: Answer[] = [];
      for (let guess = 0; guess <= GUESSES + 1; guess += 1) answers.push(await t.login({ authorization }));
      const limited = answers.find(({ status }) => status === 429);
      if (limited === undefined) throw new Mismatch(`${answers.length} wrong passwords in a row are all compared`);
      if (!/^\d+$/.test(limited.headers['retry-after'] ?? '')) throw new Mismatch('429 has no Retry-After');
      expectCode(limited, 'E74', 'beyond the limit');
      expectStatus(await t.login(), 200, 'the partner, who was in before');
    },
  ),
];

interface BearerRequest {
  path: string;
  body: Body;
}

/** Returns requests in which nothing is wrong, so that a service which looks at no bearer does what they say. */
function rightRequests(t: CheckContext): BearerRequest[] {
  const { box, sandbox } = t.options;
  return [
    { path: PATHS.generate, body: t.generateBody() },
    ...(box === undefined ? [] : [{ path: PATHS.sendQr, body: t.orderPush() }]),
    ...(sandbox ? [{ path: PATHS.testCallback, body: t.paymentBody() }] : []),
  ];
}

type Bearers = readonly (readonly [what: string, authorization: string, query?: string])[];

function wrongBearers(good: string): Bearers {
  return [
    ['no bearer', ''],
    ['a bearer that nobody gave', 'Bearer not-a-token'],
    ['a changed bearer', `Bearer ${changedAt(good, good.lastIndexOf('.') + 1)}`],
    ['Basic credentials', 'Basic eDp5'],
  ];
}

/** Returns wrong bearers, also some that are nearly right. */
function nearBearers(good: string): Bearers {
  const [, claims, ...more] = good.split('.');
  const head = Buffer.from('{"alg":"none","typ":"JWT"}', 'utf8').toString('base64url');
  const at = good.lastIndexOf('.') + 1;
  const other = `${good.slice(0, at)}${inOtherCase(good.slice(at))}`;
  return [
    ...wrongBearers(good),
    ...(more.length === 1 ? [['a bearer that nobody signed', `Bearer ${head}.${claims}.`] as const] : []),
    ['a bearer with another end', `Bearer ${changedAt(good, good.length - CHARS_FROM_END)}`],
    ['a bearer that is cut', `Bearer ${good.slice(0, -CHARS_FROM_END)}`],
    ...(other === good ? [] : [['a bearer in other case', `Bearer ${other}`] as const]),
    ['the bearer in the address alone', '', `?access_token=${good}`],
  ];
}

async function withoutBearer(
  t: CheckContext,
  requests: readonly BearerRequest[],
  bearersOf: (good: string) => Bearers,
  judge: (called: Answer, what: string) => void,
): Promise<void> {
  const bearers = bearersOf(await t.token().catch(() => 'e30.e30.e30-e30'));
  const cases = requests.flatMap((it) => bearers.map((bearer) => ({ ...it, bearer })));
  await forEachCase(cases, async ({ path, body, bearer: [what, authorization, query = ''] }) => {
    const called = await t.post(`${path}${query}`, body, { headers: { authorization } });
    judge(called, `${path} with ${what}`);
  });
}

/** Changes one character. It is never the last one of a signature, which may have unused bits in base64url. */
function changedAt(token: string, at: number): string {
  return `${token.slice(0, at)}${token[at] === 'A' ? 'B' : 'A'}${token.slice(at + 1)}`;
}

async function expires(t: CheckContext, leewayMs: number): Promise<void> {
  const { time } = t.subject;
  const token = await freshToken(t);
  const beganMs = time.clock.monotonicMs();
  const until = (ms: number) => time.wait(beganMs + ms - time.clock.monotonicMs());
  t.run.step('waiting for the token to expire');
  await until(LIFETIME_MS - leewayMs);
  const before = await used(t, token);
  if (before.status === 401 || before.status === 403) {
    throw new Mismatch(`after ${(LIFETIME_MS - leewayMs) / 1_000} s the token is answered ${summaryOf(before)}`);
  }
  await until(LIFETIME_MS + leewayMs);
  expectRefused(await used(t, token), `after ${(LIFETIME_MS + leewayMs) / 1_000} s`);
}
