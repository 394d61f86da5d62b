import type { ServerResponse } from 'node:http';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { eventually } from '../support/net.ts';
import {
  ACCOUNT,
  FOREIGN_ACCOUNT,
  type PartnerCall,
  partnerServer,
  processed,
  status,
  type TestGateway,
  testGateway,
} from './harness.ts';

const LADDER_MS = [1000, 2000, 3000, 4000, 5000, 60_000, 60_000, 60_000, 60_000, 60_000];

interface CallbackView {
  id: string;
  status: string;
  warning: string | null;
  nextAttemptAt: string | null;
  attempts: {
    byHand: boolean;
    request: { url: string; headers: Record<string, string>; body: string };
    response: { status: number; body: string } | null;
    error: string | null;
  }[];
}

async function newest(gateway: TestGateway): Promise<CallbackView> {
  const [callback] = await gateway.mock<CallbackView[]>('/callbacks');
  if (callback === undefined) throw new Error('no callback');
  return callback;
}

/** The newest callback once so many attempts were made. */
async function afterAttempts(gateway: TestGateway, count: number): Promise<CallbackView> {
  await eventually(`${count} attempts`, async () => (await newest(gateway)).attempts.length === count);
  // Its state was read before its attempts.
  return newest(gateway);
}

/** A gateway on a clock that stands still, whose partner answers as told, and one payment. */
async function paidGateway(
  replies: Parameters<typeof partnerServer>,
  auth?: (origin: string) => unknown,
  config: object = {},
) {
  const clock = new VirtualClock();
  const partner = await partnerServer(...replies);
  const callback = { url: partner.url, ...(auth === undefined ? {} : { auth: auth(partner.origin) }) };
  const gateway = await testGateway({ clock, callback, config: { mqtt: null, ...config } });
  const paid = await gateway.testCallback();
  expect(paid).toMatchObject({ status: 200, body: { status: 'SUCCESS' } });
  await clock.advance(0);
  return { clock, gateway, partner, transactionId: String(paid.body.message) };
}

const silent = () => undefined;
const reset = (_call: PartnerCall, response: ServerResponse) => response.destroy();

