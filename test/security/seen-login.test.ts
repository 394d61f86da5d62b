import { type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, createServer } from 'node:net';
import { parser } from 'mqtt-packet';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER } from '../../src/protocol/http-api.ts';
import { clientIdOf, loginOf } from '../../src/protocol/keys.ts';
import { BOX1, type TestGateway, testGateway } from '../gateway/harness.ts';
import { loginAs } from '../gateway/mqtt-login.ts';
import { eventually } from '../support/net.ts';
import { HONEST, holding, said } from './hostile-relay.ts';
import { forgery, pushed, SUCCESS, stage, UP } from './hostile-stage.ts';
import { startRealBox } from './real-box.ts';

describe('whoever has seen the login of a box pass', () => {
  it('THR-18 an eavesdropper can do no more with a login than open streams on which nothing comes', async () => {
    const { relay, gateway, box } = await stage();
    const sessionId = String(said(await relay.message(UP, 'hello'))?.sessionId);
    relay.rule = holding(BOX1.terminalCode, 'shown');
    const answer = pushed(gateway, 'HELD');
    const heldShown = await relay.message(UP, 'shown');
    const login = relay.passwords.get(BOX1.terminalCode) ?? '';
    expect(login).toBe(loginOf(BOX1.secret));
    const stream = await streamOf(gateway, login, sessionId);
    expect(stream.status).toBe(200);
    const post = async (body: string) => {
      const headers = { ...stream.headers, 'content-type': 'application/jose' };
      return (await fetch(`${gateway.origin}${BOX_PATHS.messages}`, { method: 'POST', headers, body })).status;
    };
    // What the box sealed for its own connection is worth nothing on this one.
    expect(await post(heldShown)).toBe(400);
    expect(await post(await relay.message(UP, 'hello'))).toBe(400);
    const hello = said(await relay.message(UP, 'hello')) ?? {};
    const { challenge } = stream;
    expect(await post(forgery(relay, hello, crypto.randomUUID(), { from: 'box', challenge }))).toBe(400);
    expect(refusedPosts(gateway)).toEqual(['WRONG_SESSION', 'WRONG_SESSION', 'KEY_UNKNOWN']);
    relay.rule = HONEST;
    await relay.inject(UP, heldShown);
    expect(await answer).toEqual(SUCCESS);
    expect(stream.data()).toBe('');
    expect((await box.status()).order?.orderId).toBe('HELD');
    expect(gateway.log.filter((it) => it.event === 'box-disconnected' || it.event === 'box-superseded')).toEqual([]);
  });

  it('THR-18 an eavesdropper cuts off no box over HTTP by its login, with however many streams', async () => {
    const gateway = await testGateway();
    const box = await startRealBox(BOX1, { transport: 'http', url: gateway.origin });
    const streams: Awaited<ReturnType<typeof streamOf>>[] = [];
    for (let n = 0; n < 12; n += 1) {
      streams.push(await streamOf(gateway, loginOf(BOX1.secret), crypto.randomUUID()));
      expect(await pushed(gateway, `DH${n}`)).toEqual(SUCCESS);
    }
    await eventually('all but three to be ended', () => streams.filter((it) => it.isOver()).length === 9);
    expect(streams.map((it) => it.data()).join('')).toBe('');
    expect((await box.status()).order?.orderId).toBe('DH11');
    expect(gateway.log.filter((it) => it.event === 'box-disconnected')).toEqual([]);
    expect(box.log.filter((it) => it.event === 'link-lost')).toEqual([]);
  });

  it('THR-18 BOX-HTTP-1 an eavesdropper neither cuts nor replaces the stream in use, although it has the session', async () => {
    const gateway = await testGateway();
    const box = await startRealBox(BOX1, { transport: 'http', url: gateway.origin });
    const sessionId = await sessionIn(gateway);
    for (let n = 0; n < 3; n += 1) {
      const stream = await streamOf(gateway, loginOf(BOX1.secret), sessionId);
      expect(stream.status).toBe(409);
      expect(await pushed(gateway, `DH${n}`)).toEqual(SUCCESS);
    }
    expect((await box.status()).order?.orderId).toBe('DH2');
    expect(gateway.log.filter((it) => it.event === 'box-disconnected')).toEqual([]);
    expect(box.log.filter((it) => it.event === 'link-lost')).toEqual([]);
    const refusals = gateway.log.filter((it) => it.event === 'request-refused');
    expect(refusals.map((it) => it.reason)).toEqual(Array(3).fill('this session has a stream already'));
  });

  it('THR-18 TOP-6 an eavesdropper takes over no connection of the embedded broker, although it has the client id', async () => {
    const gateway = await testGateway();
    const { mqttUrl, clientIds } = await overheard(gateway.mqttUrl ?? '');
    const box = await startRealBox(BOX1, { transport: 'mqtt', url: mqttUrl });
    const clientId = clientIds.at(-1) ?? '';
    for (let n = 0; n < 3; n += 1) {
      await loginAs(gateway, BOX1, { clientId });
      expect(await pushed(gateway, `DH${n}`)).toEqual(SUCCESS);
    }
    expect(gateway.log.filter((it) => it.event === 'box-disconnected')).toEqual([]);
    expect(box.log.filter((it) => it.event === 'link-lost')).toEqual([]);
    expect(clientIds).toEqual([clientId]);
  });

  it('THR-18 TOP-6 an eavesdropper cannot derive the client id from the session, which every message names', async () => {
    const gateway = await testGateway();
    const { mqttUrl, clientIds } = await overheard(gateway.mqttUrl ?? '');
    await startRealBox(BOX1, { transport: 'mqtt', url: mqttUrl });
    const sessionId = await sessionIn(gateway);
    const [clientId = ''] = clientIds;
    expect(clientId).toMatch(/^VVB000001-[0-9a-f]{13}$/);
    expect(clientId).toBe(clientIdOf(BOX1, sessionId));
    const known = [loginOf(BOX1.secret), ''].map((secret) => clientIdOf({ ...BOX1, secret }, sessionId));
    expect([...known, `${BOX1.terminalCode}-${sessionId.replaceAll('-', '')}`.slice(0, 23)]).not.toContain(clientId);
  });
});

