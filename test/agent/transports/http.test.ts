import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { InboundMessage } from '../../../src/device/agent/contract.ts';
import { httpTransport } from '../../../src/device/agent/transports/http.ts';
import { INCOMING_MAX } from '../../../src/device/agent/transports/message-queue.ts';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { createLogger } from '../../../src/lib/log.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { BOX_PATHS } from '../../../src/protocol/http-api.ts';
import type { UpMessage } from '../../../src/protocol/messages.ts';
import { down, fakeHttpGateway, IDENTITY } from '../../support/fake-gateway.ts';
import { lightHttp } from '../../support/light-transport.ts';
import { eventually, freePort } from '../../support/net.ts';
import { NO_BOX, NO_SEAL } from '../../support/no-seal.ts';

/** Opens a connection by the sockets of a whole box, or by those of light ones. */
type Open = typeof httpTransport.open;

interface Change {
  secret?: string;
  clock?: Clock;
}

function boxOver(open: Open, url: string, change: Change = {}) {
  const lines: string[] = [];
  const out = new Writable({
    write: (chunk, _encoding, done) => {
      lines.push(String(chunk));
      done();
    },
  });
  const abort = new AbortController();
  const identity = { ...IDENTITY, secret: change.secret ?? IDENTITY.secret };
  const log = createLogger(out, systemClock, 'json');
  const io = {
    clock: change.clock ?? systemClock,
    log,
    identity,
    sessionId: randomUUID(),
    seal: NO_SEAL,
    shard: 0,
    heard: () => undefined,
    noShard: () => false,
    box: NO_BOX,
  };
  const options = httpTransport.options.parse({ url, connectTimeoutMs: 20_000 });
  const opening = open(options, io, abort.signal);
  opening.catch(() => undefined);
  onTestFinished(async () => {
    await (await opening.catch(() => undefined))?.close();
  });
  return { opening, abort, events: () => lines.map((line) => JSON.parse(line).event) };
}

async function drain(incoming: AsyncIterable<InboundMessage>): Promise<{ messages: InboundMessage[]; reason: string }> {
  const messages: InboundMessage[] = [];
  try {
    for await (const message of incoming) messages.push(message);
    return { messages, reason: '' };
  } catch (error) {
    return { messages, reason: String(error) };
  }
}

const SESSION = randomUUID();
const shown = (): UpMessage => {
  return { v: 1, id: randomUUID(), sentAtMs: 1, sessionId: SESSION, type: 'shown', pushId: randomUUID() };
};
const withdraw = () => down({ type: 'withdraw', pushId: randomUUID(), why: 'timeout' });
const event = (data: string) => `data: ${data}\n\n`;

