import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type Socket } from 'node:net';
import { Aedes, type Client } from 'aedes';
import { onTestFinished } from 'vitest';
import { decodeUp, encode } from '../../src/protocol/codec.ts';
import { BOX_PATHS, BOX_SESSION_HEADER } from '../../src/protocol/http-api.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import type { DownBody, DownMessage, UpMessage } from '../../src/protocol/messages.ts';
import { boxMayPublish, boxMaySubscribe, boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';

export const IDENTITY = {
  terminalCode: 'VVB000001',
  serialNumber: 'VVB900001',
  secret: 'Sample-box-secret-known-to-all',
};

/** A message to a box in one of its sessions, with id and time as from a gateway. */
export function down(body: DownBody, sessionId: string = randomUUID()): DownMessage {
  return { v: 1, id: randomUUID(), sentAtMs: Date.now(), sessionId, ...body };
}

/** A stand-in for the gateway's broker or HTTP server. It accepts no protocol violation and lists those in `faults`. */
interface Fake {
  readonly received: UpMessage[];
  readonly faults: string[];
}

/** A real broker with the topic rights of PROTOCOL.md, clause TOP-3. */
export async function fakeBroker() {
  const received: UpMessage[] = [];
  const faults: string[] = [];
  const presences: { topic: string; payload: string; retain: boolean; qos: number }[] = [];
  const connects: { clientId: string; clean: boolean; version: number; keepalive: number }[] = [];
  const broker = await Aedes.createBroker();
  broker.authenticate = (client, username, password, done) => {
    const right = username === IDENTITY.terminalCode && String(password) === loginOf(IDENTITY.secret);
    if (right) done(null, true);
    else done(Object.assign(new Error('no'), { returnCode: 5 as const }), null);
    void client;
  };
  broker.preConnect = (client, packet, done) => {
    const { clientId, clean, protocolVersion, keepalive } = packet;
    connects.push({ clientId, clean: clean === true, version: protocolVersion ?? 0, keepalive: keepalive ?? 0 });
    void client;
    done(null, true);
  };
  broker.authorizeSubscribe = (_client, subscription, done) => {
    const allowed = boxMaySubscribe(IDENTITY.terminalCode, subscription.topic) && subscription.qos === 1;
    if (!allowed) faults.push(`subscribed to ${subscription.topic} with QoS ${subscription.qos}`);
    done(null, allowed ? subscription : null);
  };
  broker.authorizePublish = (_client, packet, done) => {
    if (!boxMayPublish(IDENTITY.terminalCode, packet.topic)) faults.push(`published to ${packet.topic}`);
    done(null);
  };
  broker.on('publish', (packet, client: Client | null) => {
    const { topic, qos, retain } = packet;
    const payload = String(packet.payload);
    if (topic === boxTopic(IDENTITY.terminalCode, 'presence')) presences.push({ topic, payload, retain, qos });
    if (topic !== boxTopic(IDENTITY.terminalCode, 'up')) return;
    const decoded = decodeUp(payload);
    if (decoded.ok && qos === 1 && !retain && client !== null) received.push(decoded.value);
    else faults.push(`sent ${payload} with QoS ${qos}`);
  });
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    broker.handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => broker.close(resolve));
    await new Promise((resolve) => server.close(resolve));
  });
  const publish = (topic: string, payload: string | Buffer, retain: boolean) =>
    new Promise<void>((resolve, reject) => {
      const packet = { cmd: 'publish' as const, topic, payload, qos: 1 as const, retain, dup: false };
      broker.publish(packet, (error) => (error ? reject(error) : resolve()));
    });
  const address = server.address();
  const fake: Fake = { received, faults };
  return {
    ...fake,
    presences,
    connects,
    url: `mqtt://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    gatewayIs: (online: boolean, run: string) =>
      publish(GATEWAY_PRESENCE_TOPIC, encode({ v: 1, online, sessionId: run }), true),
    gatewaySays: (payload: string) => publish(GATEWAY_PRESENCE_TOPIC, payload, true),
    tell: (payload: string | Buffer, retain = false) =>
      publish(boxTopic(IDENTITY.terminalCode, 'down'), payload, retain),
    cut: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** A real HTTP server with the gateway's part of PROTOCOL.md, clause BOX-HTTP. */
export async function fakeHttpGateway() {
  const received: UpMessage[] = [];
  const faults: string[] = [];
  const streams = new Map<string, ServerResponse>();
  const sockets = new Set<Socket>();
  let answer: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  const server = createServer((request, response) => {
    if (answer?.(request, response)) return;
    const credentials = Buffer.from(`${IDENTITY.terminalCode}:${loginOf(IDENTITY.secret)}`).toString('base64');
    if (request.headers.authorization !== `Basic ${credentials}`) {
      response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
      return;
    }
    const session = String(request.headers[BOX_SESSION_HEADER]);
    if (!/^[0-9a-f-]{36}$/.test(session)) faults.push(`session ${session}`);
    if (request.method === 'GET' && request.url === BOX_PATHS.stream) {
      if (request.headers.accept !== 'text/event-stream') faults.push(`accepts ${request.headers.accept}`);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.flushHeaders();
      streams.set(session, response);
      response.on('close', () => streams.delete(session));
    } else if (request.method === 'POST' && request.url === BOX_PATHS.messages) {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        if (!streams.has(session)) {
          response.writeHead(409).end();
          return;
        }
        const decoded = decodeUp(Buffer.concat(chunks));
        const isJson = request.headers['content-type'] === 'application/jose';
        if (decoded.ok && isJson) received.push(decoded.value);
        else faults.push(`posted ${Buffer.concat(chunks)}`);
        response.writeHead(decoded.ok ? 202 : 400).end();
      });
    } else {
      faults.push(`${request.method} ${request.url}`);
      response.writeHead(404).end();
    }
  });
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  const fake: Fake = { received, faults };
  return {
    ...fake,
    streams,
    sockets,
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    /** Writes raw text to every open stream. */
    write: (text: string) => {
      for (const stream of streams.values()) stream.write(text);
    },
    /** Lets `handler` answer requests first. */
    answerWith: (handler: typeof answer) => {
      answer = handler;
    },
  };
}
