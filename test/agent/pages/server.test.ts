import { type IncomingMessage, request as startRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { decode } from 'fast-png';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { BoxApi, BoxStatus, PageSound } from '../../../src/device/agent/contract.ts';
import { noFaults } from '../../../src/device/agent/faults/none.ts';
import { startLocalHttp } from '../../../src/device/agent/pages/server.ts';
import type { PixelFrame } from '../../../src/device/display/contract.ts';
import type { Scene } from '../../../src/device/scene.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ConfigError } from '../../../src/lib/errors.ts';
import { strangerProblem } from '../../../src/lib/http-server.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { openInBrowser } from '../../support/browser.ts';
import { keptLog } from '../../support/kept-log.ts';
import { eventually } from '../../support/net.ts';
import { PROGRAMS, without } from '../../support/programs.ts';

const DISPLAY = { driver: 'browser', ok: true, reason: null, surface: '8×4 pixels', qr: null };
const STATUS: BoxStatus = {
  terminalCode: 'VVB000001',
  serialNumber: 'VVB900001',
  state: 'idle',
  online: true,
  order: null,
  lastPayment: null,
  fault: null,
  enrolment: null,
  display: DISPLAY,
  displays: [DISPLAY],
  voice: null,
  light: null,
  buttons: null,
  journal: { ok: true, reason: null, complete: true, setAside: [], unwritten: 0 },
  link: { transport: 'mqtt', gateway: 'mqtt://127.0.0.1:18830', plain: false, connectedAt: null, reason: null },
  version: '0.1.0',
};
const IDLE: Scene = {
  kind: 'idle',
  holder: { userBankName: 'NGUYEN VAN A', bankAccount: '0123456789', bankCode: 'MB' },
  terminalCode: 'VVB000001',
  online: true,
  plainLink: false,
};

function frameOf(red: number): PixelFrame {
  const data = new Uint8Array(8 * 4 * 4).fill(255);
  for (let at = 0; at < data.length; at += 4) data[at] = red;
  return { kind: 'pixels', width: 8, height: 4, data };
}

/** A box that does as the test says. */
async function box({ port = 0, token }: { port?: number; token?: string } = {}) {
  const listeners = new Set<() => void>();
  const { log, lines } = keptLog();
  const it = {
    status: STATUS,
    frame: undefined as PixelFrame | undefined,
    keys: [] as string[],
    sound: undefined as PageSound | undefined,
  };
  const box: BoxApi = {
    status: () => it.status,
    scene: () => IDLE,
    frame: () => it.frame,
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    press: (key) => it.keys.push(key),
    sound: () => it.sound,
    metrics: () => 'paybox_box_online 1\n',
  };
  const deps = { clock: systemClock, random: systemRandom, log, branch: noFaults };
  const server = await startLocalHttp({ host: '127.0.0.1', port, token }, box, deps);
  onTestFinished(() => server.close());
  const change = () => {
    for (const listener of listeners) listener();
  };
  return { ...server, it, lines, listeners, change, port: Number(new URL(server.origin).port) };
}

/** A request with headers that fetch would not let through. */
function ask(origin: string, path: string, method = 'GET', headers: Record<string, string> = {}) {
  return new Promise<{ response: IncomingMessage; body: string }>((resolve, reject) => {
    const request = startRequest(`${origin}${path}`, { method, headers }, (response) => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ response, body }));
    });
    request.on('error', reject);
    request.end();
  });
}

/** The events of `/events` as they come. */
async function watch(origin: string, headers: Record<string, string> = {}) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const response = await fetch(`${origin}/events`, { signal: stop.signal, headers });
  const seen: { frame: number; status: BoxStatus }[] = [];
  const it = { response, seen, ended: false };
  void (async () => {
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        if (block.startsWith('event: status\ndata: ')) seen.push(JSON.parse(block.slice(20)));
      }
    }
  })()
    .catch(() => undefined)
    .finally(() => {
      it.ended = true;
    });
  return it;
}

