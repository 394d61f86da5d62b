import { once } from 'node:events';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority, issue, validFor } from '../../src/device/setup/pki.ts';
import { Callers } from '../../src/lib/callers.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { EventStream } from '../../src/lib/event-stream.ts';
import { readBody } from '../../src/lib/http-client.ts';
import { createHttpServer, type HttpServerOptions } from '../../src/lib/http-server.ts';
import { eventually } from '../support/net.ts';

/** Turns of the event loop in which a request that must not begin would have begun. */
const TURNS = 50;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

async function serve(handler: RequestListener, options: Partial<HttpServerOptions> = {}) {
  const server = createHttpServer(handler, { connectionsMax: 512, ...options });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const open = async (from = '127.0.0.1') => {
    const socket = options.tls
      ? connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect({ port, host: '127.0.0.1', localAddress: from, allowHalfOpen: true });
    socket.on('error', () => undefined);
    await once(socket, options.tls ? 'secureConnect' : 'connect');
    return new Client(socket);
  };
  return { server, open };
}

/** A connection, and what was answered on it. */
class Client {
  readonly socket: Socket;
  text = '';
  isOver = false;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk: Buffer) => {
      this.text += chunk.toString('latin1');
    });
    for (const event of ['end', 'close']) {
      socket.once(event, () => {
        this.isOver = true;
      });
    }
    onTestFinished(() => void socket.destroy());
  }

  get statuses(): number[] {
    return [...this.text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
  }
}

/** A server whose requests wait until the test answers them. */
async function waiting(options: Partial<HttpServerOptions> = {}) {
  const begun: { url: string; request: IncomingMessage; response: ServerResponse }[] = [];
  const { open, server } = await serve((request, response) => {
    begun.push({ url: request.url ?? '', request, response });
  }, options);
  const begin = (count: number) => eventually(`${count} requests`, () => begun.length === count);
  /** The requests that have begun when nothing more happens. */
  const quiet = async () => {
    for (let turn = 0; turn < TURNS; turn += 1) await nextTurn();
    return begun.map(({ url }) => url);
  };
  return { begun, begin, quiet, open, server };
}

async function certificate() {
  const authority = await createAuthority('test', validFor(systemClock.wallMs(), 1));
  return issue(authority, 'localhost', { kind: 'server', hosts: ['127.0.0.1'] }, validFor(systemClock.wallMs(), 1));
}