describe('SYN', () => {
  it('SYN-1 SYN-2 CBK-4 a callback posts the payment with every field to exactly the URL, at once', async () => {
    const clock = new VirtualClock();
    const partner = await partnerServer(processed);
    const gateway = await testGateway({ clock, callback: { url: partner.url }, config: { mqtt: null } });
    const names = { terminalCode: 'VVB000002', subTerminalCode: 'sub', serviceCode: 'svc', sign: 's1', urlLink: 'u' };
    await gateway.generate(names);
    const paidAtMs = clock.wallMs();
    const { body } = await gateway.testCallback();
    await clock.advance(0);
    await afterAttempts(gateway, 1);
    const [call] = partner.calls;
    expect(call).toMatchObject({ method: 'POST', path: '/hook/sync?x=1', authorization: undefined });
    expect(JSON.parse(call?.body ?? '')).toEqual({
      transactionid: body.message,
      transactiontime: paidAtMs,
      referencenumber: expect.stringMatching(/^demo-[0-9a-f-]{36}$/),
      amount: 50_000,
      content: 'DH001',
      bankaccount: ACCOUNT.bankAccount,
      transType: 'C',
      orderId: 'DH001',
      ...names,
    });
    expect(await newest(gateway)).toMatchObject({
      status: 'delivered',
      warning: null,
      nextAttemptAt: null,
      attempts: [{ byHand: false, request: { url: partner.url, body: call?.body }, response: { status: 200 } }],
    });
  });

  it('SYN-1 a callback sends a fixed bearer, which nobody is shown', async () => {
    const { gateway, partner } = await paidGateway([processed], () => ({ kind: 'bearer', token: 'fixed-token' }));
    const { attempts } = await afterAttempts(gateway, 1);
    expect(partner.calls.map((it) => it.authorization)).toEqual(['Bearer fixed-token']);
    expect(attempts[0]?.request.headers.authorization).toBe('Bearer ***');
    expect(JSON.stringify(gateway.log)).not.toContain('fixed-token');
  });

  it('SYN-1 SYN-2 SYN-4 a callback fetches a token before each attempt, and repeats the same bytes', async () => {
    let tokens = 0;
    const answer = (call: PartnerCall, response: ServerResponse, request: Parameters<typeof processed>[2]) => {
      if (call.path !== '/token') return hooks.shift()?.(call, response, request);
      tokens += 1;
      response.end(JSON.stringify({ access_token: `t${tokens}`, token_type: 'Bearer', expires_in: 300 }));
    };
    const hooks = [status(500), processed];
    const login = { kind: 'token', username: 'them', password: 'their-secret' };
    const { clock, gateway, partner } = await paidGateway([answer], (origin) => ({ ...login, url: `${origin}/token` }));
    await afterAttempts(gateway, 1);
    await clock.advance(1000);
    await afterAttempts(gateway, 2);
    const basic = `Basic ${Buffer.from('them:their-secret').toString('base64')}`;
    const hook = '/hook/sync?x=1';
    expect(partner.calls.map((it) => [it.path, it.authorization])).toEqual([
      ['/token', basic],
      [hook, 'Bearer t1'],
      ['/token', basic],
      [hook, 'Bearer t2'],
    ]);
    const [token1, first, token2, second] = partner.calls.map((it) => it.body);
    expect([token1, token2, second]).toEqual(['{}', '{}', first]);
    expect(JSON.stringify([gateway.log, await newest(gateway)])).not.toMatch(/their-secret|Bearer t\d/);
  });

  it.each([
    ['a refusal', status(401)],
    ['no token', status(200, '{}')],
    ['no JSON', status(200, 'no')],
  ])('SYN-1 SYN-4 tries again when the token request is answered with %s', async (_name, reply) => {
    const login = { kind: 'token', username: 'them', password: 'their-secret' };
    const { gateway, partner } = await paidGateway([reply], (origin) => ({ ...login, url: `${origin}/token` }));
    const { status: state, attempts } = await afterAttempts(gateway, 1);
    expect([state, partner.calls.length]).toEqual(['pending', 1]);
    expect(attempts[0]).toMatchObject({ response: null, error: expect.stringContaining('token request') });
  });

  it.each<[string, Parameters<typeof partnerServer>[number]]>([
    ['201', (call, response, request) => processed(call, Object.assign(response, { statusCode: 201 }), request)],
    ['204', status(204)],
    ['another body', status(200, 'OK')],
    ['an empty body', status(200)],
    ['a reply that has an error', status(200, '{"error":true,"errorReason":"E1","toastMessage":"","object":null}')],
  ])('SYN-3 is delivered with a warning by %s', async (_name, reply) => {
    const { gateway, clock, partner } = await paidGateway([reply]);
    const { status: state, warning } = await afterAttempts(gateway, 1);
    expect([state, warning]).toEqual(['delivered', expect.any(String)]);
    await clock.advance(100_000);
    expect(partner.calls).toHaveLength(1);
  });

  it('SYN-3 the log escapes invisible characters in the reason that a partner gives', async () => {
    const reply = { error: true, errorReason: '\u001b[31mE\u202e', toastMessage: '', object: null };
    const { gateway } = await paidGateway([status(200, JSON.stringify(reply))]);
    expect((await afterAttempts(gateway, 1)).warning).toBe('the reply has an error: \\u001b[31mE\\u202e');
  });

  const rest = '"errorReason":null,"toastMessage":"","object":null';
  it.each([
    [`{"error":"false",${rest}}`, 'error: expected true or false, received a text'],
    [
      `{"error":0,"errorReason":7,"toastMessage":"","object":null}`,
      'error: expected true or false, received a number; errorReason: expected a text, received a number',
    ],
    [
      `{"Error":false,${rest}}`,
      'error: expected true or false, but it is missing; unknown key Error; did you mean error?',
    ],
    ['{"error":false,"errorReason":"","toastMessage":"","object":"r1"}', 'object: expected an object, received a text'],
    ['<br />\n<b>Warning</b>: the password is hunter2', 'it is not JSON: it begins with "<br />\\u000a<b>Warning</b"'],
    [' \r\n', 'it is empty'],
    ['[]', 'expected an object'],
  ])('SYN-3 names in its warning what is wrong with the reply %s', async (reply, problem) => {
    const { gateway } = await paidGateway([status(200, reply)]);
    expect((await afterAttempts(gateway, 1)).warning).toBe(`the body is not the documented reply: ${problem}`);
  });

  it.each([
    ['', 'the answer to the token request is empty'],
    [
      '{"accessToken":"theirs"}',
      'the answer to the token request has no access_token; unknown key accessToken; did you mean access_token?',
    ],
    ['their-token', 'the answer to the token request is not JSON'],
  ])('SYN-1 names what is wrong with the answer %s to the token request', async (reply, error) => {
    const login = { kind: 'token', username: 'them', password: 'their-secret' };
    const { gateway } = await paidGateway([status(200, reply)], (origin) => ({ ...login, url: `${origin}/token` }));
    expect((await afterAttempts(gateway, 1)).attempts[0]?.error).toBe(error);
  });

  it.each([
    ['500', status(500)],
    ['401', status(401)],
    ['404', status(404)],
    ['a lost connection', reset],
  ])(
    'SYN-4 is tried again after 1, 2, 3, 4, 5 s and five times 60 s, then failed where it ends there: %s',
    async (_name, reply) => {
      const config = { callbackLateRetries: { forSeconds: 0 } };
      const { gateway, clock, partner } = await paidGateway([reply], undefined, config);
      for (const [i, waitMs] of LADDER_MS.entries()) {
        await eventually(`wait ${i + 1}`, () => partner.calls.length === i + 1 && clock.sleeping()[0] === waitMs);
        await clock.advance(waitMs - 1);
        expect(partner.calls).toHaveLength(i + 1);
        await clock.advance(1);
      }
      const last = await afterAttempts(gateway, LADDER_MS.length + 1);
      expect(last).toMatchObject({ status: 'failed', nextAttemptAt: null });
      await clock.advance(600_000);
      expect(partner.calls).toHaveLength(LADDER_MS.length + 1);
      expect(new Set(partner.calls.map((it) => it.body)).size).toBe(1);
    },
  );

  it('SYN-4 a callback keeps its retry schedule although the calendar clock is set back', async () => {
    const clock = new VirtualClock();
    let aheadMs = 7_200_000;
    const set = {
      monotonicMs: () => clock.monotonicMs(),
      wallMs: () => clock.wallMs() + aheadMs,
      sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
    };
    const partner = await partnerServer(status(500), processed);
    const gateway = await testGateway({ clock: set, callback: { url: partner.url }, config: { mqtt: null } });
    await gateway.testCallback();
    await clock.advance(0);
    await afterAttempts(gateway, 1);
    await eventually('the first wait', () => clock.sleeping().includes(1000));
    aheadMs = 0;
    await clock.advance(1000);
    expect((await afterAttempts(gateway, 2)).status).toBe('delivered');
  });

  it('SYN-4 a callback fails at once by 400', async () => {
    const { gateway, clock, partner } = await paidGateway([status(400, 'no')]);
    expect(await afterAttempts(gateway, 1)).toMatchObject({
      status: 'failed',
      attempts: [{ response: { status: 400, body: 'no' }, error: null }],
    });
    await clock.advance(100_000);
    expect(partner.calls).toHaveLength(1);
  });

  it('SYN-4 a callback is retried when nobody listens, and the log names why', async () => {
    const clock = new VirtualClock();
    const callback = { url: 'http://127.0.0.1:1/hook' };
    const gateway = await testGateway({ clock, callback, config: { mqtt: null } });
    await gateway.testCallback();
    await clock.advance(0);
    const { status: state, attempts } = await afterAttempts(gateway, 1);
    expect([state, attempts[0]?.error]).toEqual(['pending', expect.stringContaining('ECONNREFUSED')]);
  });
});

