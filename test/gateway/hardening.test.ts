import { type AddressInfo, connect, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { Callers } from '../../src/lib/callers.ts';
import { Connections } from '../../src/lib/connections.ts';
import { createHttpServer, ResponseScheduler } from '../../src/lib/http-server.ts';
import { eventually } from '../support/net.ts';
import { GENERATE, kept, order, type TestGateway, testGateway } from './harness.ts';

const SAFE = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

describe('every answer of the gateway', () => {
  it('is for no other site', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    for (const [path, status] of [
      ...[['/', 200] as const, ['/docs', 200] as const, ['/console.js', 200] as const],
      ...['/openapi.json', '/healthz', '/metrics', '/_mock/boxes', '/_mock/events'].map((it) => [it, 200] as const),
      ['/_mock/callbacks/none', 404],
      ['/vqr/api/token_generate', 405],
      ['/box/v1/stream', 401],
      ['/nothing', 404],
    ] as const) {
      const stop = new AbortController();
      const answer = await fetch(`${gateway.origin}${path}`, { signal: stop.signal });
      const headers = Object.fromEntries(answer.headers);
      expect({ path, status: answer.status, ...headers }).toMatchObject({ path, status, ...SAFE });
      const policy = headers['content-security-policy'] ?? '';
      expect(policy).toMatch(/^default-src 'none';.*frame-ancestors 'none'$/);
      expect([path, /script-src/.test(policy)]).toEqual([path, ['/', '/docs'].includes(path)]);
      stop.abort();
    }
    expect((await fetch(`${gateway.origin}/%zz`)).status).toBe(404);
  });

  it('THR-5 gives no other origin leave to ask, however it asks', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    for (const path of ['/_mock/orders/DH001/pay', `/vqr${GENERATE}`, '/healthz', '/box/v1/messages']) {
      for (const method of ['OPTIONS', 'GET', 'POST']) {
        const headers = { origin: 'https://evil.example', 'access-control-request-method': 'POST' };
        const answer = await fetch(`${gateway.origin}${path}`, { method, headers });
        const allowed = [...answer.headers.keys()].filter((it) => it.startsWith('access-control'));
        expect([path, method, allowed]).toEqual([path, method, []]);
        if (method === 'OPTIONS') expect(answer.status).toBe(405);
      }
    }
  });

  it('only the picture of a QR may be put into pages of partners', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    const { body } = await gateway.generate();
    const { headers } = await fetch(String(body.qrLink));
    expect(headers.get('cross-origin-resource-policy')).toBe('cross-origin');
    expect(headers.get('content-security-policy')).toBe("default-src 'none'; frame-ancestors 'none'");
  });
});

it('partners may reach the service by any name', async () => {
  const gateway = await testGateway({ config: { mqtt: null } });
  const authorization = `Bearer ${await gateway.token()}`;
  for (const host of ['gateway.example', 'vqr.shop.vn:443', '10.0.0.7:8800', '[2001:db8::1]:8800', 'a_b.local']) {
    const answer = await raw(gateway, [
      `POST /vqr${GENERATE} HTTP/1.1`,
      `Host: ${host}`,
      'Sec-Fetch-Site: cross-site',
      `Authorization: ${authorization}`,
      'Content-Type: application/json',
      `Content-Length: ${JSON.stringify(order()).length}`,
      'Connection: close',
      '',
      JSON.stringify(order()),
    ]);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain(`"qrLink":"http://${host}/qr/`);
  }
});

/** Lines to the gateway as they are, and all that it answers until it hangs up. */
async function raw(gateway: TestGateway, lines: readonly string[]): Promise<string> {
  const socket = connect(Number(new URL(gateway.origin).port), '127.0.0.1');
  socket.write(lines.join('\r\n'));
  return text(socket);
}

