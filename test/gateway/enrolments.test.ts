import { connectAsync } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { agreementKeyOf } from '../../src/protocol/enrolment.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { opened } from '../store/rows.ts';
import { AskingBox, loginStatus } from '../support/asking-box.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { ENGINES } from '../support/stores.ts';
import { admin } from './admin.ts';
import { directoryOf } from './directory.ts';
import { type TestGateway, type TestOptions, testGateway } from './harness.ts';

const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const CONFIGURED = { terminalCode: 'VVB000002', serialNumber: 'VVB900002', secret: 'Secret-of-box-number-2-of-tests' };
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** A gateway whose first box has no secret. */
const gatewayOf = ({ config, ...options }: TestOptions = {}) =>
  testGateway({ ...options, config: { boxes: [BOX, CONFIGURED], ...config } });

/** Asks a route for admins. Returns status and message. */
async function operate(gateway: TestGateway, path: string, body: object = {}, headers: Record<string, string> = {}) {
  const answer = await fetch(`${gateway.origin}/_mock${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return [answer.status, ((await answer.json()) as { message: string }).message];
}
const acceptCode = (gateway: TestGateway, code: string, terminalCode = BOX.terminalCode) =>
  operate(gateway, `/enrolments/${terminalCode}/accept`, { code });

/** A clock that a test may put forward, and that tells what is waited for. */
function movableClock(): Clock & { forward(ms: number): void; sleeps: number[] } {
  let byMs = 0;
  const sleeps: number[] = [];
  return {
    sleeps,
    ...systemClock,
    sleep: (ms, signal) => {
      sleeps.push(ms);
      return systemClock.sleep(ms, signal);
    },
    monotonicMs: () => systemClock.monotonicMs() + byMs,
    forward: (ms) => {
      byMs += ms;
    },
  };
}

describe('a box that asks to enrol', () => {
  it('ENR-2 ENR-3 ENR-4 ENR-5 a box that asks to enrol is listed, accepted by its code, and logs in with what was agreed on', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    expect(await gateway.mock('/enrolments')).toEqual([]);
    expect(await box.ask()).toMatchObject({ status: 201 });
    expect(await box.state()).toEqual({ state: 'pending' });
    const listed = { ...BOX, requests: 1, from: ['127.0.0.1'], since: TIME, replaces: false };
    expect(await gateway.mock('/enrolments')).toEqual([listed]);
    expect((await gateway.mock<{ hasSecret: boolean }[]>('/boxes'))[0]?.hasSecret).toBe(false);
    expect(await acceptCode(gateway, box.code.toLowerCase().replaceAll('-', ' '))).toEqual([200, '']);
    const secret = (await box.agree()) ?? '';
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, secret)).toBe(200);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, `${secret.slice(0, -1)}_`)).toBe(401);
    expect(await gateway.mock('/enrolments')).toEqual([]);
    const told = JSON.stringify([gateway.log, await gateway.mock('/boxes'), await gateway.mock('/about')]);
    expect(told).toContain('box-enrolled');
    for (const hidden of [box.code, secret, box.request.proof]) expect(told).not.toContain(hidden);
  });

  it('ENR-5 a box gets the answer to its request as often as it asks, and an admin may accept twice', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    const secret = await box.agree();
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    await box.ask();
    expect([await box.agree(), await box.agree()]).toEqual([secret, secret]);
  });

  it('ENR-5 a box is enrolled for good: another start of the gateway knows its secret', async () => {
    const dataDir = await temporaryFolder();
    const first = await gatewayOf({ dataDir });
    const box = new AskingBox(first.origin, BOX);
    await box.ask();
    await acceptCode(first, box.code);
    const secret = (await box.agree()) ?? '';
    await first.close();
    const second = await gatewayOf({ dataDir });
    expect(await loginStatus(second.origin, BOX.terminalCode, secret)).toBe(200);
    await second.close();
    const replaced = await gatewayOf({ dataDir, config: { boxes: [{ ...BOX, serialNumber: 'VVB900009' }] } });
    expect(await loginStatus(replaced.origin, BOX.terminalCode, secret)).toBe(401);
  });

  it('ENR-6 a box that enrols anew has its old secret refused at once, and its session ended', async () => {
    const gateway = await gatewayOf();
    const first = new AskingBox(gateway.origin, BOX);
    await first.ask();
    await acceptCode(gateway, first.code);
    const old = (await first.agree()) ?? '';
    const session = await connectFakeBox({ gateway, identity: { ...BOX, secret: old }, transport: 'http' });
    const again = new AskingBox(gateway.origin, BOX);
    await again.ask();
    expect(await gateway.mock('/enrolments')).toMatchObject([{ replaces: true }]);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, old)).toBe(200);
    await acceptCode(gateway, again.code);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, old)).toBe(401);
    await eventually('the end of the session', () => gateway.log.some((it) => it.event === 'box-expelled'));
    await eventually(
      'a box that is away',
      async () => !(await gateway.mock<{ online: boolean }[]>('/boxes'))[0]?.online,
    );
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await again.agree()) ?? '')).toBe(200);
    void session;
  });

  it.each(['mqtt', 'http'] as const)('ENR-6 MSG-8 is told over %s that it is forgotten', async (transport) => {
    const gateway = await gatewayOf();
    const asking = new AskingBox(gateway.origin, BOX);
    await asking.ask();
    await acceptCode(gateway, asking.code);
    const secret = (await asking.agree()) ?? '';
    const box = await connectFakeBox({ gateway, identity: { ...BOX, secret }, transport });
    expect(await operate(gateway, `/boxes/${BOX.terminalCode}/forget`)).toEqual([200, '']);
    expect(await box.next('refused')).toMatchObject({ code: 'NOT_REGISTERED' });
  });

  it('ENR-6 a box that enrols anew has every connection of its old secret ended, one that never said hello too', async () => {
    const gateway = await gatewayOf();
    const first = new AskingBox(gateway.origin, BOX);
    await first.ask();
    await acceptCode(gateway, first.code);
    const secret = (await first.agree()) ?? '';
    const client = await connectAsync(gateway.mqttUrl ?? '', {
      username: BOX.terminalCode,
      password: loginOf(secret),
      reconnectPeriod: 0,
    });
    onTestFinished(() => client.endAsync(true));
    const ended = new Promise<void>((resolve) => client.once('close', resolve));
    expect(await operate(gateway, `/boxes/${BOX.terminalCode}/forget`)).toEqual([200, '']);
    await ended;
  });

  it('ENR-6 a box whose secret was forgotten is refused, and can enrol anew', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    await acceptCode(gateway, box.code);
    const secret = (await box.agree()) ?? '';
    expect(await operate(gateway, `/boxes/${BOX.terminalCode}/forget`)).toEqual([200, '']);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, secret)).toBe(401);
    expect(await operate(gateway, `/boxes/${CONFIGURED.terminalCode}/forget`)).toEqual([400, 'ENROLMENT_CLOSED']);
    expect(await operate(gateway, '/boxes/VVB999999/forget')).toEqual([404, 'E35']);
  });

  it('ENR-4 a box gets its acceptance at the very end of its code when it asks after that', async () => {
    const clock = movableClock();
    const gateway = await gatewayOf({ clock });
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    clock.forward(590_000);
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    clock.forward(60_000);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await box.agree()) ?? '')).toBe(200);
    clock.forward(600_000);
    expect(await box.state()).toBeUndefined();
  });
});

describe('what is refused', () => {
  it.each([
    ['nobody knows', { ...BOX, terminalCode: 'VVB999999' }, 'E35'],
    ['has another serialNumber', { ...BOX, serialNumber: 'VVB900002' }, 'E35'],
    ['has its secret in the configuration', CONFIGURED, 'ENROLMENT_CLOSED'],
  ])('ENR-2 a box that %s', async (_what, names, code) => {
    const gateway = await gatewayOf();
    expect(await new AskingBox(gateway.origin, names).ask()).toEqual({
      status: 400,
      body: { status: 'FAILED', message: code },
    });
    expect(await gateway.mock('/enrolments')).toEqual([]);
    expect(gateway.refusals()).toEqual([code]);
  });

  it('ENR-2 REG-6 a gateway refuses to enrol a disabled box, and says so', async () => {
    const gateway = await gatewayOf({ config: { registry: 'store' } });
    await admin(gateway, 'POST', `boxes/${BOX.terminalCode}/disable`);
    expect(await new AskingBox(gateway.origin, BOX).ask()).toMatchObject({ body: { message: 'BOX_DISABLED' } });
    await admin(gateway, 'POST', `boxes/${BOX.terminalCode}/enable`);
    expect(await new AskingBox(gateway.origin, BOX).ask()).toMatchObject({ status: 201 });
  });

  it('ENR-2 a gateway refuses every box, where enrolment is closed', async () => {
    const gateway = await gatewayOf({ config: { enrolment: 'closed' } });
    expect(await new AskingBox(gateway.origin, BOX).ask()).toMatchObject({ body: { message: 'ENROLMENT_CLOSED' } });
  });

  it.each([
    ['no JSON object', []],
    ['a key of another size', { publicKey: 'AAAA' }],
    ['a key with which everybody agrees on the same', { publicKey: 'A'.repeat(43) }],
    ['no proof', { proof: undefined }],
  ])('ENR-2 a request with %s', async (_what, change) => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    const answer = Array.isArray(change)
      ? await fetch(`${gateway.origin}/box/v1/enrolments`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '[]',
        }).then(async (it) => ({ status: it.status, body: await it.json() }))
      : await box.ask(change);
    expect(answer).toEqual({ status: 400, body: { status: 'FAILED', message: 'E46' } });
    expect(await gateway.mock('/enrolments')).toEqual([]);
  });

  it('ENR-2 a gateway answers 30 requests of whoever tries out boxes, but still the box behind the same address', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    const tries = Array.from({ length: 40 }, (_, i) => ({ ...BOX, serialNumber: `VVB91${1000 + i}` }));
    const statuses: number[] = [];
    for (const names of tries) statuses.push((await new AskingBox(gateway.origin, names).ask()).status);
    expect(statuses.slice(0, 30)).toEqual(Array(30).fill(400));
    expect(statuses.filter((it) => it === 429).length).toBeGreaterThan(5);
    expect((await box.ask()).status).toBe(201);
    const elsewhere = new AskingBox(gateway.origin, BOX, '127.0.0.7');
    expect((await elsewhere.ask()).status).toBe(201);
  });

  it('ENR-3 a gateway refuses a wrong code, one that is none, one of another box, and all of them after ten', async () => {
    const gateway = await gatewayOf({
      config: { boxes: [BOX, { terminalCode: 'VVB000003', serialNumber: 'VVB900003' }] },
    });
    const box = new AskingBox(gateway.origin, BOX);
    const other = new AskingBox(gateway.origin, { terminalCode: 'VVB000003', serialNumber: 'VVB900003' });
    await box.ask();
    await other.ask();
    for (const code of ['', 'hello', `${box.code}0`]) {
      expect(await acceptCode(gateway, code)).toEqual([400, 'WRONG_CODE']);
    }
    expect(await acceptCode(gateway, box.code, 'VVB999999')).toEqual([404, 'E35']);
    expect(await operate(gateway, `/enrolments/${BOX.terminalCode}/accept`, { code: 7 })).toEqual([400, 'E46']);
    for (let i = 0; i < 9; i += 1) expect(await acceptCode(gateway, other.code)).toEqual([400, 'WRONG_CODE']);
    expect(await box.state()).toEqual({ state: 'pending' });
    expect(await acceptCode(gateway, other.code)).toEqual([400, 'WRONG_CODE']);
    expect(await box.state()).toEqual({ state: 'rejected' });
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'WRONG_CODE']);
    expect(await other.state()).toEqual({ state: 'pending' });
    const next = new AskingBox(gateway.origin, BOX);
    await next.ask();
    expect(await acceptCode(gateway, next.code)).toEqual([200, '']);
  });

  it('ENR-3 a gateway refuses a box that an admin rejects', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    expect(await operate(gateway, `/enrolments/${BOX.terminalCode}/reject`)).toEqual([200, '']);
    expect(await box.state()).toEqual({ state: 'rejected' });
    expect(await gateway.mock('/enrolments')).toEqual([]);
  });

  it('ENR-1 a gateway refuses a code after ten minutes', async () => {
    const clock = movableClock();
    const gateway = await gatewayOf({ clock });
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    clock.forward(599_000);
    expect(await box.state()).toEqual({ state: 'pending' });
    clock.forward(1_001);
    expect(await box.state()).toBeUndefined();
    expect(await gateway.mock('/enrolments')).toEqual([]);
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'WRONG_CODE']);
  });

  it('ENR-3 a gateway refuses a key that somebody on the way put in the place of the one of the box', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask({ publicKey: agreementKeyOf(Buffer.alloc(32, 9).toString('base64url')).publicKey });
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'WRONG_CODE']);
    expect((await gateway.mock<{ hasSecret: boolean }[]>('/boxes'))[0]?.hasSecret).toBe(false);
  });

  it('ENR-3 a gateway lets nobody enrol boxes without admin rights: without the admin token, or from a page of another origin', async () => {
    const open = await gatewayOf();
    const box = new AskingBox(open.origin, BOX);
    await box.ask();
    const foreign = { origin: 'http://evil.example' };
    for (const path of ['/enrolments/VVB000001/accept', '/enrolments/VVB000001/reject', '/boxes/VVB000001/forget']) {
      expect(await operate(open, path, { code: box.code }, foreign)).toEqual([401, 'E74']);
    }
    expect(await box.state()).toEqual({ state: 'pending' });
    const guarded = await gatewayOf({ config: { adminToken: 'A-long-admin-token-of-a-test' } });
    const other = new AskingBox(guarded.origin, BOX);
    await other.ask();
    expect((await fetch(`${guarded.origin}/_mock/enrolments`)).status).toBe(401);
    expect(await acceptCode(guarded, other.code)).toEqual([401, 'E74']);
    const token = { authorization: 'Bearer A-long-admin-token-of-a-test' };
    expect(await operate(guarded, '/enrolments/VVB000001/accept', { code: other.code }, token)).toEqual([200, '']);
  });
});

describe('an attacker who asks in the name of a box', () => {
  it('ENR-7 THR-24 an attacker crowds the request of a box out by none of its own: the code finds the box', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    for (let i = 0; i < 200; i += 1) await new AskingBox(gateway.origin, BOX, `127.0.0.${2 + (i % 9)}`).ask();
    expect(await box.state()).toEqual({ state: 'pending' });
    const [listed] = await gateway.mock<{ requests: number; from: string[] }[]>('/enrolments');
    expect([listed?.requests, listed?.from.length]).toEqual([201, 8]);
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    for (let i = 0; i < 20; i += 1) await new AskingBox(gateway.origin, BOX, '127.0.0.3').ask();
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await box.agree()) ?? '')).toBe(200);
  });

  it('ENR-7 THR-24 an attacker gets 64 requests in 20 minutes from one address, and the box from another all the same', async () => {
    const clock = movableClock();
    const gateway = await gatewayOf({ clock });
    const crowd = Array.from({ length: 65 }, () => new AskingBox(gateway.origin, BOX, '127.0.0.2'));
    const statuses: number[] = [];
    for (const it of crowd) statuses.push((await it.ask()).status);
    expect(statuses).toEqual([...Array<number>(64).fill(201), 429]);
    expect((await crowd[0]?.ask())?.status).toBe(201);
    const box = new AskingBox(gateway.origin, BOX);
    expect((await box.ask()).status).toBe(201);
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    clock.forward(1_200_000);
    expect((await crowd[64]?.ask())?.status).toBe(201);
  });

  it('ENR-7 THR-24 a box and an attacker who read its code off the screen are both refused, as nobody can tell them apart', async () => {
    const gateway = await gatewayOf();
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    const passerBy = new AskingBox(gateway.origin, BOX, '127.0.0.2', box.code);
    await passerBy.ask();
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'CODE_SHARED']);
    expect([await box.state(), await passerBy.state()]).toEqual([{ state: 'rejected' }, { state: 'rejected' }]);
    expect((await gateway.mock<{ hasSecret: boolean }[]>('/boxes'))[0]?.hasSecret).toBe(false);
  });

  it.each<[string, number]>([
    ['before others crowd in between', 0],
    ['and crowds it out first', 8],
    ['and crowds it out by many', 60],
  ])(
    'ENR-7 THR-24 who has read its code %s is told from it by nobody, while the box is kept from asking again',
    async (_how, others) => {
      const gateway = await gatewayOf();
      const box = new AskingBox(gateway.origin, BOX);
      await box.ask();
      for (let i = 0; i < others; i += 1) await new AskingBox(gateway.origin, BOX, '127.0.0.2').ask();
      const thief = new AskingBox(gateway.origin, BOX, '127.0.0.3', box.code);
      await thief.ask();
      for (let i = 0; i < others; i += 1) await new AskingBox(gateway.origin, BOX, '127.0.0.4').ask();
      expect(await acceptCode(gateway, box.code)).toEqual([400, 'CODE_SHARED']);
      expect(await thief.agree()).toBeUndefined();
      // Who knows that it was turned down asks anew under the same code, with another key.
      const again = new AskingBox(gateway.origin, BOX, '127.0.0.3', box.code);
      await again.ask();
      expect(await acceptCode(gateway, box.code)).toEqual([400, 'CODE_SHARED']);
      expect(await again.agree()).toBeUndefined();
      expect((await gateway.mock<{ hasSecret: boolean }[]>('/boxes'))[0]?.hasSecret).toBe(false);
    },
  );

  it('ENR-7 THR-24 a box and an attacker who asks as its code ends are both refused after that end', async () => {
    const clock = movableClock();
    const gateway = await gatewayOf({ clock });
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    clock.forward(599_000);
    const thief = new AskingBox(gateway.origin, BOX, '127.0.0.2', box.code);
    await thief.ask();
    clock.forward(2_000);
    expect(await box.state()).toBeUndefined();
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'CODE_SHARED']);
    expect(await thief.state()).toEqual({ state: 'rejected' });
  });

  it("ENR-7 an attacker's request is rejected with the acceptance of the box", async () => {
    const gateway = await gatewayOf();
    const crowd = Array.from({ length: 8 }, () => new AskingBox(gateway.origin, BOX, '127.0.0.2'));
    for (const it of crowd) await it.ask();
    const box = new AskingBox(gateway.origin, BOX);
    expect(await acceptCode(gateway, box.code)).toEqual([400, 'WRONG_CODE']);
    await box.ask();
    expect(await acceptCode(gateway, box.code)).toEqual([200, '']);
    expect(await crowd.at(-1)?.state()).toEqual({ state: 'rejected' });
  });
});

describe('an open gateway', () => {
  it('ENR-8 MSG-8 an open gateway leaves a box that is online enrolled, until it is offline, or a person decides', async () => {
    const gateway = await gatewayOf({ config: { enrolment: 'open' } });
    const first = new AskingBox(gateway.origin, BOX);
    await first.ask();
    const secret = (await first.agree('')) ?? '';
    const online = await connectFakeBox({ gateway, identity: { ...BOX, secret }, transport: 'http' });
    const second = new AskingBox(gateway.origin, BOX);
    await second.ask();
    expect(await second.state()).toEqual({ state: 'pending' });
    expect(await loginStatus(gateway.origin, BOX.terminalCode, secret)).toBe(200);
    expect(online.of('refused')).toEqual([]);
    await online.close();
    await eventually('the acceptance', async () => (await second.state())?.state === 'accepted');
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await second.agree('')) ?? '')).toBe(200);
  });

  it('ENR-8 an open gateway accepts a box that asks, at once and without a code', async () => {
    const gateway = await gatewayOf({ config: { enrolment: 'open' } });
    const box = new AskingBox(gateway.origin, BOX);
    await box.ask();
    expect(await box.state()).toMatchObject({ state: 'accepted', how: 'open' });
    expect(await box.agree()).toBeUndefined();
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await box.agree('')) ?? '')).toBe(200);
    expect(await new AskingBox(gateway.origin, CONFIGURED).ask()).toMatchObject({ status: 400 });
  });

  it.each([
    ['its pages', { http: { host: '0.0.0.0', allowPlain: true } }],
    ['its broker', { mqtt: { embedded: { host: '0.0.0.0', allowPlain: true } } }],
  ])('ENR-8 is none whose others can reach %s', (_what, change) => {
    const config = { dataDir: 'x', enrolment: 'open', ...change };
    expect(() => parseGatewayConfig(config, 'test')).toThrow(/test: enrolment: expected code where other machines/);
    expect(() => parseGatewayConfig({ ...config, enrolment: 'code' }, 'test')).not.toThrow();
  });
});

describe('nobody logs in', () => {
  it.each(['', 'undefined', 'null'])('ENR-5 as a box that has no secret yet: %j', async (secret) => {
    const gateway = await gatewayOf();
    expect(await loginStatus(gateway.origin, BOX.terminalCode, secret)).toBe(401);
  });

  it('ENR-5 nobody logs in by an enrolled secret where the configuration has one: that is the one that counts', async () => {
    const config = parseGatewayConfig({ dataDir: 'x', boxes: [BOX, CONFIGURED] }, 'test');
    const directory = directoryOf(config, { get: async () => 'enrolled' });
    const [enrolled, configured] = [
      await directory.box(BOX.terminalCode),
      await directory.box(CONFIGURED.terminalCode),
    ];
    expect(enrolled).toMatchObject({ secret: 'enrolled', enrols: true });
    expect(configured).toMatchObject({ secret: CONFIGURED.secret, enrols: false });
  });
});

for (const engine of ENGINES) {
  describe.skipIf(engine.missing)(`enrolled secrets on ${engine.name}`, () => {
    const place = engine.places();
    const row = {
      terminal_code: 'VVB000001',
      serial_number: 'VVB900001',
      secret: 'one',
      enrolled_at_ms: 1_790_000_000_000,
      wrapped: 1,
    };

    it('ENR-5 enrolled secrets are stored, replaced and forgotten, over restarts', async () => {
      const at = await place();
      const first = await opened(at);
      const secrets = first.boxSecrets;
      await secrets.keep(row);
      await secrets.keep({ ...row, terminal_code: 'VVB000002', serial_number: 'VVB900002' });
      await secrets.keep({ ...row, secret: 'two' });
      await secrets.forget('VVB000002');
      const known = (of: typeof secrets) =>
        Promise.all([of.get('VVB000001', 'VVB900001'), of.get('VVB000002', 'VVB900002')]);
      expect(await known(secrets)).toEqual(['two', undefined]);
      await first.close();
      const again = (await opened(at)).boxSecrets;
      expect(await known(again)).toEqual(['two', undefined]);
      expect(await again.get('VVB000001', 'VVB900009')).toBeUndefined();
    });
  });
}