describe('the pages of a box', () => {
  it('the pages of a box give status, text and metrics, to GET and HEAD alike', async () => {
    const { origin } = await box();
    const status = await fetch(`${origin}/status`);
    expect(await status.json()).toEqual(STATUS);
    expect(await (await fetch(`${origin}/screen.txt?x=1`)).text()).toContain('NGUYEN VAN A');
    expect(await (await fetch(`${origin}/metrics`)).text()).toBe('paybox_box_online 1\n');
    const head = await fetch(`${origin}/status`, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(JSON.stringify(STATUS))));
    expect(await head.text()).toBe('');
  });

  it('the pages of a box give the picture that is on the screen now, named by its number', async () => {
    const { origin, it } = await box();
    expect((await fetch(`${origin}/screen.png`)).status).toBe(503);
    const tags = new Set<string | null>();
    for (const red of [10, 200]) {
      it.frame = frameOf(red);
      const response = await fetch(`${origin}/screen.png`);
      expect(response.headers.get('content-type')).toBe('image/png');
      expect(response.headers.get('cache-control')).toBe('no-store');
      const { width, height, data } = decode(await response.arrayBuffer());
      expect([width, height, data[0], data[1]]).toEqual([8, 4, red, 255]);
      tags.add(response.headers.get('etag'));
    }
    expect(tags.size).toBe(2);
    const [, newest] = [...tags];
    const again = await ask(origin, '/screen.png', 'GET', { 'if-none-match': String(newest) });
    expect([again.response.statusCode, again.body]).toEqual([304, '']);
  });

  it('the health of a box covers display, journal and refusals of the gateway, not whether it is online', async () => {
    const { origin, it } = await box();
    for (const online of [true, false]) {
      it.status = { ...STATUS, online };
      const well = await fetch(`${origin}/healthz`);
      expect([well.status, await well.json()]).toEqual([200, { ok: true, online }]);
    }
    it.status = { ...STATUS, display: { ...DISPLAY, ok: false, reason: 'cable out' } };
    const sick = await fetch(`${origin}/healthz`);
    expect([sick.status, await sick.json()]).toEqual([503, { ok: false, reason: 'display browser: cable out' }]);
    it.status = { ...STATUS, journal: { ...STATUS.journal, ok: false, reason: 'disk full' } };
    const forgetful = await fetch(`${origin}/healthz`);
    expect([forgetful.status, await forgetful.json()]).toEqual([503, { ok: false, reason: 'journal: disk full' }]);
    for (const code of ['SUPERSEDED', 'NOT_REGISTERED']) {
      it.status = { ...STATUS, online: false, state: 'fault', fault: { code, reason: 'by the gateway' } };
      const refused = await fetch(`${origin}/healthz`);
      expect([refused.status, await refused.json()]).toEqual([503, { ok: false, reason: `${code}: by the gateway` }]);
    }
  });

  it('the pages of a box answer unknown paths and other methods as HTTP asks', async () => {
    const { origin } = await box();
    for (const path of ['/nothing', '//', '/page/box.html', '/../package.json', '/%2e%2e/x']) {
      expect((await ask(origin, path)).response.statusCode, path).toBe(404);
    }
    for (const [method, path, allow] of [
      ['POST', '/status', 'GET, HEAD'],
      ['DELETE', '/', 'GET, HEAD'],
      ['POST', '/events', 'GET'],
      ['GET', '/keys/dismiss', 'POST'],
    ] as const) {
      const { response } = await ask(origin, path, method);
      expect([response.statusCode, response.headers.allow], `${method} ${path}`).toEqual([405, allow]);
    }
  });

  it('the pages of a box load nothing from outside and may not be framed', async () => {
    const { origin } = await box();
    for (const path of ['/', '/box.css', '/box.js']) {
      const response = await fetch(`${origin}${path}`);
      expect(response.headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'$/,
      );
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      const text = (await response.text()).replaceAll('http://www.w3.org/2000/svg', '');
      expect(text).not.toMatch(/https?:|\/\/\w+\.|innerHTML/);
    }
  });

  it('the pages of a box answer 500 for a failing box and go on', async () => {
    const { origin, it, lines } = await box();
    it.status = Object.defineProperty({ ...STATUS }, 'state', {
      enumerable: true,
      get: () => {
        throw new Error('broken');
      },
    });
    expect((await fetch(`${origin}/status`)).status).toBe(500);
    expect(lines.map(({ event }) => event)).toContain('page-failed');
    it.status = STATUS;
    expect((await fetch(`${origin}/status`)).status).toBe(200);
  });

  it('the pages of a box say which port is taken and which option changes it', async () => {
    const { port } = await box();
    const error = await box({ port }).catch((it: unknown) => it);
    expect(error).toBeInstanceOf(ConfigError);
    expect(error).toMatchObject({
      message: expect.stringContaining(String(port)),
      fix: expect.stringMatching(/http\.port.*--box-port/),
    });
  });
});