describe.each<[string, Open]>([
  ['the HTTP transport', httpTransport.open],
  ['the HTTP transport of light boxes', lightHttp.open],
])('%s', (_of, open) => {
  const box = (url: string, change?: Change) => boxOver(open, url, change);

  it('names what is wrong with its options instead of throwing', () => {
    for (const url of ['', 'not a url', 'http://', 'ftp://gateway.example', 'http://gateway.example/path']) {
      const issues = httpTransport.options.safeParse({ url }).error?.issues;
      expect(issues, url).toMatchObject([{ path: ['url'], message: expect.stringMatching(/address|origin/) }]);
    }
  });

  it('BOX-HTTP-1 BOX-HTTP-2 reads a stream that it opens and posts messages in order over one connection', async () => {
    const gateway = await fakeHttpGateway();
    const session = await box(gateway.url).opening;
    const told = withdraw();
    const text = event(encode(told));
    gateway.write(text.slice(0, 40));
    gateway.write(text.slice(40));
    expect((await session.incoming[Symbol.asyncIterator]().next()).value).toEqual(told);
    const ups = Array.from({ length: 20 }, shown);
    await Promise.all(ups.map((up) => session.send(up)));
    expect(gateway.received).toEqual(ups);
    expect(gateway.sockets.size).toBe(2);
    expect(gateway.faults).toEqual([]);
  });

  it('BOX-HTTP-3 ends with the stream, and ends the stream when it is closed', async () => {
    const gateway = await fakeHttpGateway();
    const first = await box(gateway.url).opening;
    const ending = drain(first.incoming);
    for (const stream of gateway.streams.values()) stream.end();
    expect((await ending).reason).toContain('ended the stream');
    await expect(first.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
    const second = await box(gateway.url).opening;
    const closing = drain(second.incoming);
    await Promise.all([second.close(), second.close()]);
    expect(await closing).toEqual({ messages: [], reason: '' });
    await eventually('the end of the stream', () => gateway.streams.size === 0);
  });

  it('BOX-HTTP-3 gives up a stream that is silent for 15 s; a comment keeps it', async () => {
    const gateway = await fakeHttpGateway();
    const clock = new VirtualClock();
    const session = await box(gateway.url, { clock }).opening;
    const told = withdraw();
    await clock.advance(9_000);
    gateway.write(`: alive\n\n${event(encode(told))}`);
    const messages = session.incoming[Symbol.asyncIterator]();
    expect((await messages.next()).value).toEqual(told);
    await clock.advance(14_900);
    expect(gateway.streams.size).toBe(1);
    const next = messages.next();
    const refused = expect(next).rejects.toThrow(/was silent for 15000 ms/);
    await clock.advance(200);
    await refused;
    await eventually('the end of the stream', () => gateway.streams.size === 0);
  });

  it('BOX-HTTP-3 gives up when its post is not answered within 5 s, or the stream is not known', async () => {
    const answers = [
      [() => true, /took no post: not done within 5000 ms/],
      [undefined, /does not know this stream any more/],
    ] as const;
    for (const [answer, reason] of answers) {
      const gateway = await fakeHttpGateway();
      const clock = new VirtualClock();
      const session = await box(gateway.url, { clock }).opening;
      gateway.answerWith((_request, response) => {
        if (answer === undefined) response.writeHead(409).end();
        return true;
      });
      const sending = expect(session.send(shown())).rejects.toThrow(reason);
      await eventually('its deadline', () => clock.sleeping().length > 0);
      await clock.advance(answer === undefined ? 0 : 5_000);
      await sending;
    }
  });

  it('BOX-HTTP-3 gives each post its whole 5 s, however long it waits for those before it', async () => {
    const gateway = await fakeHttpGateway();
    const clock = new VirtualClock();
    const session = await box(gateway.url, { clock }).opening;
    const held: ServerResponse[] = [];
    gateway.answerWith((request, response) => {
      request.resume();
      held.push(response);
      return true;
    });
    const sent = Promise.all([shown(), shown(), shown()].map((message) => session.send(message)));
    sent.catch(() => undefined);
    for (let n = 0; n < 3; n += 1) {
      const response = await eventually(`post ${n + 1}`, () => held[n]);
      await clock.advance(4_000);
      response.writeHead(202).end();
    }
    await sent;
  });

  it('BOX-HTTP-4 tells wrong credentials, a lost stream, an illegal message and a busy gateway apart', async () => {
    const gateway = await fakeHttpGateway();
    const wrong = box(gateway.url, { secret: 'another-secret' });
    await expect(wrong.opening).rejects.toMatchObject({ code: 'NOT_REGISTERED', severity: 'retryable' });
    await expect(wrong.opening).rejects.not.toThrow(/another-secret/);
    const session = await box(gateway.url).opening;
    for (const [status, expected] of [
      [409, { code: 'LINK_LOST', severity: 'retryable' }],
      [400, { code: 'E46', severity: 'fatal' }],
      [401, { code: 'NOT_REGISTERED', severity: 'retryable' }],
      [503, { code: 'LINK_LOST', severity: 'retryable' }],
      [500, { code: 'PEER_MISSING', severity: 'retryable' }],
    ] as const) {
      gateway.answerWith((request, response) => {
        if (request.url !== BOX_PATHS.messages) return false;
        request.resume();
        response.writeHead(status).end();
        return true;
      });
      await expect(session.send(shown())).rejects.toMatchObject(expected);
    }
  });

  it('MSG-3 logs illegal messages and goes on; an event without an end is cut off', async () => {
    const gateway = await fakeHttpGateway();
    const { opening, events } = box(gateway.url);
    const session = await opening;
    const told = withdraw();
    gateway.write(event('{') + event('{"v":1}') + event(encode({ ...told, v: 2 } as never)));
    gateway.write(event(JSON.stringify({ ...told, colour: 'red' })));
    const messages = session.incoming[Symbol.asyncIterator]();
    expect((await messages.next()).value).toEqual(told);
    expect(events()).toEqual(['message-refused', 'message-refused', 'message-refused']);
    const ending = expect(messages.next()).rejects.toMatchObject({ code: 'LINK_LOST' });
    gateway.write(`data: ${'x'.repeat(50_000)}`);
    gateway.write('x'.repeat(50_000));
    await ending;
  });

  it('MSG-9 stays when more wait than it keeps, which its gateway says again', async () => {
    const gateway = await fakeHttpGateway();
    const session = await box(gateway.url).opening;
    gateway.write(Array.from({ length: INCOMING_MAX + 50 }, () => event(encode(withdraw()))).join(''));
    const last = withdraw();
    await session.send(shown());
    const messages = session.incoming[Symbol.asyncIterator]();
    for (let read = 0; read < INCOMING_MAX; read += 1) expect((await messages.next()).done).toBe(false);
    gateway.write(event(encode(last)));
    expect((await messages.next()).value).toEqual(last);
  });

  it('sends a message again, once, when an idle connection turns out to be closed', async () => {
    const gateway = await fakeHttpGateway();
    const session = await box(gateway.url).opening;
    await session.send(shown());
    let resets = 0;
    gateway.answerWith((request) => {
      if (request.url !== BOX_PATHS.messages || resets > 0) return false;
      resets += 1;
      request.socket.resetAndDestroy();
      return true;
    });
    const again = shown();
    await session.send(again);
    expect(gateway.received[1]).toEqual(again);
    resets = 0;
    gateway.answerWith((request) => {
      resets += 1;
      request.socket.resetAndDestroy();
      return true;
    });
    await expect(session.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
    expect(resets).toBe(2);
  });

  it('says what is there instead of a gateway, and what to do', async () => {
    const away = box(`http://127.0.0.1:${await freePort()}`);
    await expect(away.opening).rejects.toMatchObject({ code: 'PEER_MISSING', severity: 'retryable' });
    const gateway = await fakeHttpGateway();
    const answers: [number, Record<string, string>][] = [
      [200, { 'content-type': 'text/html' }],
      [302, { location: '/elsewhere' }],
      [404, {}],
    ];
    for (const [status, headers] of answers) {
      gateway.answerWith((_request, response) => {
        response.writeHead(status, headers).end('<html>');
        return true;
      });
      await expect(box(gateway.url).opening).rejects.toThrow(new RegExp(`answered ${status} to the stream`));
    }
  });

  it('stops dialling when told to, and when there is no answer in time', async () => {
    const gateway = await fakeHttpGateway();
    let asked = 0;
    gateway.answerWith(() => {
      asked += 1;
      return true;
    });
    const stopped = box(gateway.url);
    await eventually('the request', () => asked === 1);
    stopped.abort.abort(new Error('the box stops'));
    await expect(stopped.opening).rejects.toThrow(/the box stops/);
    const clock = new VirtualClock();
    const late = box(gateway.url, { clock });
    await eventually('the request', () => asked === 2);
    await clock.advance(20_000);
    await expect(late.opening).rejects.toThrow(/not done within 20000 ms/);
  });
});

it('lets light boxes share their idle connections, but never a connection in use', async () => {
  const gateway = await fakeHttpGateway();
  const opener = await httpTransport.openLight?.(systemClock);
  if (opener === undefined) expect.fail('no light boxes');
  onTestFinished(() => opener.close());
  const open: Open = (options, io, signal) => opener.open(options, io, signal);
  const boxes = await Promise.all(Array.from({ length: 5 }, () => boxOver(open, gateway.url).opening));
  for (const box of boxes) await box.send(shown());
  expect(gateway.sockets.size).toBe(boxes.length + 1);
  // One that is never answered holds up nobody else.
  let asked = 0;
  gateway.answerWith(({ url }) => {
    asked += url === BOX_PATHS.messages ? 1 : 0;
    return asked === 1;
  });
  const [silent, ...others] = boxes;
  const unanswered = expect(silent?.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
  await eventually('the post', () => asked === 1);
  await Promise.all(others.map((box) => box.send(shown())));
  await silent?.close();
  await unanswered;
  for (const box of others) await box.send(shown());
  expect(gateway.faults).toEqual([]);
});
