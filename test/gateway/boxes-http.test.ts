import { request } from 'node:http';
import { decodeProtectedHeader } from 'jose';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { BoxConnection } from '../../src/gateway/boxes/connection.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import type { UpMessage } from '../../src/protocol/messages.ts';
import { connectFakeBox, FakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { BOX1, BOX2, BOXES, failed, type TestGateway, testGateway } from './harness.ts';
import { boxesOverHttp } from './service-alone.ts';
import { storedOf, worldOf } from './stage-records.ts';

const SESSION = '3b241101-e2bb-4255-8caf-4136c566a962';
const httpOnly = { config: { mqtt: null } };

function headersOf({ terminalCode, secret } = BOX1, sessionId: string = SESSION): Record<string, string> {
  const basic = Buffer.from(`${terminalCode}:${loginOf(secret)}`).toString('base64');
  return { authorization: `Basic ${basic}`, 'paybox-session': sessionId, 'content-type': 'application/jose' };
}

const post = async (gateway: Pick<TestGateway, 'origin'>, body: string | Buffer, headers = headersOf()) => {
  const answer = await fetch(`${gateway.origin}/box/v1/messages`, { method: 'POST', headers, body });
  return [answer.status, JSON.parse((await answer.text()) || 'null')];
};
const message = (type: string, more = {}) => ({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, type, ...more });
const shown = (sessionId: string = SESSION) => message('shown', { sessionId, pushId: crypto.randomUUID() });
const HELLO = { ...BOX1, agentVersion: '', display: '', shownPushId: null };

describe('a box over HTTP', () => {
  it('BOX-HTTP-1 BOX-HTTP-2 a box over HTTP reads its stream and posts its messages', async () => {
    const gateway = await testGateway(httpOnly);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    expect((await gateway.sendQr()).status).toBe(200);
    expect(box.received.map((it) => it.type)).toEqual(['welcome', 'show']);
    expect(await post(gateway, box.sealed(shown(box.sessionId)), headersOf(BOX1, box.sessionId))).toEqual([202, null]);
  });

  it('BOX-HTTP-4 the gateway answers 401 to whoever is not the box', async () => {
    const gateway = await testGateway(httpOnly);
    for (const headers of [
      headersOf({ ...BOX1, secret: BOX2.secret }),
      headersOf({ ...BOX1, terminalCode: 'VVB999999' }),
      headersOf({ ...BOX1, terminalCode: BOX1.serialNumber }),
      { 'paybox-session': SESSION, 'content-type': 'application/jose' },
    ]) {
      const stream = await fetch(`${gateway.origin}/box/v1/stream`, { headers });
      expect([stream.status, await stream.json()]).toEqual([401, failed('E74')]);
      expect(stream.headers.get('www-authenticate')).toContain('Basic');
      expect(await post(gateway, 'x', headers)).toEqual([401, failed('E74')]);
      expect(gateway.refusals()).toEqual(['E74', 'E74']);
    }
    expect(JSON.stringify(gateway.log)).not.toContain('secret-of-box');
  });

  it('BOX-HTTP-1 BOX-HTTP-4 the gateway answers 400 to an illegal session', async () => {
    const gateway = await testGateway(httpOnly);
    for (const sessionId of ['', 'x', `${SESSION}0`]) {
      const headers = headersOf(BOX1, sessionId);
      const stream = await fetch(`${gateway.origin}/box/v1/stream`, { headers });
      expect([sessionId, stream.status, await stream.json()]).toEqual([sessionId, 400, failed('E46')]);
      expect(await post(gateway, 'x', headers)).toEqual([400, failed('E46')]);
    }
  });

  it('MSG-3 BOX-HTTP-4 the gateway answers 400 E46 to an illegal message of a box, logs it once and changes nothing', async () => {
    const gateway = await testGateway(httpOnly);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    for (const bytes of [
      ...['', 'x', Buffer.from([0x7b, 0xff, 0xfe, 0x7d])],
      JSON.stringify(shown()),
      box.sealed({}),
      box.sealed(message('welcome')),
      // Of another session.
      box.sealed(shown(crypto.randomUUID())),
      box.sealed(message('hello', { ...HELLO, sessionId: crypto.randomUUID() })),
    ]) {
      const answer = await post(gateway, bytes, headersOf(BOX1, box.sessionId));
      expect([String(bytes), ...answer, gateway.refusals()]).toEqual([String(bytes), 400, failed('E46'), ['E46']]);
    }
    expect((await gateway.sendQr()).status).toBe(200);
  });

  it('BOX-HTTP-4 the gateway begins no session by the hello of another stream, although it answers its challenge', async () => {
    const gateway = await testGateway(httpOnly);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const other = new FakeBox({ gateway, identity: BOX1, transport: 'http' });
    const hello = { ...HELLO, sessionId: other.sessionId };
    const { challenge } = decodeProtectedHeader(box.sealed(message('hello', HELLO))) as { challenge: string };
    const sealed = other.seal.seal(message('hello', hello) as UpMessage, challenge);
    expect(await post(gateway, sealed, headersOf(BOX1, box.sessionId))).toEqual([400, failed('E46')]);
    expect(await gateway.mock<unknown>('/boxes/VVB000001')).toMatchObject({ online: true, sessionId: box.sessionId });
  });

  it('LIM-4 BOX-HTTP-4 the gateway answers 413 to a message beyond the limit', async () => {
    const gateway = await testGateway(httpOnly);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const headers = headersOf(BOX1, box.sessionId);
    expect(await post(gateway, ''.padEnd(16_384, 'x'), headers)).toEqual([400, failed('E46')]);
    expect(await post(gateway, ''.padEnd(16_385, 'x'), headers)).toEqual([413, failed('E46')]);
    expect(gateway.refusals()).toEqual(['E46', 'E46']);
  });

  it('BOX-HTTP-2 SIG-3 the gateway processes a message that is posted twice once, and answers that it has it', async () => {
    const gateway = await testGateway(httpOnly);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const sealed = box.sealed(shown(box.sessionId));
    const headers = headersOf(BOX1, box.sessionId);
    expect(await post(gateway, sealed, headers)).toEqual([202, null]);
    expect(await post(gateway, sealed, headers)).toEqual([202, null]);
    const events = gateway.log.map((it) => it.event);
    expect(events.filter((it) => it === 'report-ignored' || it === 'message-refused')).toEqual([
      'report-ignored',
      'message-refused',
    ]);
  });

  it('BOX-HTTP-4 the gateway answers 409 to a message without its stream', async () => {
    const gateway = await testGateway(httpOnly);
    expect(await post(gateway, 'x')).toEqual([409, failed('E46')]);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    expect(await post(gateway, 'x')).toEqual([409, failed('E46')]);
    expect(await post(gateway, 'x', headersOf(BOX2, box.sessionId))).toEqual([409, failed('E46')]);
  });

  /** A stream as bare as possible, and all that came of it. */
  const listen = (gateway: TestGateway) => {
    const heard = { text: '', ended: false, challenge: '', destroy: () => stream.destroy() };
    const stream = request(`${gateway.origin}/box/v1/stream`, { headers: headersOf(), agent: false });
    stream.on('error', () => undefined);
    stream.on('response', (response) => {
      response.on('error', () => undefined);
      heard.challenge = String(response.headers['paybox-challenge']);
      response.on('data', (chunk) => (heard.text += String(chunk)));
      response.on('close', () => (heard.ended = true));
    });
    stream.end();
    return heard;
  };

  it('BOX-HTTP-3 a box over HTTP gets a comment every 10 s', async () => {
    const clock = new VirtualClock();
    const gateway = await testGateway({ ...httpOnly, clock });
    const heard = listen(gateway);
    await eventually('the first comment', () => heard.text === ':\n\n');
    await clock.advance(9999);
    expect(heard.text).toBe(':\n\n');
    await clock.advance(1);
    await eventually('the second comment', () => heard.text === ':\n\n:\n\n');
    // The next comment, and the end of the 15 s without a post.
    const ownMs = [10_000, 5_000];
    await eventually('comments and a watch over it', () => ownMs.every((ms) => clock.sleeping().includes(ms)));
    heard.destroy();
    await eventually('neither', () => !ownMs.some((ms) => clock.sleeping().includes(ms)));
  });

  it('BOX-HTTP-3 a box over HTTP is cut off and offline when it has posted nothing for 15 s; a heartbeat keeps it', async () => {
    const clock = new VirtualClock();
    const gateway = await testGateway({ ...httpOnly, clock });
    const heard = listen(gateway);
    await eventually('the stream', () => heard.text !== '');
    const { seal } = new FakeBox({ gateway, identity: BOX1, transport: 'http', sessionId: SESSION });
    const hello = seal.seal(message('hello', { ...HELLO, sessionId: SESSION }) as UpMessage, heard.challenge);
    await clock.advance(14_999);
    expect(await post(gateway, hello)).toEqual([202, null]);
    await clock.advance(14_999);
    expect(await post(gateway, seal.seal(message('alive', { sessionId: SESSION }) as UpMessage, ''))).toEqual([
      202,
      null,
    ]);
    await clock.advance(14_000);
    // Whoever has only the login keeps no stream of a box that is gone.
    expect(await post(gateway, 'x')).toEqual([400, failed('E46')]);
    await clock.advance(999);
    expect(heard.ended).toBe(false);
    expect((await gateway.mock(`/boxes/${BOX1.terminalCode}`)) as object).toMatchObject({ online: true });
    await clock.advance(1);
    await eventually('the end of the stream', () => heard.ended);
    const offline = () => gateway.log.find((it) => it.event === 'box-disconnected');
    expect(await eventually('offline', offline)).toMatchObject({ why: 'it was silent for 15000 ms' });
    expect((await gateway.sendQr()).body.message).toBe('BOX_OFFLINE');
    expect(await post(gateway, 'x')).toEqual([409, failed('E46')]);
  });

  it('BOX-HTTP-1 a stream of the same session is refused until the one that it has is over', async () => {
    const gateway = await testGateway(httpOnly);
    const first = await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const again = () => connectFakeBox({ gateway, identity: BOX1, transport: 'http', again: first });
    await expect(again()).rejects.toThrow('HTTP 409');
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect(first.of('show')).toHaveLength(1);
    first.vanish();
    await eventually('offline', () => gateway.log.some((it) => it.event === 'box-disconnected'));
    const second = await again();
    expect((await gateway.sendQr({ orderId: 'DH002' })).body.status).toBe('SUCCESS');
    expect(second.of('show')).toHaveLength(1);
  });

  it('BOX-HTTP-2 a box over HTTP gets 503 for its message when too many wait for the store', async () => {
    const stored = Promise.withResolvers<[]>();
    const orders = { failUnfinished: () => stored.promise };
    const settings = { setting: async (_name: string, make: () => string) => make() };
    const directory = {
      version: 1,
      box: async (code: string) => BOXES.find((it) => it.terminalCode === code),
    };
    const { origin, hub, close } = await boxesOverHttp(
      worldOf(),
      storedOf({ directory, store: { orders, ...settings } }),
    );
    onTestFinished(close);
    const gateway = { origin, mqttUrl: undefined };
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'http', sessionId: SESSION, hello: false });
    const connection: BoxConnection = { transport: 'http', send: () => undefined, end: () => undefined };
    const hello = message('hello', { ...HELLO, sessionId: SESSION }) as UpMessage;
    const waiting = Array.from({ length: 1000 }, () => hub.receive(BOX1.terminalCode, connection, hello));
    expect(await post({ origin }, box.sealed(hello))).toEqual([503, failed('E05')]);
    expect(await post({ origin }, 'x', headersOf(BOX2))).toEqual([409, failed('E46')]);
    stored.reject(new Error('away'));
    expect(new Set(await Promise.all(waiting))).toEqual(new Set([true]));
    expect(await post({ origin }, box.sealed(shown()))).toEqual([202, null]);
  });
});