describe('the key of a box', () => {
  it('a key of a box is pressed from its own page and from programs of this machine', async () => {
    const { origin, it } = await box();
    for (const headers of [{}, { origin }]) {
      expect((await ask(origin, '/keys/dismiss', 'POST', headers as Record<string, string>)).response.statusCode).toBe(
        204,
      );
    }
    expect(it.keys).toEqual(['dismiss', 'dismiss']);
  });

  it('a key of a box is not pressed from a page of another origin', async () => {
    const { origin, it, port } = await box();
    for (const other of ['https://evil.example', 'null', `http://127.0.0.1:${port + 1}`, `http://localhost:${port}`]) {
      expect((await ask(origin, '/keys/dismiss', 'POST', { origin: other })).response.statusCode).toBe(403);
    }
    expect(it.keys).toEqual([]);
  });
});

it('a page whose name was made to point here reads and presses nothing', async () => {
  const { origin, it, port } = await box();
  for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil.example']) {
    const { response, body } = await ask(origin, '/status', 'GET', { host });
    expect([response.statusCode === 200, body.includes('VVB000001')], host).toEqual([false, false]);
    await ask(origin, '/keys/dismiss', 'POST', { host, origin: `http://${host}` });
  }
  expect(it.keys).toEqual([]);
  for (const host of [`localhost:${port}`, '[::1]:80', '192.168.1.2']) {
    expect((await ask(origin, '/status', 'GET', { host })).response.statusCode, host).toBe(200);
  }
});

it('THR-5 a page of another site sees nothing of the box, but may link to it', async () => {
  const { origin, it } = await box();
  const from = (site: string, mode: string, dest: string) => ({
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest,
  });
  for (const path of [
    '/status',
    '/events',
    '/screen.png',
    '/screen.txt',
    '/sound.wav',
    '/metrics',
    '/',
    '/keys/repeat',
  ]) {
    const method = path.startsWith('/keys') ? 'POST' : 'GET';
    for (const headers of [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      from('cross-site', 'no-cors', 'image'),
      from('cross-site', 'navigate', 'iframe'),
      from('same-site', 'cors', 'empty'),
    ]) {
      const { response, body } = await ask(origin, path, method, headers);
      expect([path, response.statusCode, body.includes('VVB')]).toEqual([path, 403, false]);
      expect(response.headers['cross-origin-resource-policy']).toBe('same-origin');
    }
  }
  expect((await ask(origin, '/status', 'GET', from('cross-site', 'navigate', 'document'))).response.statusCode).toBe(
    200,
  );
  expect(
    (await ask(origin, '/keys/repeat', 'POST', from('cross-site', 'navigate', 'document'))).response.statusCode,
  ).toBe(403);
  expect(it.keys).toEqual([]);
});