describe('what two servers could read differently is refused and pays nothing', () => {
  const pay = ['POST /_mock/orders/DH001/pay HTTP/1.1', 'Host: 127.0.0.1'];
  const smuggled = [...pay, 'Connection: close', '', ''].join('\r\n');

  /** A gateway with an order; whether an answer refuses, and nothing has changed. */
  async function withOrder() {
    const gateway = await testGateway({ config: { mqtt: null } });
    await gateway.generate();
    const before = await kept(gateway);
    return async (lines: readonly string[], expected: RegExp) => {
      const answer = await raw(gateway, lines);
      expect([lines, answer]).toEqual([lines, expect.stringMatching(expected)]);
      expect(answer).not.toContain('SUCCESS');
      expect(await kept(gateway)).toEqual(before);
    };
  }

  it('ERR-2 THR-4 lengths, chunks and lines that servers take apart differently', async () => {
    const expectUnread = await withOrder();
    for (const rest of [
      ['Content-Length: 5', 'Transfer-Encoding: chunked', '', '0', '', smuggled],
      ['Transfer-Encoding: chunked', 'Content-Length: 5', '', '0', '', smuggled],
      ['Content-Length: 0', `Content-Length: ${smuggled.length}`, '', smuggled],
      ['Transfer-Encoding: xchunked', '', '0', '', smuggled],
      ['Transfer-Encoding : chunked', '', '0', '', smuggled],
      ['X: a', ' b', '', smuggled],
      ['X: a\nY: b', '', smuggled],
      ['X: a\0b', '', smuggled],
      ['Transfer-Encoding: chunked', '', 'zz', smuggled],
    ]) {
      const lines = ['POST /vqr/api/token_generate HTTP/1.1', 'Host: 127.0.0.1', ...rest];
      await expectUnread(lines, /^HTTP\/1\.1 40[01] /);
    }
    const chunked = ['Connection: keep-alive', 'Transfer-Encoding: chunked', '', '0', '', smuggled];
    await expectUnread(['POST /_mock/orders/DH001/pay HTTP/1.0', 'Host: 127.0.0.1', ...chunked], /^HTTP\/1\.1 400 /);
  });

  it('ERR-2 THR-4 two hosts, the right one first', async () => {
    const expectUnread = await withOrder();
    const lines = [...pay, 'Host: evil.example', 'Content-Length: 0', 'Connection: close', '', ''];
    await expectUnread(lines, /^HTTP\/1\.1 400 /);
  });

  it('ERR-2 THR-4 an address of another host in the request line', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    const answer = await raw(gateway, [
      'GET http://evil.example/_mock/boxes HTTP/1.1',
      'Host: 127.0.0.1',
      'Connection: close',
      '',
      '',
    ]);
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('connections beyond the limit', () => {
  /** A server with room for so many, which answers `/` at once and `/wait` never. */
  async function server(max: number, callers = new Callers()) {
    const asked: (string | undefined)[] = [];
    const it = createHttpServer(
      ({ url }, answer) => {
        asked.push(url);
        if (url === '/') answer.end('ok');
        else if (url === '/big') answer.end(Buffer.alloc(20_000_000));
        else answer.write('begun');
      },
      { connectionsMax: max, callers },
    );
    await new Promise<void>((resolve) => it.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      it.close();
      it.closeAllConnections();
    });
    const { port } = it.address() as AddressInfo;
    const open = async (from: string, first = '', headers = '') => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: from });
      socket.on('error', () => undefined);
      const state = { socket, closed: false, answered: '' };
      socket.once('close', () => {
        state.closed = true;
      });
      socket.on('data', (chunk: Buffer) => {
        state.answered += chunk.toString();
      });
      await new Promise((resolve) => socket.once('connect', resolve));
      if (first !== '') {
        socket.write(`GET ${first} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
        await eventually('an answer', () => state.answered.includes('200 OK') || state.closed);
      }
      return state;
    };
    return { open, asked };
  }
  const closed = (all: readonly { closed: boolean; socket: Socket }[]) => all.map((it) => it.closed);

  it('LIM-6 THR-1 take the place of the oldest of whoever has most, never of another', async () => {
    const { open } = await server(5);
    const honest = [await open('127.0.0.1', '/'), await open('127.0.0.1', '/')];
    const hostile = [await open('127.0.0.2'), await open('127.0.0.2'), await open('127.0.0.2')];
    const more = [await open('127.0.0.2'), await open('127.0.0.2')];
    await eventually('two to go', () => hostile[0]?.closed && hostile[1]?.closed);
    expect([closed(honest), closed(hostile), closed(more)]).toEqual([
      [false, false],
      [true, true, false],
      [false, false],
    ]);
    const third = await open('127.0.0.1', '/');
    expect([third.closed, third.answered]).toEqual([false, expect.stringContaining('ok')]);
  });

  it('LIM-6 THR-1 take one that is being answered where the address that has most has no other, so that a newcomer gets in', async () => {
    const { open } = await server(6);
    const hostile: Awaited<ReturnType<typeof open>>[] = [];
    for (let i = 0; i < 5; i += 1) hostile.push(await open('127.0.0.2', '/wait'));
    const idle = await open('127.0.0.1', '/');
    const first = await open('127.0.0.3', '/');
    await eventually('one to go', () => closed([...hostile, idle]).includes(true));
    expect([first.answered, closed(hostile), idle.closed]).toEqual([
      expect.stringContaining('ok'),
      [true, false, false, false, false],
      false,
    ]);
  });

  it('LIM-6 THR-1 take of one address first the mute, then the idle, then those that are being answered', async () => {
    const { open } = await server(3);
    const stream = await open('127.0.0.1', '/wait');
    const idle = await open('127.0.0.1', '/');
    const mute = await open('127.0.0.1');
    const next = await open('127.0.0.1', '/wait');
    await eventually('the mute one to go', () => mute.closed);
    await open('127.0.0.1', '/wait');
    await eventually('the idle one to go', () => idle.closed);
    expect([stream.closed, next.closed]).toEqual([false, false]);
    await open('127.0.0.1', '/');
    await eventually('the oldest to go', () => stream.closed);
    expect(next.closed).toBe(false);
  });

  it('LIM-6 THR-1 count one in use less than one that is not: many behind one address are not cut off by few mute ones', async () => {
    const { open } = await server(8);
    const streams: Awaited<ReturnType<typeof open>>[] = [];
    for (let i = 0; i < 6; i += 1) streams.push(await open('127.0.0.1', '/wait'));
    const mute = [await open('127.0.0.2'), await open('127.0.0.2')];
    const next = await open('127.0.0.1', '/');
    await eventually('a mute one to go', () => mute[0]?.closed);
    expect([next.answered, closed(streams).includes(true)]).toEqual([expect.stringContaining('ok'), false]);
  });

  it('LIM-6 LIM-8 THR-35 count for the caller whom a trusted proxy names, with each request anew', async () => {
    const { open } = await server(6, new Callers(['127.0.0.8']));
    const forward = (caller: string) => open('127.0.0.8', '/', `X-Forwarded-For: ${caller}\r\n`);
    const honest = [await forward('192.0.2.1'), await forward('192.0.2.1')];
    const reused = await forward('192.0.2.1');
    reused.socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.6\r\n\r\n');
    await eventually('both answers', () => reused.answered.match(/200 OK/g)?.length === 2);
    const hostile = [await forward('192.0.2.6'), await forward('192.0.2.6'), await forward('192.0.2.6')];
    await forward('192.0.2.9');
    await eventually('one to go', () => closed([...honest, reused, ...hostile]).includes(true));
    expect([closed(honest), closed([reused, ...hostile])]).toEqual([
      [false, false],
      [true, false, false, false],
    ]);
  });

  it.each([
    ['does not take what was answered', 'GET /big HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['still sends its body', 'POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1'],
  ])('LIM-6 THR-1 take whoever %s before whoever is being answered', async (_what, bytes) => {
    const { open, asked } = await server(2);
    const stream = await open('127.0.0.1', '/wait');
    const hostile = await open('127.0.0.1');
    hostile.socket.pause();
    hostile.socket.write(bytes);
    await eventually('the request to be there', () => asked.length === 2);
    await open('127.0.0.1', '/');
    hostile.socket.resume();
    await eventually('the hostile one to go', () => hostile.closed);
    expect(stream.closed).toBe(false);
  });

  it('THR-1 of a network of IPv6 count as one address', () => {
    const connections = new Connections(3);
    const socketOf = (remoteAddress: string, remotePort: number) =>
      Object.defineProperties(new Socket(), {
        remoteAddress: { value: remoteAddress },
        remotePort: { value: remotePort },
      });
    const all = ['2001:db8::1', '2001:db8::2', '192.0.2.1', '192.0.2.2'].map(socketOf);
    for (const it of all) connections.add(it);
    expect(all.map((it) => it.destroyed)).toEqual([true, false, false, false]);
  });
});

describe('long answers', () => {
  it('THR-1 thousands of long answers asked for at once are sent in turns, each soon and all of them', async () => {
    const turns = new ResponseScheduler();
    let bytes = 0;
    let most = 0;
    let given = 0;
    let turn = setImmediate(function next() {
      most = Math.max(most, bytes);
      bytes = 0;
      turn = setImmediate(next);
    });
    onTestFinished(() => clearImmediate(turn));
    const asked = Array.from({ length: 4_000 }, async (_, at) => {
      const size = 100_000 * (1 + (at % 15));
      await turns.next(size, `10.0.0.${at % 3}`);
      bytes += size;
      given += 1;
    });
    await Promise.all(asked);
    expect(given).toBe(4_000);
    expect(most).toBeLessThanOrEqual(1_500_000);
  });

  it('THR-1 of an address that waits for many keep no other address waiting for all of them', async () => {
    const turns = new ResponseScheduler();
    const order: string[] = [];
    const ask = async (address: string) => {
      await turns.next(1_000_000, address);
      order.push(address);
    };
    const many = Array.from({ length: 20 }, () => ask('10.0.0.1'));
    await Promise.all([...many, ask('10.0.0.2')]);
    expect(order.indexOf('10.0.0.2')).toBeLessThan(3);
    expect(order).toHaveLength(21);
  });

  it('THR-1 of the gateway wait for their turn, short ones do not', async () => {
    const next = vi.spyOn(ResponseScheduler.prototype, 'next');
    onTestFinished(() => next.mockRestore());
    const gateway = await testGateway({ config: { mqtt: null } });
    for (const path of ['/', '/console.js', '/healthz', '/docs/swagger-ui-bundle.js']) {
      const answer = await fetch(`${gateway.origin}${path}`);
      expect([path, answer.status, (await answer.text()).length > 65_536]).toEqual([
        path,
        200,
        path.includes('bundle'),
      ]);
    }
    expect(next.mock.calls).toEqual([[expect.any(Number), '127.0.0.1']]);
  });
});
