import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { httpTransport } from '../../../src/device/agent/transports/http.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { encode } from '../../../src/protocol/codec.ts';
import { BOX_PATHS } from '../../../src/protocol/http-api.ts';
import { fakeHttpGateway } from '../../support/fake-gateway.ts';
import { lightHttp } from '../../support/light-transport.ts';
import { eventually } from '../../support/net.ts';
import { boxOver, drain, event, shown, withdraw } from './peers.ts';

describe.each([
  ['the HTTP transport', httpTransport],
  ['the HTTP transport of light boxes', lightHttp],
])('%s', (_of, transport) => {
  const box = (url: string, change?: Parameters<typeof boxOver>[2]) => boxOver(transport, url, change);

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

  it('BOX-HTTP-3 the HTTP transport ends with its stream, and ends the stream when it is closed', async () => {
    const gateway = await fakeHttpGateway();
    const first = await box(gateway.url).opening;
    const ending = drain(first.incoming);
    for (const stream of gateway.streams.values()) stream.end();
    expect((await ending).reason).toContain('ended the stream');
    await expect(first.send(shown())).rejects.toMatchObject({ code: 'LINK_LOST' });
    const second = await box(gateway.url).opening;
    await Promise.all([second.close(), second.close()]);
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

  it('BOX-HTTP-4 reports refused credentials, a lost stream, an illegal message and a busy gateway by different codes', async () => {
    const gateway = await fakeHttpGateway();
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

  it.each([503, 500])('BOX-HTTP-4 knows when a gateway that answers %i asks to be called again', async (status) => {
    const gateway = await fakeHttpGateway();
    const session = await box(gateway.url).opening;
    for (const [told, retryAfterMs] of [
      ['2', 2_000],
      ['tomorrow', undefined],
    ] as const) {
      gateway.answerWith((request, response) => {
        if (request.url !== BOX_PATHS.messages) return false;
        request.resume();
        response.writeHead(status, { 'retry-after': told }).end();
        return true;
      });
      expect(await session.send(shown()).catch((error: unknown) => error)).toMatchObject({ retryAfterMs });
    }
  });

  it('MSG-3 BOX-HTTP-3 cuts off an event without an end', async () => {
    const gateway = await fakeHttpGateway();
    const { incoming } = await box(gateway.url).opening;
    const ending = expect(incoming[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'LINK_LOST' });
    gateway.write(`data: ${'x'.repeat(50_000)}`);
    gateway.write('x'.repeat(50_000));
    await ending;
  });

  it('the HTTP transport sends a message again, once, when an idle connection turns out to be closed', async () => {
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

  it('the HTTP transport names what it found instead of a gateway, and what to do', async () => {
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
});

it('lets light boxes share their idle connections, but never a connection in use', async () => {
  const gateway = await fakeHttpGateway();
  const opener = await httpTransport.openLight?.(systemClock);
  if (opener === undefined) expect.fail('no light boxes');
  onTestFinished(() => opener.close());
  const transport = { ...httpTransport, open: opener.open.bind(opener) };
  const boxes = await Promise.all(Array.from({ length: 5 }, () => boxOver(transport, gateway.url).opening));
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
