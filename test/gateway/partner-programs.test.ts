import { expect, it, onTestFinished, vi } from 'vitest';
import { startListener } from '../../src/bench/judges/service/callback-listener.ts';
import { serviceOptionsOf } from '../../src/bench/judges/service/options.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { BOX1, failed, partnerServer, processed, qrFor, qrWithoutText, testGateway } from './harness.ts';

const headers = ({ headers: all }: { headers: Headers }) => ({
  reason: all.get('x-paybox-reason'),
  lenient: all.get('x-paybox-lenient'),
  warning: all.get('x-paybox-warning'),
});

it('LEN-2 an empty text counts as left out in every call: transType and bankCode too', async () => {
  const { url } = await partnerServer(processed);
  const gateway = await testGateway({ callback: { url } });
  const generated = await gateway.generate({ transType: '' });
  expect([generated.status, headers(generated).lenient]).toEqual([
    200,
    'transType: an empty text where it is left out; transType: missing, taken as C',
  ]);
  for (const [field, lenient] of [
    ['transType', 'transType: an empty text where it is left out'],
    ['bankCode', 'bankCode: an empty text where it is left out'],
  ] as const) {
    const answer = await gateway.testCallback({ [field]: '' });
    expect([answer.body.status, headers(answer).lenient]).toEqual(['SUCCESS', lenient]);
  }
  // Where a field is needed, an empty one is none.
  expect((await gateway.generate({ bankCode: '' })).body.message).toBe('E24');
  const strict = await testGateway({ callback: { url }, config: { strict: true } });
  expect((await strict.generate({ transType: '' })).body).toEqual(failed('E03'));
  expect((await strict.testCallback({ transType: '' })).body).toEqual(failed('003'));
  expect((await strict.testCallback({ bankCode: '' })).body).toEqual(failed('E51'));
});

it('SND-10 the box shows the content of the QR, whatever the push calls it, and the partner is warned', async () => {
  const gateway = await testGateway();
  const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  const other = await gateway.sendQr({ content: 'BAN 9', orderId: '' });
  expect([other.body.status, headers(other).warning]).toEqual([
    'SUCCESS',
    'content: the box shows that of the QR, which is what the customer pays',
  ]);
  const qrCode = qrFor({ purpose: 'BAN 5' });
  const [same, none] = [
    await gateway.sendQr({ content: 'BAN 5', orderId: 'B', qrCode }),
    await gateway.sendQr({ content: '', orderId: 'C' }),
  ];
  expect([headers(same).warning, headers(none).warning]).toEqual([null, null]);
  await gateway.sendQr({
    content: 'BAN 7',
    orderId: 'D',
    qrCode: qrWithoutText(),
  });
  expect(box.of('show').map(({ content }) => content)).toEqual(['DH001', 'BAN 5', 'DH001', 'BAN 7']);
  expect(await gateway.mock('/orders')).toMatchObject([
    { content: 'BAN 7' },
    { content: 'DH001' },
    { content: 'BAN 5' },
    { content: 'DH001' },
  ]);
});

it('ERR-10 an unknown path says where a slash is too many, and a bearer challenge has a realm', async () => {
  const gateway = await testGateway();
  const asked = async (path: string) => {
    const answer = await fetch(`${gateway.origin}${path}`, { method: 'POST' });
    await answer.text();
    return [answer.status, answer.headers.get('x-paybox-reason')];
  };
  const expected = 'expected a base address without a slash at its end';
  expect(await asked('/vqr//api/token_generate')).toEqual([
    404,
    `unknown path: a slash too many after /vqr: ${expected}`,
  ]);
  expect(await asked('//vqr/api/token_generate')).toEqual([
    404,
    `unknown path: a slash too many after the host: ${expected}`,
  ]);
  expect(await asked('/vqr//api/nothing')).toEqual([404, 'unknown path']);
  const single = 'expected /vqr/api/tid/cancel-qr';
  for (const path of ['/vqr/api/tid/cancel-qr/', '/vqr/api/tid/cancel-qr//']) {
    expect(await asked(path)).toEqual([404, `unknown path: the slash at its end is too many: ${single}`]);
  }
  for (const path of ['/vqr/api/tid//cancel-qr', '/vqr/api/tid//cancel-qr/']) {
    expect(await asked(path)).toEqual([404, `unknown path: a slash too many after /vqr/api/tid: ${single}`]);
  }
  expect(await asked('/vqr/bank//api/test/transaction-callback')).toEqual([
    404,
    'unknown path: a slash too many after /vqr/bank: expected /vqr/bank/api/test/transaction-callback',
  ]);
  const challenge = async (authorization: Record<string, string>) => {
    const answer = await fetch(`${gateway.baseUrl}/api/tid/send-qr`, { method: 'POST', headers: authorization });
    await answer.text();
    return answer.headers.get('www-authenticate');
  };
  expect(await challenge({})).toBe('Bearer realm="paybox"');
  expect(await challenge({ authorization: 'Bearer x' })).toBe('Bearer realm="paybox", error="invalid_token"');
});