it('LIM-6 THR-4 the box takes no body and one Host', async () => {
  const { origin, it, port } = await box();
  const length = await ask(origin, '/keys/dismiss', 'POST', { 'content-length': '1', connection: 'close' }).catch(
    () => undefined,
  );
  expect(length?.response.statusCode).toBe(413);
  for (const [status, bytes] of [
    [403, 'POST /keys/dismiss HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n'],
    [400, 'POST /keys/dismiss HTTP/1.0\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ] as const) {
    const socket = connect(port, '127.0.0.1');
    socket.end(bytes);
    expect(await text(socket)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  }
  expect(it.keys).toEqual([]);
});

describe('the events of a box', () => {
  it('the event stream of a box begins with its state, and reports each change once', async () => {
    const { origin, it, change, listeners, close } = await box();
    const page = await watch(origin);
    expect(page.response.headers.get('content-type')).toContain('text/event-stream');
    await eventually('the first', () => page.seen.length === 1);
    expect(page.seen[0]).toEqual({ frame: 0, sound: 0, status: STATUS });
    it.frame = frameOf(1);
    it.status = { ...STATUS, state: 'showing' };
    for (let burst = 0; burst < 50; burst += 1) change();
    await eventually('the second', () => page.seen.length === 2);
    expect(page.seen[1]).toMatchObject({ frame: 1, status: { state: 'showing' } });
    it.frame = frameOf(2);
    change();
    await eventually('the third', () => page.seen.length === 3);
    expect(page.seen[2]?.frame).toBe(2);
    await close();
    await eventually('the end', () => page.ended);
    expect(listeners.size).toBe(0);
  });

  it('the event stream of a box has a limited number of pages, and room for another once one has gone', async () => {
    const { origin } = await box();
    const stops = Array.from({ length: 16 }, () => new AbortController());
    const pages = await Promise.all(stops.map(({ signal }) => fetch(`${origin}/events`, { signal })));
    expect(pages.map(({ status }) => status)).toEqual(stops.map(() => 200));
    const refused = await fetch(`${origin}/events`);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    for (const stop of stops) stop.abort();
    await eventually('room', async () => {
      const stop = new AbortController();
      const { status } = await fetch(`${origin}/events`, { signal: stop.signal });
      stop.abort();
      return status === 200;
    });
  });

  it('the event stream of a box drops a page that does not read', async () => {
    const { port, it, change, lines } = await box();
    const socket = connect(port, '127.0.0.1');
    onTestFinished(() => {
      socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.write('GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    it.status = { ...STATUS, fault: { code: 'DISPLAY_FAULT', reason: 'x'.repeat(500_000) } };
    await eventually('the page to be dropped', () => {
      change();
      return lines.some(({ event }) => event === 'slow-page-dropped');
    });
  });
});

const { missing, note } = without(PROGRAMS.chromium);
it.skipIf(missing)(`the page follows the box, in a browser and under its own policy${note}`, async () => {
  const { origin, it, change, close } = await box();
  it.frame = frameOf(9);
  const order = { orderId: 'DH1', amount: 1_250_000, content: '<b>Cà phê</b>', qrCode: 'x' };
  it.status = { ...STATUS, order: { ...order, expiresAt: '2026-01-02T03:04:05.000Z' } };
  const page = await openInBrowser(origin);
  const becomes = (expression: string) =>
    eventually(expression, async () => (await page.evaluate(expression)) === true);
  await becomes("document.body.dataset.link === 'online'");
  await becomes("document.getElementById('order').textContent.startsWith('1.250.000 ₫ · <b>Cà phê</b>')");
  await becomes("document.getElementById('screen').offsetWidth % 8 === 0");
  await becomes("document.getElementById('screen').className === 'crisp'");
  it.frame = frameOf(10);
  it.status = { ...STATUS, online: false };
  change();
  await becomes("document.body.dataset.link === 'offline'");
  await becomes("document.getElementById('screen').src.endsWith('?frame=2')");
  await page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true }))");
  await page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true }))");
  await page.evaluate("document.getElementById('dismiss').click()");
  await eventually('the keys', () => it.keys.length === 3);
  await close();
  await becomes("getComputedStyle(document.getElementById('lost')).display === 'block'");
  await becomes("!document.getElementById('screen').hasAttribute('src')");
});

/** As a proxy of this machine asks for a neighbour, who is to the box what one on another machine is. */
const NEIGHBOUR = { 'x-forwarded-for': '192.168.1.50' };
const ENROLMENT = { code: '7K2M-Q0XA-94TZ', url: 'http://10.0.0.1/#enrol/VVB000001/7K2M-Q0XA-94TZ', expiresAt: '' };
const statusOf = async (origin: string, path: string, method = 'GET', headers: Record<string, string> = {}) =>
  (await ask(origin, path, method, headers)).response.statusCode;