describe('a connection', () => {
  it.each(['http', 'https'])('THR-1 has one request at a time, and its answers come in order, over %s', async (how) => {
    const { begun, begin, quiet, open } = await waiting(how === 'http' ? {} : { tls: await certificate() });
    const client = await open();
    client.socket.write(get('/1') + get('/2') + get('/3'));
    await begin(1);
    expect(await quiet()).toEqual(['/1']);
    begun[0]?.response.end('one');
    await begin(2);
    client.socket.write(get('/4'));
    expect(await quiet()).toEqual(['/1', '/2']);
    for (const [at, text] of [
      [1, 'two'],
      [2, 'three'],
      [3, 'four'],
    ] as const) {
      await begin(at + 1);
      begun[at]?.response.end(text);
    }
    await eventually('the last answer', () => client.text.includes('four'));
    expect([...client.text.matchAll(/one|two|three|four/g)].map(([it]) => it)).toEqual(['one', 'two', 'three', 'four']);
  });

  it('THR-1 has one request at a time however its bytes are cut, also where a body looks like requests', async () => {
    const inner = get('/inside');
    const requests = [
      get('/a'),
      `POST /b HTTP/1.1\r\nHost: x\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${inner.length.toString(16)}\r\n${inner}\r\n2\r\n\r\n\r\n0\r\nX: y\r\n\r\n`,
      `POST /d HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n`,
      `\r\n${get('/e')}`,
      `POST /f HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n\r\n\r`,
      get('/g'),
    ].join('');
    const expected = ['/a ', `/b ${inner}`, `/c ${inner}\r\n`, '/d ', '/e ', '/f \r\n\r', '/g '];
    let seen: string[] = [];
    let [now, most] = [0, 0];
    const { open } = await serve(async (request, response) => {
      now += 1;
      most = Math.max(most, now);
      const body = await readBody(request, 1_000);
      seen.push(`${request.url} ${body}`);
      await nextTurn();
      response.once('finish', () => {
        now -= 1;
      });
      response.end('ok');
    });
    for (let cut = 0; cut <= requests.length; cut += 5) {
      seen = [];
      const client = await open();
      client.socket.setNoDelay(true);
      client.socket.write(requests.slice(0, cut));
      await nextTurn();
      client.socket.write(requests.slice(cut));
      await eventually('all answers', () => client.statuses.length === expected.length);
      expect([cut, seen]).toEqual([cut, expected]);
      client.socket.destroy();
    }
    expect(most).toBe(1);
  });

  it('THR-1 a client that half-closes after several requests still gets the answers before the last', async () => {
    const { open } = await serve((_request, response) => void setImmediate(() => response.end('ok')));
    const client = await open();
    client.socket.end(get('/1') + get('/2') + get('/3'));
    await eventually('the end', () => client.isOver);
    expect(client.statuses.length).toBeGreaterThanOrEqual(2);
  });

  it('LIM-6 has 100 requests, and is closed with the last answer', async () => {
    const { open } = await serve((_request, response) => response.end('ok'));
    const client = await open();
    client.socket.write(get('/').repeat(150));
    await eventually('the end', () => client.isOver);
    expect(client.statuses).toEqual(Array.from({ length: 100 }, () => 200));
  });

  it.each([
    ['two blank lines', '\r\n\r\n'],
    ['line feeds', '\n\n\n'],
  ])('LIM-6 is not kept open by %s, at its beginning or after an answer', async (_what, blank) => {
    const { open } = await serve((_request, response) => response.end('ok'));
    const [mute, idle] = [await open(), await open()];
    idle.socket.write(`\r\n${get('/')}\r\n`);
    await eventually('the answer', () => idle.statuses.length === 1);
    idle.socket.write(get('/'));
    await eventually('the second answer', () => idle.statuses.length === 2);
    for (const { socket } of [mute, idle]) socket.write(blank);
    await eventually('the end', () => mute.isOver && idle.isOver);
    expect(idle.statuses).toEqual([200, 200]);
  });

  const chunks = (count: number, size: number) => `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`.repeat(count);
  const CHUNKED = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';

  it.each([
    ['one byte', chunks(1_000, 1)],
    ['one byte with extensions', `1;a=${'b'.repeat(200)}\r\na\r\n`.repeat(30)],
    ['one byte behind an answer that did not wait for it', chunks(1_000, 1), 'early'],
  ])('THR-1 THR-41 LIM-6 is ended by a body in chunks of %s', async (_what, body, when = 'late') => {
    let read = 0;
    const { open } = await serve((request, response) => {
      request.on('data', () => (read += 1));
      if (when === 'early') response.writeHead(404).end();
    });
    const client = await open();
    client.socket.write(CHUNKED + body);
    await eventually('the end', () => client.isOver);
    expect(client.statuses).toEqual(when === 'early' ? [404] : []);
    expect(read).toBeLessThanOrEqual(820);
  });

  it('LIM-6 takes a body in chunks of 100 bytes, also where the chunks look like line ends', async () => {
    const { open } = await serve(async (request, response) => response.end(await readBody(request, 100_000)));
    const client = await open();
    const lines = '4\r\n\r\n\r\n\r\n'.repeat(3);
    client.socket.write(`${CHUNKED}${chunks(640, 100)}${lines}0\r\n\r\n${get('/')}`);
    await eventually('both answers', () => client.statuses.length === 2);
    expect(client.text).toContain(`${'a'.repeat(64_000)}\r\n\r\n\r\n\r\n\r\n\r\n`);
    expect(client.statuses).toEqual([200, 200]);
  });

  it('goes on after a request with Expect, of which it knows 100-continue only', async () => {
    const { open } = await serve(async (request, response) => response.end(await readBody(request, 100)));
    const client = await open();
    const post = (expect: string) => `POST / HTTP/1.1\r\nHost: x\r\nExpect: ${expect}\r\nContent-Length: 2\r\n\r\n`;
    client.socket.write(post('100-continue'));
    await eventually('leave to go on', () => client.statuses.length === 1);
    client.socket.write(`hi${get('/')}${post('more')}hi${get('/')}`);
    await eventually('all answers', () => client.statuses.length === 5);
    expect(client.statuses).toEqual([100, 200, 200, 200, 200]);
  });

  it('THR-1 with a stream has no other request before the end of the stream, and its end is noticed', async () => {
    const urls: (string | undefined)[] = [];
    let stream: EventStream | undefined;
    const { open } = await serve((request, response) => {
      urls.push(request.url);
      if (request.url === '/stream') {
        stream = new EventStream(response, { clock: systemClock, heartbeatMs: 10_000, unreadBytesMax: 1_000 });
        stream.send({ data: 'first' });
      } else response.end('after');
    });
    const [ended, gone] = [await open(), await open()];
    ended.socket.write(get('/stream') + get('/next'));
    await eventually('the first event', () => ended.text.includes('data: first'));
    ended.socket.write(get('/next'));
    stream?.send({ data: 'second' });
    await eventually('the second event', () => ended.text.includes('data: second'));
    expect(urls).toEqual(['/stream']);
    stream?.end();
    await eventually('both requests behind it', () => ended.text.split('after').length === 3);
    gone.socket.write(get('/stream') + get('/next'));
    await eventually('the event', () => gone.text.includes('data: first'));
    gone.socket.resetAndDestroy();
    await stream?.ended;
    expect(urls).toEqual(['/stream', '/next', '/next', '/stream']);
  });

  it('THR-1 is not read far ahead: what a client sends behind an unanswered request stays with it', async () => {
    const { begin, quiet, open } = await waiting();
    const { socket } = await open();
    socket.write(get('/1'));
    await begin(1);
    const sent = 64 * 1_048_576;
    // Unlike the client's own buffer, those of the system end somewhere.
    for (let bytes = 0; bytes < sent; bytes += 1_048_576) socket.write(get('/2').padEnd(1_048_576, ' '));
    await quiet();
    expect(socket.writableLength).toBeGreaterThan(sent / 2);
    expect(await quiet()).toEqual(['/1']);
  });

  it('does not keep a server from closing, with requests that have not begun', async () => {
    const { begun, begin, open, server } = await waiting();
    const client = await open();
    client.socket.write(get('/1') + get('/2'));
    await begin(1);
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
    await eventually('the end', () => client.isOver);
    expect(begun.map(({ url }) => url)).toEqual(['/1']);
  });
});

