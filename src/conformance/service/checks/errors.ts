import { connect } from 'node:net';
import { CODES } from '../../../protocol/codes.ts';
import { PATHS } from '../../../protocol/http-api.ts';
import { Mismatch, NoAnswer, PreconditionFailed } from '../../check.ts';
import { type Answer, codeOf, sendRequest } from '../client.ts';
import {
  bearerToken,
  expectCode,
  expectQr,
  expectRefused,
  expectStatus,
  forEachCase,
  generateBody,
  makeQr,
  paymentBody,
  post,
  pushBody,
} from '../requests.ts';
import { gap, type ServiceCheck, type ServiceRun, spec } from '../subject.ts';
import { generate } from './generate.ts';
import { sendPush } from './push.ts';

const RAW_TIMEOUT_MS = 10_000;

/** One refusal per endpoint; none needs a box. */
async function refusals(run: ServiceRun): Promise<{ what: string; called: Answer }[]> {
  const order = run.subject.newOrder();
  const push = pushBody(run, order, makeQr(run.subject, order), {
    checkSum: 'f'.repeat(32),
    terminalCode: 'VVB999999',
  });
  const payment = { ...paymentBody(run, order), amount: 0 };
  return [
    { what: 'generate', called: await generate(run, { ...generateBody(run), amount: 0 }) },
    { what: 'send-qr', called: await sendPush(run, push) },
    { what: 'the test callback', called: await post(run, PATHS.testCallback, payment) },
  ];
}

function expectShape(called: Answer, what: string): void {
  const code = codeOf(called);
  if (code === undefined || code === '') {
    throw new Mismatch(`${what}: expected status FAILED and a code as message, is ${called.text.slice(0, 200)}`);
  }
}

const MALFORMED = ['', '{', 'amount=1', '[]', '"x"', 'null', '{"amount":1,}', '\u0000'];

export const errorChecks: readonly ServiceCheck[] = [
  spec('ERR-1', 'a refused push has status FAILED and a code as message', async (run) => {
    const push = (await refusals(run)).find(({ what }) => what === 'send-qr');
    if (push !== undefined) expectShape(push.called, push.what);
  }),
  gap('ERR-1', 'every other refusal has them too', async (run) =>
    forEachCase(await refusals(run), async ({ what, called }) => expectShape(called, what)),
  ),
  gap('ERR-2', 'a refusal is 400', async (run) => {
    await forEachCase(await refusals(run), async ({ what, called }) => expectStatus(called, 400, what));
    expectStatus(await generate(run, '{'), 400, 'malformed JSON');
  }),
  gap('ERR-2', 'an unknown path is 404, another method 405', async (run) => {
    const authorization = `Bearer ${await bearerToken(run)}`;
    const paths = ['/api/no-such-thing', '/api/qr/generate-customer/more', '/api/tid'];
    await forEachCase(paths, async (path) =>
      expectStatus(await sendRequest(run, { path, headers: { authorization }, body: '{}' }), 404, path),
    );
    await forEachCase(['GET', 'PUT', 'DELETE'], async (method) => {
      const what = `${method} ${PATHS.generate}`;
      expectStatus(await sendRequest(run, { path: PATHS.generate, method, headers: { authorization } }), 405, what);
    });
  }),
  gap('ERR-2', 'a body that is not application/json is 415', (run) =>
    forEachCase(['text/plain', 'application/x-www-form-urlencoded', 'application/xml'], async (type) => {
      const body = JSON.stringify(generateBody(run));
      expectStatus(await post(run, PATHS.generate, body, { headers: { 'content-type': type } }), 415, type);
    }),
  ),
  gap('ERR-2', 'a request with two Hosts is 400', ['plain HTTP'], async (run) => {
    const answer = await raw(run, (host) => `Host: ${host}\r\nHost: elsewhere.example\r\n`);
    if (!/^HTTP\/1\.1 400 /.test(answer)) throw new Mismatch(`expected 400, is ${answer.slice(0, 60)}`);
  }),
  gap('ERR-3', 'a body that is not a JSON object is E46', (run) =>
    forEachCase(MALFORMED, async (body) =>
      expectCode(await generate(run, body), 'E46', `the body ${JSON.stringify(body)}`),
    ),
  ),
  gap('ERR-3', 'a field of another type is E46', async (run) => {
    const wrong = {
      amount: '50000',
      content: 1,
      bankAccount: null,
      bankCode: {},
      orderId: [],
      transType: true,
      qrType: '0',
    };
    await forEachCase(Object.entries(wrong), async ([field, value]) => {
      const what = `generate with ${field} ${JSON.stringify(value)}`;
      expectCode(await generate(run, { ...generateBody(run), [field]: value }), 'E46', what);
    });
    const order = run.subject.newOrder();
    const push = pushBody(run, order, makeQr(run.subject, order));
    await forEachCase([50_000, null, true], async (amount) => {
      expectCode(
        await sendPush(run, { ...push, terminalCode: 'VVB999999', amount }),
        'E46',
        `send-qr with amount ${amount}`,
      );
    });
  }),
  gap('ERR-3', 'free text with a control character, an invisible one or half a character is E46', (run) =>
    forEachCase(['a\u0000b', 'a\nb', 'a\u001bb', 'a\ud800b', 'a\u202eb', 'a\u200bb'], async (text) => {
      const what = `orderId ${JSON.stringify(text)}`;
      expectCode(await generate(run, { ...generateBody(run), orderId: text }), 'E46', what);
    }),
  ),
  gap('ERR-3', 'of equal keys the last counts', async (run) => {
    const body = generateBody(run);
    const called = await generate(run, `{"amount":0,${JSON.stringify(body).slice(1)}`);
    expectQr(called, 'a wrong amount before the right one');
    const last = `${JSON.stringify(body).slice(0, -1)},"amount":0}`;
    expectRefused(await generate(run, last), 'a wrong amount after the right one');
  }),
  gap('ERR-4', 'an unknown field changes nothing', async (run) => {
    const called = await generate(run, { ...generateBody(run), ofALaterVersion: { a: [1] } });
    expectQr(called, 'a request with an unknown field');
  }),
];

