import { createServer, type Socket } from 'node:net';
import { Aedes } from 'aedes';
import { onTestFinished } from 'vitest';
import { parseBoxTopic } from '../../src/protocol/topics.ts';
import { eventually } from '../support/net.ts';

/** What went through the broker, as it came. */
export interface Seen {
  topic: string;
  payload: string;
}

/** What a relay lets through of a message: itself, something else in its place, or nothing. */
export type Rule = (message: Seen) => string | undefined;
export const HONEST: Rule = ({ payload }) => payload;

/** A broker in the hands of an attacker: it looks honest, keeps all that it sees, and does with it what it likes. */
export interface HostileRelay {
  url: string;
  seen: Seen[];
  /** Passwords by user name, as they came. */
  passwords: Map<string, string>;
  /** What the last wills say, by user name, as they came. */
  wills: Map<string, string>;
  rule: Rule;
  /** Publishes as anybody, to anybody. */
  inject(topic: string, payload: string, retain?: boolean): Promise<void>;
  /** Sealed messages of this type on this topic, oldest first. */
  messages(topic: string, type: string): string[];
  /** The `nth` of them, from 1; waits for it. */
  message(topic: string, type: string, nth?: number): Promise<string>;
  /** Ends the connections of one user. */
  cut(username: string): void;
}

export async function startHostileRelay(): Promise<HostileRelay> {
  const broker = await Aedes.createBroker();
  const sockets = new Set<Socket>();
  const byUser = new Map<string, Set<{ close(): void }>>();
  const relay: HostileRelay = {
    url: '',
    seen: [],
    passwords: new Map(),
    wills: new Map(),
    rule: HONEST,
    inject: (topic, payload, retain = false) =>
      new Promise((resolve, reject) => {
        const packet = { cmd: 'publish' as const, topic, payload, qos: 1 as const, retain, dup: false };
        broker.publish(packet, (error) => (error ? reject(error) : resolve()));
      }),
    messages: (topic, type) =>
      relay.seen.filter((it) => it.topic === topic && typeOf(it.payload) === type).map((it) => it.payload),
    message: (topic, type, nth = 1) =>
      eventually(`message ${nth} of type ${type} on ${topic}`, () => relay.messages(topic, type)[nth - 1]),
    cut: (username) => {
      for (const client of byUser.get(username) ?? []) client.close();
    },
  };
  broker.preConnect = (_client, { username = '', will }, done) => {
    relay.wills.set(username, String(will?.payload ?? ''));
    done(null, true);
  };
  broker.authenticate = (client, username = '', password, done) => {
    relay.passwords.set(username, String(password));
    byUser.set(username, (byUser.get(username) ?? new Set()).add(client));
    done(null, true);
  };
  broker.authorizePublish = (_client, packet, done) => {
    const message = { topic: packet.topic, payload: String(packet.payload) };
    relay.seen.push(message);
    const passed = relay.rule(message);
    if (passed === undefined) packet.topic = 'held';
    else packet.payload = passed;
    done(null);
  };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    broker.handle(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.close();
    for (const socket of sockets) socket.destroy();
    await new Promise<void>((resolve) => broker.close(resolve));
  });
  const address = server.address();
  relay.url = `mqtt://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  return relay;
}

/** What a sealed message says, which anyone can read; undefined for anything else. */
export function said(sealed: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(Buffer.from(sealed.split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** The head of a sealed message, which anyone can read too. */
export function headOf(sealed: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(sealed.split('.')[0] ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;
}

export function typeOf(sealed: string): unknown {
  return said(sealed)?.type;
}

/** A rule that keeps what is of these types, to this box or from it. */
export function holding(terminalCode: string, ...types: string[]): Rule {
  return ({ topic, payload }) =>
    parseBoxTopic(topic)?.terminalCode === terminalCode && types.includes(String(typeOf(payload)))
      ? undefined
      : payload;
}

/** The same message with something else in its head or body, under the signature that it had. */
export function altered(sealed: string, part: 'head' | 'body', change: object): string {
  const parts = sealed.split('.');
  const at = part === 'head' ? 0 : 1;
  const json = JSON.parse(Buffer.from(parts[at] ?? '', 'base64url').toString('utf8')) as object;
  parts[at] = Buffer.from(JSON.stringify({ ...json, ...change })).toString('base64url');
  return parts.join('.');
}