describe('from another machine', () => {
  it('THR-30 another machine without a token sees the screen, but presses no key and reads no payment', async () => {
    const { origin, it } = await box();
    it.frame = frameOf(7);
    it.sound = { number: 1, text: 'x', wav: new Uint8Array(1) };
    for (const path of ['/', '/box.css', '/screen.js', '/screen.png', '/screen.txt', '/healthz']) {
      expect([path, await statusOf(origin, path, 'GET', NEIGHBOUR)]).toEqual([path, 200]);
    }
    const page = await ask(origin, '/', 'GET', NEIGHBOUR);
    expect(page.body).toContain('screen.js');
    expect(page.body).not.toContain('dismiss');
    for (const path of ['/status', '/events', '/metrics', '/sound.wav', '/box.js', '/_mock/faults', '/nothing']) {
      const { response, body } = await ask(origin, path, 'GET', NEIGHBOUR);
      expect([path, response.statusCode, body.includes('http.token')]).toEqual([path, 403, true]);
    }
    for (const key of ['dismiss', 'repeat', 'history']) {
      expect(await statusOf(origin, `/keys/${key}`, 'POST', NEIGHBOUR)).toBe(403);
    }
    expect(it.keys).toEqual([]);
    expect(await statusOf(origin, '/login', 'POST', { ...NEIGHBOUR, authorization: 'Bearer x' })).toBe(403);
    expect(await statusOf(origin, '/status')).toBe(200);
  });

  it.each([
    ...['forwarded', 'via', 'x-real-ip', 'x-forwarded-proto', 'x-original-host', 'x-envoy-external-address'],
    ...['x-azure-clientip', 'x-appengine-user-ip', 'x-proxyuser-ip'],
  ])('THR-29 THR-30 is whoever a proxy of this machine names, by %s', async (name) => {
    const { origin, it } = await box();
    expect(await statusOf(origin, '/keys/dismiss', 'POST', { [name]: 'x' })).toBe(403);
    expect(it.keys).toEqual([]);
  });

  it.each<[string, string, boolean]>([
    ['127.0.0.1', '127.0.0.1', true],
    ['::ffff:127.0.0.1', '::ffff:127.0.0.1', true],
    ['::1', '::1', true],
    ['192.168.1.2', '192.168.1.2', true],
    ['192.168.1.50', '192.168.1.2', false],
    ['fe80::50', 'fe80::2', false],
    ['', '', false],
  ])('THR-30 is who comes from %j to %j, or not: %s', (remoteAddress, localAddress, isHere) => {
    const socket = { remoteAddress: remoteAddress || undefined, localAddress: localAddress || undefined } as Socket;
    expect(strangerProblem({ socket, headers: {} }) === undefined).toBe(isHere);
  });

  it('ENR-1 THR-24 another machine never sees the code of an enrolment, by status, events or screen, not even with the token', async () => {
    const token = 'a-token-of-a-box-in-a-test-0123456789';
    for (const headers of [{}, { authorization: `Bearer ${token}` }]) {
      const { origin, it, change } = await box('authorization' in headers ? { token } : {});
      it.frame = frameOf(7);
      it.status = { ...STATUS, enrolment: ENROLMENT };
      const elsewhere = { ...NEIGHBOUR, ...headers } as Record<string, string>;
      for (const path of ['/screen.png', '/screen.txt']) {
        expect([path, await statusOf(origin, path, 'GET', elsewhere)]).toEqual([path, 403]);
        expect([path, await statusOf(origin, path, 'GET', headers as Record<string, string>)]).toEqual([path, 200]);
      }
      const here = JSON.parse((await ask(origin, '/status', 'GET', headers as Record<string, string>)).body);
      expect(here).toMatchObject({ enrolment: ENROLMENT });
      if (!('authorization' in headers)) continue;
      expect((await ask(origin, '/status', 'GET', elsewhere)).body).not.toContain(ENROLMENT.code);
      const [near, far] = [await watch(origin, headers as Record<string, string>), await watch(origin, elsewhere)];
      await eventually('the first events', () => near.seen.length === 1 && far.seen.length === 1);
      change();
      await eventually('the next ones', () => near.seen.length === 2 && far.seen.length === 2);
      expect(near.seen.map(({ status }) => status.enrolment)).toEqual([ENROLMENT, ENROLMENT]);
      expect(far.seen.map(({ status }) => status.enrolment)).toEqual([null, null]);
    }
  });
});