describe('SYN with a partner that does not answer', () => {
  it('SYN-4 a partner that does not answer gets few attempts at the same time, and another one its callback at once', async () => {
    const clock = new VirtualClock();
    const [dead, live] = [await partnerServer(silent), await partnerServer(processed)];
    const partners = [
      { username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount], callback: { url: dead.url } },
      {
        username: 'other',
        password: 'other-secret',
        accounts: [FOREIGN_ACCOUNT.bankAccount],
        callback: { url: live.url },
      },
    ];
    const gateway = await testGateway({ clock, config: { mqtt: null, partners } });
    for (let i = 0; i < 45; i += 1) await gateway.testCallback();
    await eventually('the attempts to the dead one', () => dead.calls.length === 20);
    const authorization = `Bearer ${await gateway.token('other')}`;
    const { bankAccount } = FOREIGN_ACCOUNT;
    await gateway.testCallback({ bankAccount }, { authorization });
    await eventually('delivered', async () => (await newest(gateway)).status === 'delivered');
    expect([dead.calls.length, live.calls.length]).toEqual([20, 1]);

    // A failed one is due again in a second; those that have waited longer come first.
    await clock.advance(10_000);
    await eventually('the next attempts', () => dead.calls.length === 40);
    expect(new Set(dead.calls.map((it) => it.body)).size).toBe(40);
  });
});