/** The session in use, as anybody reads it from what goes by. */
async function sessionIn(gateway: TestGateway): Promise<string> {
  const { entries } = await gateway.mock<{ entries: { body?: { type?: string; sessionId?: string } }[] }>('/wire');
  return entries.findLast(({ body }) => body?.type === 'welcome')?.body?.sessionId ?? '';
}

/** A way to a broker that notes the client ids of who logs in. */
async function overheard(url: string) {
  const clientIds: string[] = [];
  const server = createServer((socket) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1');
    const read = parser().on('packet', (packet) => {
      if (packet.cmd === 'connect') clientIds.push(packet.clientId);
    });
    socket.on('data', (chunk) => void read.parse(chunk));
    for (const end of [socket, far]) end.on('error', () => undefined);
    socket.pipe(far).pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { mqttUrl: `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`, clientIds };
}

const refusedPosts = (gateway: TestGateway) =>
  gateway.log.filter((it) => it.event === 'request-refused').map((it) => String(it.reason).split(':')[0]);

/** A stream as whoever knows only the login opens it, and what came on it. */
async function streamOf(gateway: TestGateway, login: string, sessionId: string) {
  const basic = Buffer.from(`${BOX1.terminalCode}:${login}`).toString('base64');
  const headers = { authorization: `Basic ${basic}`, [BOX_SESSION_HEADER]: sessionId };
  const opening = request(`${gateway.origin}${BOX_PATHS.stream}`, { headers, agent: false });
  opening.on('error', () => undefined);
  onTestFinished(() => void opening.destroy());
  let [text, over] = ['', false];
  const { statusCode, headers: told } = await new Promise<IncomingMessage>((resolve, reject) => {
    opening.once('error', reject);
    opening.once('response', (response) => {
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response
        .on('error', () => undefined)
        .on('close', () => {
          over = true;
        });
      resolve(response);
    });
    opening.end();
  });
  // Comments keep a stream open; all else is for the box.
  return {
    status: statusCode,
    challenge: String(told[BOX_CHALLENGE_HEADER]),
    headers,
    data: () => text.replaceAll(/^:.*\n+/gm, ''),
    isOver: () => over,
  };
}