describe('with a token', () => {
  const token = 'a-token-of-a-box-in-a-test-0123456789';

  it('THR-30 a box with a token shows and does nothing without it, also on this machine, but says whether it is healthy', async () => {
    const { origin, it } = await box({ token });
    it.frame = frameOf(7);
    for (const from of [{}, NEIGHBOUR]) {
      const bad = { ...from, authorization: `Bearer ${token}x` };
      for (const path of ['/status', '/events', '/screen.png', '/screen.txt', '/metrics', '/box.js', '/nothing']) {
        const { response, body } = await ask(origin, path, 'GET', bad);
        expect([path, response.statusCode, body.includes('VVB')]).toEqual([path, 401, false]);
        expect(response.headers['www-authenticate']).toBe('Bearer realm="paybox"');
      }
      expect(await statusOf(origin, '/keys/dismiss', 'POST', from)).toBe(401);
      expect(await statusOf(origin, '/healthz', 'GET', from)).toBe(200);
      expect(await statusOf(origin, '/', 'GET', from)).toBe(401);
      expect((await ask(origin, '/', 'GET', from)).body).toContain('login.js');
    }
    expect(it.keys).toEqual([]);
    const right = { ...NEIGHBOUR, authorization: `Bearer ${token}` };
    expect(await statusOf(origin, '/status', 'GET', right)).toBe(200);
    expect(await statusOf(origin, '/status', 'GET', { ...right, host: 'box.shop.example' })).toBe(200);
    expect(await statusOf(origin, '/keys/dismiss', 'POST', right)).toBe(204);
    expect(it.keys).toEqual(['dismiss']);
  });

  it('THR-30 a browser gets a cookie for the token of a box, which no script reads and no other site sends', async () => {
    const { origin, it, port } = await box({ token });
    const wrong = await ask(origin, '/login', 'POST', { authorization: 'Bearer no' });
    expect([wrong.response.statusCode, wrong.response.headers['set-cookie']]).toEqual([401, undefined]);
    const { response } = await ask(origin, '/login', 'POST', { origin, authorization: `Bearer ${token}` });
    const [set = ''] = response.headers['set-cookie'] ?? [];
    expect(set).toMatch(new RegExp(`^paybox-${port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict$`));
    expect(set).not.toContain(token);
    const cookie = set.split(';')[0] ?? '';
    expect(await statusOf(origin, '/keys/repeat', 'POST', { origin, cookie: `a=b; ${cookie}` })).toBe(204);
    expect(await statusOf(origin, '/keys/repeat', 'POST', { cookie: `${cookie}x` })).toBe(401);
    expect(await statusOf(origin, '/keys/repeat', 'POST', { origin: 'http://evil.example', cookie })).toBe(403);
    expect(it.keys).toEqual(['repeat']);
    const other = await box({ token });
    const elsewhere = cookie.replace(String(port), String(other.port));
    expect(await statusOf(other.origin, '/status', 'GET', { cookie: elsewhere })).toBe(401);
  });
});

it.skipIf(missing)(`THR-30 a person logs in at the page of a box${note}`, async () => {
  const token = 'a-token-of-a-box-in-a-test-0123456789';
  const guarded = await box({ token });
  guarded.it.frame = frameOf(9);
  const page = await openInBrowser(guarded.origin);
  const becomes = (expression: string) =>
    eventually(expression, async () => (await page.evaluate(expression)) === true);
  const type = (text: string) =>
    page.evaluate(
      `document.getElementById('token').value = '${text}'; document.querySelector('#login button').click()`,
    );
  await becomes("document.querySelector('#login button')?.disabled === false");
  await type('wrong');
  await becomes("document.getElementById('problem').textContent.includes('not the token')");
  await type(token);
  await becomes("document.body.dataset.link === 'online'");
  await page.evaluate("document.getElementById('dismiss').click()");
  await eventually('the key', () => guarded.it.keys.length === 1);
});