/** Run after all others: checks the codes of all answers. */
export const codeChecks: readonly ServiceCheck[] = [
  gap('ERR-6', 'every code that was answered is one of the table', async ({ subject }) => {
    if (subject.codes.size === 0) throw new PreconditionFailed('needs refusals with a code, and there were none');
    const unknown = [...subject.codes].filter((code) => !Object.hasOwn(CODES, code));
    if (unknown.length > 0)
      throw new Mismatch(`the table has no ${unknown.map((it) => JSON.stringify(it)).join(', ')}`);
  }),
];

/** The beginning of the answer to a request with these header lines. Throws NoAnswer. */
async function raw({ subject, evidence, signal }: ServiceRun, head: (host: string) => string): Promise<string> {
  const { hostname, port, host, pathname } = new URL(subject.options.access.baseUrl);
  const text = `POST ${pathname}${PATHS.token} HTTP/1.1\r\n${head(host)}Content-Length: 0\r\nConnection: close\r\n\r\n`;
  const answer = await subject.time.inRealTime(() => exchange(text, hostname, port === '' ? 80 : Number(port), signal));
  evidence.add('call', `POST ${PATHS.token}: ${answer.slice(0, 40)}`, { detail: { request: text, answer } });
  return answer;
}

function exchange(text: string, hostname: string, port: number, signal: AbortSignal): Promise<string> {
  const until = AbortSignal.any([signal, AbortSignal.timeout(RAW_TIMEOUT_MS)]);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ''), port, signal: until });
    socket.setEncoding('utf8');
    socket.once('data', (answer: string) => {
      resolve(answer);
      socket.destroy();
    });
    socket.once('error', (error) =>
      reject(new NoAnswer(`the connection ended without an answer: ${error.message}`, error)),
    );
    socket.once('close', () => reject(new NoAnswer('the connection ended without an answer')));
    socket.write(text);
  });
}