describe('connections that send many requests at once', () => {
  const CONNECTIONS = 100;
  const EACH = 50;

  it.each([
    ['another address', '127.0.0.3', 40],
    ['their own address', '127.0.0.2', 2 * CONNECTIONS],
  ])('THR-1 take turns with each other and with one of %s', async (_whose, from, mostBefore) => {
    const begun: (string | undefined)[] = [];
    const { open } = await serve(({ url }, response) => {
      begun.push(url);
      response.end('ok');
    });
    const flooders = await Promise.all(Array.from({ length: CONNECTIONS }, () => open('127.0.0.2')));
    const neighbour = await open(from);
    // The server accepts one connection after the other: it has accepted all of them once each has an answer.
    for (const { socket } of [...flooders, neighbour]) socket.write(get('/hello'));
    await eventually('all connections', () => begun.length === CONNECTIONS + 1);
    begun.length = 0;
    for (const [at, { socket }] of flooders.entries()) socket.write(get(`/${at}`).repeat(EACH));
    await eventually('the flood', () => begun.length > 0);
    const before = begun.length;
    neighbour.socket.write(get('/neighbour'));
    await eventually('all answers', () => begun.length === CONNECTIONS * EACH + 1);
    expect(begun.indexOf('/neighbour') - before).toBeLessThan(mostBefore);
    // No connection is more than a few requests ahead of another one.
    const half = begun.slice(0, begun.length / 2);
    const counts = flooders.map((_, at) => half.filter((url) => url === `/${at}`).length);
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(EACH / 2);
  });
});

describe('connections of a trusted proxy', () => {
  const CONNECTIONS = 20;
  const EACH = 50;
  const of = (caller: string, path: string) => get(path).replace('\r\n\r\n', `\r\nX-Forwarded-For: ${caller}\r\n\r\n`);

  it('THR-1 LIM-8 take turns by the caller of each request, whose request came before on the same connection', async () => {
    const begun: (string | undefined)[] = [];
    const answer: RequestListener = ({ url }, response) => {
      begun.push(url);
      response.end('ok');
    };
    const { open } = await serve(answer, { callers: new Callers(['127.0.0.2']) });
    const pool = await Promise.all(Array.from({ length: CONNECTIONS + 1 }, () => open('127.0.0.2')));
    for (const { socket } of pool) socket.write(of('192.0.2.1', '/flood'));
    await eventually('all connections', () => begun.length === CONNECTIONS + 1);
    begun.length = 0;
    const [shared, ...others] = pool;
    for (const { socket } of others) socket.write(of('192.0.2.1', '/flood').repeat(EACH));
    shared?.socket.write(of('192.0.2.2', '/neighbour'));
    await eventually('all answers', () => begun.length === CONNECTIONS * EACH + 1);
    expect(begun.indexOf('/neighbour')).toBeLessThan(CONNECTIONS);
  });
});

describe('a request whose end two servers could find at different places', () => {
  const smuggled = get('/smuggled');

  it.each([
    ['chunks in HTTP/1.0', 'POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['and kept alive', 'POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['and a length', 'POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n'],
  ])('THR-4 is refused, and what follows is not read: %s', async (_what, bytes) => {
    const urls: (string | undefined)[] = [];
    const { open } = await serve(({ url }, response) => {
      urls.push(url);
      response.end('ok');
    });
    const client = await open();
    client.socket.write(`${bytes}${smuggled}`);
    await eventually('the end', () => client.isOver);
    expect([urls, client.statuses]).toEqual([[], [400]]);
  });
});
