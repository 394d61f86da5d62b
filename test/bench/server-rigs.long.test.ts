// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import type { Target, TargetKind } from '../../src/bench/engine/target.ts';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { Rig } from '../../src/bench/serve/rig.ts';
import { eventually } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { type TestControl, testServer } from './serve.ts';
import { emulated, SEED, sharedTarget } from './setup.ts';

const EMULATED = { target: 'emulated' };

/** Emulated boxes, and each target that was opened. */
function watched(): { kind: () => TargetKind; targets: Target[] } {
  const targets: Target[] = [];
  const open: TargetKind['open'] = async (need) => {
    const target = await emulated().open(need);
    targets.push(target);
    return target;
  };
  return { kind: () => ({ ...emulated(), open }), targets };
}

async function opened(server: TestControl, body: object = EMULATED) {
  const { status, json } = await server.ask('POST', '/rigs', body);
  expect({ status, json }).toMatchObject({ status: 201 });
  const path = (json.links as { self: string }).self;
  const step = (value: unknown) => server.ask('POST', `${path}/steps`, value);
  return { path, json, step };
}

/** Asks and goes away once `until` settles. */
async function leaving(url: string, body: object, until: () => Promise<unknown>): Promise<void> {
  const gone = new AbortController();
  const asked = fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: gone.signal,
  });
  const failed = expect(asked).rejects.toThrow();
  await until();
  gone.abort();
  await failed;
}