describe('SYN by hand', () => {
  const resend = (gateway: TestGateway, id: string) => gateway.mock<CallbackView>(`/callbacks/${id}/resend`, 'POST');

  it('SYN-5 a failed callback can be sent once more by hand', async () => {
    const { gateway, partner } = await paidGateway([status(400), processed]);
    const { id } = await afterAttempts(gateway, 1);
    const after = await resend(gateway, id);
    expect([after.status, after.attempts.map((it) => it.byHand)]).toEqual(['delivered', [false, true]]);
    expect(partner.calls[1]?.body).toBe(partner.calls[0]?.body);
  });

  it('SYN-5 a callback by hand ends the retry schedule when it is delivered', async () => {
    const { gateway, clock, partner } = await paidGateway([status(500), processed]);
    const { id } = await afterAttempts(gateway, 1);
    expect((await resend(gateway, id)).status).toBe('delivered');
    await eventually('no wait but that of the store', () => clock.sleeping().every((ms) => ms > 60_000));
    await clock.advance(100_000);
    expect(partner.calls).toHaveLength(2);
  });

  it('SYN-5 SYN-3 a callback by hand is not delivered again when a scheduled attempt becomes due meanwhile', async () => {
    const held = Promise.withResolvers<ServerResponse>();
    const { clock, gateway, partner, transactionId } = await paidGateway([
      status(500),
      (_call, response) => held.resolve(response),
      processed,
    ]);
    const { id } = await afterAttempts(gateway, 1);
    const resent = resend(gateway, id);
    const response = await held.promise;
    await clock.advance(1000);
    response.end('{}');
    await resent;
    // What is told of another payment is told after it.
    await gateway.testCallback();
    await eventually('the next callback', () => partner.calls.some((it) => !it.body.includes(transactionId)));
    expect(partner.calls.map((it) => it.body.includes(transactionId))).toEqual([true, true, false]);
  });

  it('SYN-4 SYN-5 a callback by hand that fails leaves the retry schedule as it is', async () => {
    const { gateway, clock, partner } = await paidGateway([status(500), status(400), processed]);
    const { id } = await afterAttempts(gateway, 1);
    expect((await resend(gateway, id)).status).toBe('pending');
    await clock.advance(999);
    expect(partner.calls).toHaveLength(2);
    await clock.advance(1);
    expect((await afterAttempts(gateway, 3)).status).toBe('delivered');
  });

  it('SYN-5 a callback by hand that fails leaves an earlier delivery as it is', async () => {
    const { gateway } = await paidGateway([processed, status(500)]);
    const { id } = await afterAttempts(gateway, 1);
    expect(await resend(gateway, id)).toMatchObject({ status: 'delivered', attempts: [{}, { byHand: true }] });
  });
});

