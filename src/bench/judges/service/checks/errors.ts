import { connect } from 'node:net';
import { CODES } from '../../../../protocol/codes.ts';
import { PATHS } from '../../../../protocol/http-api.ts';
import { Breach, Mismatch, NoAnswer, PreconditionFailed } from '../../check.ts';
import { basicOf } from '../callback-listener.ts';
import { type CheckContext, gap, type ServiceCheck, spec } from '../check-context.ts';
import { type Answer, codeOf, isRefusal } from '../client.ts';
import {
  expectCode,
  expectQr,
  expectRefused,
  expectStatus,
  forEachCase,
  mayBeTaken,
  unlessTaken,
} from '../expectations.ts';

const RAW_TIMEOUT_MS = 10_000;

/** Provokes one refusal per endpoint; none needs a box. */
async function refusals(t: CheckContext): Promise<{ what: string; called: Answer }[]> {
  const order = t.newOrder();
  const push = t.orderPush(order, { terminalCode: 'VVB999999', serialNumber: '' });
  const payment = { ...t.paymentBody(order), amount: 0 };
  return [
    { what: 'generate', called: await t.generateWith({ amount: 0 }) },
    { what: 'send-qr', called: await t.sendPush(push) },
    { what: 'the test callback', called: await t.simulate(payment) },
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
  spec('ERR-1', 'a refused push has status FAILED and a code as message', [], async (t) => {
    const push = (await refusals(t)).find(({ what }) => what === 'send-qr');
    if (push !== undefined) expectShape(push.called, push.what);
  }),
  gap('ERR-1', 'every other refusal has them too', [], async (t) =>
    forEachCase(await refusals(t), async ({ what, called }) => expectShape(called, what)),
  ),
  gap('ERR-2', 'a refusal is 400', [], async (t) => {
    await forEachCase(await refusals(t), async ({ what, called }) => expectStatus(called, 400, what));
    expectStatus(await t.generate('{'), 400, 'malformed JSON');
  }),
  gap('ERR-2', 'an unknown path is 404, another method 405', [], async (t) => {
    const authorization = `Bearer ${await t.token()}`;
    const paths = ['/api/no-such-thing', '/api/qr/generate-customer/more', '/api/tid'];
    await forEachCase(paths, async (path) =>
      expectStatus(await t.send({ path, headers: { authorization }, body: '{}' }), 404, path),
    );
    await forEachCase(['GET', 'PUT', 'DELETE'], async (method) => {
      const body = method === 'GET' ? undefined : JSON.stringify(t.generateBody());
      const headers = { authorization, 'content-type': 'application/json' };
      const what = `${method} ${PATHS.generate}`;
      const called = await t.send({ path: PATHS.generate, method, headers, body });
      mayBeTaken(() => expectStatus(called, 405, what));
    });
  }),
  gap('ERR-2', 'a body that is not application/json is 415', [], (t) =>
    forEachCase(['text/plain', 'application/x-www-form-urlencoded', 'application/xml'], async (type) => {
      const body = JSON.stringify(t.generateBody());
      const called = await t.post(PATHS.generate, body, { headers: { 'content-type': type } });
      mayBeTaken(() => expectStatus(called, 415, type));
    }),
  ),
  gap('ERR-2', 'a request with two Hosts is 400', ['plain HTTP'], async (t) => {
    // The credentials are right, because a service may look at these first.
    const authorization = `Authorization: ${basicOf(t.options.access)}\r\n`;
    const answer = await raw(t, (host) => `Host: ${host}\r\nHost: elsewhere.example\r\n${authorization}`);
    if (!/^HTTP\/1\.1 400 /.test(answer)) throw new Mismatch(`expected 400, is ${answer.slice(0, 60)}`);
  }),
  gap('ERR-3', 'a body that is not a JSON object is E46', [], (t) =>
    forEachCase(MALFORMED, async (body) =>
      expectCode(await t.generate(body), 'E46', `the body ${JSON.stringify(body)}`),
    ),
  ),
  gap('ERR-3', 'a field of another type is E46', [], async (t) => {
    const wrong = { bankAccount: null, bankCode: {}, transType: true };
    const open = { amount: '50000', content: 1, qrType: '0' };
    await forEachCase(Object.entries({ ...wrong, ...open, orderId: [] }), async ([field, value]) => {
      const called = await t.generateWith({ [field]: value });
      const judge = () => expectCode(called, 'E46', `generate with ${field} ${JSON.stringify(value)}`);
      if (field in open) unlessTaken(called, judge);
      else mayBeTaken(judge, field === 'orderId');
    });
  }),
  gap('ERR-3', 'an amount of another type in a push is E46', ['a box'], async (t) => {
    const push = t.orderPush();
    await forEachCase([null, true, ['50000']], async (amount) => {
      expectCode(await t.sendPush({ ...push, amount }), 'E46', `send-qr with amount ${JSON.stringify(amount)}`);
    });
  }),
  gap('ERR-3', 'free text with a control character, an invisible one or half a character is E46', [], (t) =>
    forEachCase(['a\u0000b', 'a\nb', 'a\u001bb', 'a\ud800b', 'a\u202eb', 'a\u200bb'], async (text) => {
      const called = await t.generateWith({ orderId: text });
      mayBeTaken(() => expectCode(called, 'E46', `orderId ${JSON.stringify(text)}`));
    }),
  ),
  gap('ERR-3', 'of equal keys the last counts', [], async (t) => {
    const body = t.generateBody();
    const last = `${JSON.stringify(body).slice(0, -1)},"amount":0}`;
    expectRefused(await t.generate(last), 'a wrong amount after the right one');
    const called = await t.generate(`{"amount":0,${JSON.stringify(body).slice(1)}`);
    expectQr(called, 'a wrong amount before the right one');
  }),
  gap('ERR-4', 'an unknown field changes nothing', [], async (t) => {
    const called = await t.generateWith({ ofALaterVersion: { a: [1] } });
    expectQr(called, 'a request with an unknown field');
  }),
];

/** Run after all others: checks the texts of all answers. */
export const leakCheck: ServiceCheck = gap(
  'ERR-7',
  'no answer of the run had a password, or a right checkSum instead of a wrong one',
  [],
  async (t) => {
    const { box, access } = t.options;
    const refused = await t.login({ authorization: basicOf({ ...access, password: 'not the password' }) });
    if (box !== undefined) await t.pushOrder(t.newOrder(), { checkSum: '0'.repeat(32) });
    const { leaks } = t.subject;
    if (leaks.size > 0) throw new Breach([...leaks].join('; '));
    if (!isRefusal(refused)) throw new PreconditionFailed('needs a refusal: TOK-4 judges that');
  },
);

/** Run after all others: checks the codes of all answers. */
export const codeChecks: readonly ServiceCheck[] = [
  gap('ERR-6', 'every code that was answered is one of the table', [], async ({ subject }) => {
    if (subject.codes.size === 0) throw new PreconditionFailed('needs refusals with a code, and there were none');
    const unknown = [...subject.codes].filter((code) => !Object.hasOwn(CODES, code));
    if (unknown.length > 0)
      throw new Mismatch(`the table has no ${unknown.map((it) => JSON.stringify(it)).join(', ')}`);
  }),
];

/** Returns the beginning of the answer to a request with these header lines. Throws NoAnswer. */
async function raw({ run }: CheckContext, head: (host: string) => string): Promise<string> {
  const { subject, evidence, signal } = run;
  const { hostname, port, host, pathname } = new URL(subject.options.access.baseUrl);
  const text = `POST ${pathname}${PATHS.token} HTTP/1.1\r\n${head(host)}Content-Length: 0\r\nConnection: close\r\n\r\n`;
  const answer = await subject.time.inRealTime(() => exchange(text, hostname, port === '' ? 80 : Number(port), signal));
  const detail = subject.redactor.value({ request: text, answer });
  evidence.add('call', `POST ${PATHS.token}: ${answer.slice(0, 40)}`, { detail });
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