it('ERR-10 a body of another type is refused by its type, without the boundary of a form', async () => {
  const gateway = await testGateway();
  const form = new FormData();
  form.set('bankAccount', '0123456789');
  const headers = { authorization: `Bearer ${await gateway.token()}` };
  const answer = await fetch(`${gateway.baseUrl}/api/tid/send-qr`, { method: 'POST', headers, body: form });
  await answer.text();
  const reason = 'the body is multipart/form-data, not application/json';
  expect([answer.status, answer.headers.get('x-paybox-reason')]).toEqual([415, reason]);
  const pushed = await gateway.sendQr({ bankAccount: 123 });
  expect([pushed.status, pushed.headers.get('x-paybox-reason')]).toEqual([
    400,
    'bankAccount: expected a text, received a number, which loses a leading 0: put it in quotes',
  ]);
});

it('CBK-9 a test callback that finds no order says so, and so does paybox pay', async () => {
  const { url } = await partnerServer(processed);
  const gateway = await testGateway({ callback: { url } });
  await gateway.generate();
  expect(headers(await gateway.testCallback())).toMatchObject({ warning: null });
  const warning = 'content: no order of this account has it with this amount, so the callback has no orderId';
  expect(headers(await gateway.testCallback({ amount: 50_001 }))).toMatchObject({ warning });
  expect(headers(await gateway.testCallback({ content: 'DH002' }))).toMatchObject({ warning });
  const pay = (content: string) =>
    payboxToEnd(
      'pay',
      '--gateway',
      gateway.origin,
      '--username',
      'demo',
      '--account',
      '0123456789',
      '--bank',
      'MB',
      '--amount',
      '50000',
      '--content',
      content,
    );
  vi.stubEnv('PAYBOX_PASSWORD', 'demo-secret');
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
  expect(await pay('DH009')).toMatchObject({ code: 0, output: expect.stringContaining(warning) });
  expect((await pay('DH001')).output).not.toContain('no order');
});

it('CBK-1 outside of a sandbox the test callback gives no advice that a live gateway would refuse', async () => {
  const gateway = await testGateway({ config: { sandbox: false } });
  const answer = await gateway.testCallback();
  expect(answer.body).toEqual(failed('E75'));
  expect(headers(answer).reason).toBe(
    'this gateway takes real money, and only money pays its orders: expected a sandbox',
  );
});

it.each([201, 204])(
  'SYN-13 a partner that answers %i has processed the callback, unless it wants 200 alone',
  async (status) => {
    const server = await partnerServer((_call, response) => response.writeHead(status).end());
    const states = async (success: object) => {
      const gateway = await testGateway({ callback: { url: server.url, ...success } });
      await gateway.testCallback();
      await eventually('an attempt', async () => Number((await gateway.mock('/callbacks'))[0]?.attemptCount) > 0);
      const [callback] = await gateway.mock('/callbacks');
      return { status: callback?.status, warning: callback?.warning };
    };
    const delivered = { status: 'delivered', warning: `HTTP ${status}: the documented reply is 200` };
    expect(await states({})).toEqual(delivered);
    expect(await states({ success: 'any2xx' })).toEqual(delivered);
    expect(await states({ success: 200 })).toEqual({
      status: 'pending',
      warning: `HTTP ${status}: callback.success of this partner is 200 alone`,
    });
  },
);

it('SYN-1 the judge takes a path for callbacks', async () => {
  const secrets = { secretFrom: () => 'x', boxToken: undefined };
  const given = {
    service: 'http://127.0.0.1:1/vqr',
    username: 'a',
    passwordFile: 'x',
    account: '1',
    bank: 'MB',
    holder: 'A',
    confirm: 'displayed',
    sandbox: true,
  };
  const listen = (callbackListen: string) => serviceOptionsOf({ ...given, callbackListen }, secrets).listen;
  expect(listen('0.0.0.0:8900')).toEqual({ host: '0.0.0.0', port: 8900 });
  expect(listen('[::1]:8900/shop/paid')).toEqual({ host: '::1', port: 8900, path: '/shop/paid' });
  for (const wrong of ['0.0.0.0', 'x:99999', '0.0.0.0:1/a?b']) {
    expect(() => listen(wrong)).toThrow(/--callback-listen .*0\.0\.0\.0:8900\/shop\/paid/);
  }
  for (const own of ['/api/token_generate', '/elsewhere']) {
    expect(() => listen(`0.0.0.0:1${own}`)).toThrow(
      `--callback-listen 0.0.0.0:1${own}: the judge needs ${own} for itself, expected another path`,
    );
  }
  const listener = await startListener({ host: '127.0.0.1', port: 0, path: '/shop/paid' }, systemClock);
  try {
    expect(new URL(listener.url).pathname).toBe('/shop/paid');
    expect((await fetch(listener.url, { method: 'POST', body: '{}' })).status).toBe(200);
    expect(listener.requests).toMatchObject([{ path: '/shop/paid' }]);
  } finally {
    await listener.close();
  }
});