describe('a rig', () => {
  it('a rig is as new after a reset, at the same addresses', async () => {
    const server = await testServer();
    const { path, json, step } = await opened(server, { ...EMULATED, seed: 9 });
    const chance = { set: { amount: '${random(1, 1000000)}' } };
    const amounts: unknown[] = [];
    for (let round = 1; round <= 2; round += 1) {
      await step(chance);
      const { json: pushed } = await step({ push: { amount: '${amount}', content: 'DH1', order: 'ONE' } });
      amounts.push((pushed.result as { amount: string }).amount);
      // A second order of this name would be refused, and a payment of the round before would be announced too.
      expect(await step({ pay: { amount: '${amount}', content: 'DH1' } })).toMatchObject({ status: 200 });
      const settled = await step({
        expect: { settled: true, announced: 1, callback: { payment: '${pay.transactionId}' } },
      });
      expect(settled).toMatchObject({ status: 200 });
      expect(await step({ expect: { state: 'showing', within: '1s' } })).toMatchObject({ status: 409 });
      await step({ fault: 'link-cut' });
      const { status, json: reset } = await server.ask('POST', `${path}/reset`);
      expect({ status, reset }).toEqual({ status: 200, reset: { ...json, steps: 0, failures: 0 } });
      const { json: callbacks } = await server.ask('GET', `${path}/callbacks`);
      expect(callbacks).toEqual({ callbacks: [], received: [] });
      expect(await step({ expect: { state: 'idle', screen: 'idle', online: true, announced: 0 } })).toMatchObject({
        status: 200,
      });
      expect(await step({ push: { amount: '${amount}', content: 'DH1' } })).toMatchObject({ status: 422 });
      await server.ask('POST', `${path}/reset`);
    }
    expect(amounts[1]).toBe(amounts[0]);
  });

  it('a rig is driven step by step, keeps variables, and shows what it has', async () => {
    const server = await testServer();
    const { path, json, step } = await opened(server, { ...EMULATED, variables: { amount: 50000 }, seed: 9 });
    expect(json).toMatchObject({ id: 'rig-1', target: 'emulated', seed: 9, steps: 0, idleMs: 600_000 });
    const pushed = await step({ push: { amount: '${amount}', content: 'DH1' }, as: 'first' });
    const order = pushed.json.result as Record<string, string>;
    expect(pushed).toMatchObject({ status: 200, json: { number: 1, result: { answer: 'SUCCESS', amount: '50000' } } });
    expect(await step({ expect: { state: 'showing', qr: '${first.qrCode}' } })).toMatchObject({
      status: 200,
      json: { number: 2, result: null },
    });
    const screen = await fetch(`${server.origin}${path}/boxes/1/screen.png`);
    const read = decodeQrTwice(Buffer.from(await screen.arrayBuffer()));
    expect(read).toEqual([order.qrCode, order.qrCode]);
    expect((await server.ask('GET', `${path}/boxes/1/screen.txt`)).text).toContain('50.000 ₫');
    expect((await server.ask('GET', `${path}/boxes/1/status`)).json).toMatchObject({
      state: 'showing',
      order: { orderId: order.orderId },
    });
    const { json: paid } = await step({ pay: { amount: 50000, content: '${push.content}' } });
    const { transactionId } = paid.result as { transactionId: string };
    await step({ expect: { state: 'paid', callback: { payment: '${pay.transactionId}' } } });
    const { json: told } = await server.ask('GET', `${path}/callbacks`);
    expect(told.callbacks).toMatchObject([{ transactionId, status: 'delivered' }]);
    expect(told.received).toMatchObject([{ transactionId, answered: 'ok' }]);
    expect((await server.ask('GET', path)).json).toMatchObject({ steps: 4, failures: 0 });
    const report = await server.ask('GET', `${path}/report.html`);
    expect(report.text).toContain('<p class="passed">passed</p>');
    expect(report.text).toContain('send-qr: SUCCESS');
    expect(report.text.match(/gateway → VVB000001 {2}show /g)).toHaveLength(1);
    const again = await server.ask('GET', `${path}/report.html`);
    expect(again.text.match(/gateway → VVB000001 {2}show /g)).toHaveLength(1);
    expect(await server.ask('DELETE', path)).toMatchObject({ status: 204 });
  });

  it('a rig answers 409 for what is not as expected, and goes on', async () => {
    const server = await testServer();
    const { path, step } = await opened(server);
    const error = 'VVB000001: state: expected "paid", is "idle", after 1s';
    const fix = `${path}/report.html shows what was seen`;
    expect(await step({ expect: { state: 'paid', within: '1s' } })).toMatchObject({
      status: 409,
      json: { error, fix },
    });
    const refused = await step({ push: { amount: 1, content: 'A', change: { checkSum: 'wrong' } } });
    expect(refused).toMatchObject({
      status: 409,
      json: { error: expect.stringMatching(/^push: expected SUCCESS, the answer is E39/) },
    });
    expect(
      await step({ push: { amount: 1, content: 'A', change: { checkSum: 'wrong' }, answer: 'E39' } }),
    ).toMatchObject({ status: 200 });
    expect((await server.ask('GET', path)).json).toMatchObject({ steps: 3, failures: 2 });
    const { text } = await server.ask('GET', `${path}/report.html`);
    expect(text).toMatch(
      /<p class="failed">failed: VVB000001: state: expected &quot;paid&quot;.*\(step 1\) <a href="#s1-problem">/,
    );
    expect(text).toMatch(/<tr class="problem" id="s1-problem">.*VVB000001: state: expected/);
  });

  it('a rig answers 422 for what is no step, which is no verdict', async () => {
    const server = await testServer();
    const { path, step } = await opened(server);
    const rows: [body: unknown, error: RegExp][] = [
      [[], /^step: expected/],
      [{ puch: {} }, /^step: unknown key puch; did you mean push\?/],
      [{ expect: { state: 'payd' } }, /^step: expect\.state: .*one of starting, .*; did you mean paid\?/],
      [{ wait: '1s', press: 'repeat' }, /^step: expected exactly one of/],
      [{ push: { amount: 'much', content: 'A' } }, /^step: push\.amount: expected whole đồng/],
      [{ expect: { qr: '${nix}' } }, /^step: \$\{nix\} is not defined here; known variables: account,/],
      [{ box: 2, press: 'repeat' }, /^step: box: there is no box 2: the rig has 1/],
      [{ fault: { box: 'killed' } }, /^step: target emulated cannot kill programs/],
      [{ repeat: { times: 1, steps: [{ expect: { golden: '../x.png' } }] } }, /^step: expect\.golden/],
    ];
    for (const [body, error] of rows) {
      expect(await step(body)).toMatchObject({ status: 422, json: { error: expect.stringMatching(error) } });
    }
    expect((await server.ask('GET', path)).json).toMatchObject({ failures: 0 });
  });

  it('a rig has boxes and a gateway of its own beside another', async () => {
    const server = await testServer();
    const [one, two] = await Promise.all([opened(server), opened(server, { ...EMULATED, boxes: 2 })]);
    await one.step({ push: { amount: 7000, content: 'ONE' } });
    expect(await one.step({ expect: { state: 'showing' } })).toMatchObject({ status: 200 });
    expect((await server.ask('GET', `${two.path}/boxes/2/status`)).json).toMatchObject({ terminalCode: 'VVB000002' });
    expect((await server.ask('GET', `${two.path}/boxes/3/status`)).json).toMatchObject({ fix: 'it has boxes 1 to 2' });
    expect(await two.step({ 'for each box': [{ expect: { state: 'idle' } }] })).toMatchObject({ status: 200 });
    // In the order in which they were ready, whichever that is.
    const ids = ((await server.ask('GET', '/rigs')).json.rigs as { id: string }[]).map(({ id }) => id);
    expect(ids.sort()).toEqual(['rig-1', 'rig-2']);
    await server.ask('DELETE', one.path);
    expect(await two.step({ box: 2, push: { amount: 1000, content: 'TWO' } })).toMatchObject({ status: 200 });
  });

  it("a rig sends callbacks to the caller's own program, and is driven by it", async () => {
    const server = await testServer();
    const partner = await startPartnerServer();
    const { path, json, step } = await opened(server, { ...EMULATED, callbackUrl: partner.url });
    expect(json.callbackUrl).toBe(partner.url);
    const { baseUrl } = json.gateway as { baseUrl: string };
    const { username, password } = json.partner as { username: string; password: string };
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const token = await fetch(`${baseUrl}/api/token_generate`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
    });
    expect(token.status).toBe(200);
    await step({ push: { amount: 50000, content: 'DH1' } });
    const { json: paid } = await step({ pay: { amount: 50000, content: 'DH1' } });
    const { transactionId } = paid.result as { transactionId: string };
    await eventually('the callback', () => partner.received.length > 0);
    expect(partner.received).toMatchObject([{ path: '/shop/paid', body: { transactionid: transactionId } }]);
    expect(await step({ expect: { callback: { payment: transactionId } } })).toMatchObject({ status: 200 });
    expect((await server.ask('GET', `${path}/callbacks`)).json).toMatchObject({ received: null });
  });

  it('a rig gives up a step whose caller goes away, and runs the next', async () => {
    const server = await testServer();
    const { path, step } = await opened(server);
    await step({ fault: { box: 'off' } });
    const endless = { repeat: { times: 10_000, steps: [{ expect: { unreachable: true, for: '1min' } }] } };
    const underWay = () => eventually('it is under way', async () => (await server.ask('GET', path)).json.steps === 2);
    await leaving(`${server.origin}${path}/steps`, endless, underWay);
    expect((await server.ask('GET', `${path}/boxes/1/status`)).status).toBe(503);
    expect(await step({ fault: { box: 'on' } })).toMatchObject({ status: 200, json: { number: 3 } });
    expect((await server.ask('GET', `${path}/report.html`)).text).toContain('given up: the caller went away');
  });

  it('a rig runs one step after the other, and lets a limited number wait', async () => {
    const server = await testServer();
    const { path, step } = await opened(server);
    await step({ fault: { box: 'off' } });
    const endless = { repeat: { times: 10_000, steps: [{ expect: { unreachable: true, for: '1min' } }] } };
    const first = step(endless);
    await eventually('it is under way', async () => (await server.ask('GET', path)).json.steps === 2);
    const others = Array.from({ length: 16 }, () => step({ set: { a: 1 } }));
    const refused = await Promise.race(others);
    expect(refused).toMatchObject({ status: 429, json: { error: '16 steps wait already at rig-1' } });
    await server.ask('DELETE', path);
    const ended = { status: 410, json: { error: 'rig-1 has ended: by DELETE' } };
    expect(await first).toMatchObject(ended);
    const after = await Promise.all(others);
    expect(after.filter(({ status }) => status === 410)).toHaveLength(15);
    expect(await step({ wait: '1s' })).toMatchObject(ended);
    expect(await server.ask('DELETE', path)).toMatchObject({ status: 204 });
  });

  it('a rig is ended when its caller goes away before it is open', async () => {
    const { kind, targets } = watched();
    const gate = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const open: TargetKind['open'] = async (need) => {
      asked.resolve();
      await gate.promise;
      // One that opens whoever has gone.
      return kind().open({ ...need, signal: undefined });
    };
    const server = await testServer({ kind: () => ({ ...kind(), open }) });
    await leaving(`${server.origin}/rigs`, {}, () => asked.promise);
    gate.resolve();
    await eventually('it was opened', () => targets.length === 1);
    await eventually('it is forgotten', async () => (await server.ask('GET', '/rigs/rig-1')).status === 410);
    expect((await server.ask('GET', '/rigs')).json).toEqual({ rigs: [] });
    await expect(fetch(`${targets[0]?.gateway.access.origin}/healthz`)).rejects.toThrow();
  });

  it('a rig is given up while it opens, when its caller goes away or the server ends', async () => {
    const given: AbortSignal[] = [];
    const open: TargetKind['open'] = ({ signal }) =>
      new Promise((_, reject) => {
        if (signal === undefined) return;
        given.push(signal);
        signal.addEventListener('abort', () => reject(signal.reason));
      });
    const server = await testServer({ kind: () => ({ ...emulated(), open }) });
    await leaving(`${server.origin}/rigs`, {}, () => eventually('it opens', () => given.length === 1));
    await eventually('it is given up', () => given[0]?.aborted);
    const refused = fetch(`${server.origin}/rigs`, { method: 'POST' }).catch(() => undefined);
    await eventually('another opens', () => given.length === 2);
    await server.close();
    expect(given[1]?.aborted).toBe(true);
    await refused;
  });

  it('a rig ends by itself when nobody asks, and logs it', async () => {
    const { kind, targets } = watched();
    const server = await testServer({ kind });
    const { path } = await opened(server, { idle: '500ms' });
    await eventually('it has ended', async () => (await server.ask('GET', '/rigs')).text === '{"rigs":[]}');
    expect(await server.ask('GET', path)).toMatchObject({
      status: 410,
      json: { error: 'rig-1 has ended: nobody asked for 500ms', fix: 'open another' },
    });
    await expect(fetch(`${targets[0]?.gateway.access.origin}/healthz`)).rejects.toThrow();
  });

  it('a rig is not idle while a request about it is not answered', async () => {
    const kind = await sharedTarget();
    const target = await kind.open({ boxes: 1, enrolled: true });
    const scenario = { ...parseScenario('{ name: x, steps: [{ wait: 1s }] }', 'x.yaml'), steps: [] };
    const rig = new Rig('x', { scenario, kind, target, seed: SEED, idleMs: 60_000, callbackUrl: undefined });
    await rig.use(async () => {
      await rig.step({ expect: { screen: 'idle', qr: 'none' } }, new AbortController().signal);
      expect(rig.idleInMs).toBe(60_000);
    });
    await eventually('it is idle', () => rig.idleInMs < 60_000);
    await rig.close('by the test');
  });

  it('the server opens a limited number of rigs', async () => {
    const kind = await sharedTarget();
    const server = await testServer({ kind: () => kind });
    for (let n = 1; n <= 4; n += 1) await opened(server);
    const refused = await server.ask('POST', '/rigs', EMULATED);
    expect(refused).toMatchObject({ status: 429, json: { fix: expect.stringContaining('rig-1, rig-2') } });
    await server.ask('DELETE', '/rigs/rig-1');
    await opened(server);
  });

  it('a rig may consist of boxes that already run', async () => {
    const server = await testServer();
    const { json } = await opened(server);
    const [box] = json.boxes as { url: string }[];
    const there = {
      gateway: (json.gateway as { origin: string }).origin,
      box: [box?.url ?? ''],
      ...(json.partner as object),
    };
    const { path, step } = await opened(server, there);
    expect((await server.ask('GET', path)).json).toMatchObject({ target: 'at', callbackUrl: null });
    expect(await step({ push: { amount: 3000, content: 'AT' } })).toMatchObject({ status: 200 });
    expect(await step({ fault: { box: 'off' } })).toMatchObject({ status: 422 });
    await server.ask('DELETE', path);
    expect((await server.ask('GET', '/rigs/rig-1/boxes/1/status')).json).toMatchObject({ state: 'showing' });
  });

  it.each([
    ['an unknown key', { taget: 'process' }, 422, /^body: unknown key taget/],
    ['too many boxes', { boxes: 51 }, 422, /^body: boxes: expected/],
    ['an idle time without an end', { idle: '48h' }, 422, /^body: idle: expected 24h at most/],
    ['an idle time without a unit', { idle: '30' }, 422, /^body: idle: expected a time with its unit/],
    ['a variable that is no name', { variables: { 'a b': 1 } }, 422, /^body: variables/],
    ['a callback to nowhere', { callbackUrl: 'here' }, 422, /^body: callbackUrl: expected an address/],
    [
      'a callback where a gateway runs',
      { gateway: 'http://127.0.0.1:9', box: ['http://127.0.0.1:9'], callbackUrl: 'http://127.0.0.1:9' },
      422,
      /^body: callbackUrl: the gateway runs already/,
    ],
    [
      'more boxes than run',
      { gateway: 'http://127.0.0.1:9', box: ['http://127.0.0.1:9'], boxes: 2 },
      422,
      /^body: needs 2 boxes, target at has 1/,
    ],
    [
      'a gateway that does not run',
      { gateway: 'http://127.0.0.1:9', box: ['http://127.0.0.1:9'] },
      503,
      /^nothing answers at http:\/\/127\.0\.0\.1:9/,
    ],
    ['a target that there is not', { target: 'moon' }, 422, /^--target moon: expected/],
  ])('is refused for %s', async (_what, body, status, error) => {
    const { ask } = await testServer();
    expect(await ask('POST', '/rigs', body)).toMatchObject({ status, json: { error: expect.stringMatching(error) } });
  });
});