describe('SYN limits', () => {
  it('SYN-6 a callback does not follow a redirect', async () => {
    const codes = [300, 301, 302, 303, 307, 308];
    const redirects = codes.map((code) => (_call: PartnerCall, response: ServerResponse) => {
      response.writeHead(code, { location: '/elsewhere' }).end();
    });
    const { gateway, partner } = await paidGateway(redirects);
    for (const at of codes.keys()) {
      if (at > 0) await gateway.testCallback();
      const { status: state, attempts } = await afterAttempts(gateway, 1);
      expect([state, attempts[0]?.response?.status]).toEqual(['pending', codes[at]]);
    }
    expect(partner.calls.map((it) => it.path)).toEqual(codes.map(() => '/hook/sync?x=1'));
  });

  const to = (location: string) => (_call: PartnerCall, response: ServerResponse) => {
    response.writeHead(301, { location }).end();
  };
  const LONG = `https://shop.example/${'x'.repeat(210)}`;
  it.each([
    ['https://shop.example/hook?key=secret-of-theirs#part', 'https://shop.example/hook'],
    ['/new/ho\u00e3ok?x', '{origin}/new/ho%C3%A3ok'],
    ['https://user:secret-of-theirs@shop.example/a', 'https://shop.example/a'],
    [LONG, `${LONG.slice(0, 200)}…`],
  ])('SYN-6 a callback says of a redirect where it leads: %s', async (location, shown) => {
    const { gateway, partner } = await paidGateway([to(location)]);
    const { warning } = await afterAttempts(gateway, 1);
    const address = shown.replace('{origin}', partner.origin);
    expect(warning).toBe(`HTTP 301 to ${address}: redirects are not followed; put that address into callback.url`);
  });

  it.each(['javascript:alert(1)', 'http://[', ''])(
    'SYN-6 quotes no Location that is no address: %j',
    async (location) => {
      const { gateway } = await paidGateway([to(location)]);
      expect((await afterAttempts(gateway, 1)).warning).toBe(
        'HTTP 301 without an http(s) address in Location: redirects are not followed; put the right address into callback.url',
      );
    },
  );

  it('SYN-6 a callback says the same of a token request that is redirected', async () => {
    const login = { kind: 'token', username: 'them', password: 'their-secret' };
    const { gateway } = await paidGateway([to('https://shop.example/token?a=b')], (origin) => ({
      ...login,
      url: `${origin}/token`,
    }));
    const { attempts } = await afterAttempts(gateway, 1);
    expect(attempts[0]?.error).toBe(
      'the token request was answered with HTTP 301 to https://shop.example/token: redirects are not followed; put that address into callback.auth.url',
    );
  });

  it('SYN-6 a callback reads an answer up to 64 KiB, and no further', async () => {
    let ended = false;
    const endless = (_call: PartnerCall, response: ServerResponse) => {
      const more = () => {
        while (!ended && response.write('x'.repeat(16_384)));
      };
      response.on('drain', more);
      response.on('close', () => {
        ended = true;
      });
      more();
    };
    const { gateway } = await paidGateway([endless]);
    const { status: state, warning, attempts } = await afterAttempts(gateway, 1);
    expect([state, warning]).toEqual(['delivered', expect.stringContaining('65536')]);
    expect(attempts[0]?.response?.body.length).toBeLessThanOrEqual(65_536);
    await eventually('the end of the connection', () => ended);
  });

  it('SYN-5 a callback stores an answer that no text may hold', async () => {
    const { gateway } = await paidGateway([status(500, 'a\0b')]);
    const { attempts } = await afterAttempts(gateway, 1);
    expect(attempts[0]?.response).toEqual({ status: 500, body: 'a\ufffdb' });
  });

  it('SYN-6 a callback reads an answer of exactly 64 KiB', async () => {
    const reply = { error: false, errorReason: '000', toastMessage: '', object: { reftransactionid: 'r' } };
    const text = JSON.stringify(reply).padEnd(65_536);
    const { gateway } = await paidGateway([status(200, text)]);
    expect(await afterAttempts(gateway, 1)).toMatchObject({ status: 'delivered', warning: null });
  });

  it.each<[string, Parameters<typeof partnerServer>[number]]>([
    ['no answer', silent],
    ['an answer without an end', (_call, response) => void response.write('{')],
  ])('SYN-6 ends an attempt with %s after 10 s', async (_name, reply) => {
    const { gateway, clock, partner } = await paidGateway([reply]);
    await eventually('the call', () => partner.calls.length === 1);
    await clock.advance(9999);
    expect((await newest(gateway)).attempts).toEqual([]);
    await clock.advance(1);
    const { status: state, attempts } = await afterAttempts(gateway, 1);
    expect([state, attempts[0]?.error]).toEqual(['pending', 'no answer within 10000 ms']);
  });

  it('SYN-6 a callback counts its token request into the 10 s', async () => {
    const login = { kind: 'token', username: 'them', password: 'their-secret' };
    const { gateway, clock, partner } = await paidGateway([silent], (origin) => ({ ...login, url: `${origin}/token` }));
    await eventually('the call', () => partner.calls.length === 1);
    await clock.advance(10_000);
    expect((await afterAttempts(gateway, 1)).attempts[0]?.error).toBe('no answer within 10000 ms');
  });
});
