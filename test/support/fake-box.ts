import { deepStrictEqual } from 'node:assert';
import { request } from 'node:http';
import { connectAsync, type MqttClient } from 'mqtt';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { askingPresence, boxPresence, decodePresence } from '../../src/protocol/codec.ts';
import { BOX_CHALLENGE_HEADER, BOX_PATHS, BOX_SESSION_HEADER } from '../../src/protocol/http-api.ts';
import { loginOf, signingKeyOf } from '../../src/protocol/keys.ts';
import {
  BOX_ALIVE_MS,
  type DownMessage,
  type DownOf,
  type UpBody,
  type UpMessage,
} from '../../src/protocol/messages.ts';
import { BoxSeal } from '../../src/protocol/seal.ts';
import { boxTopic, gatewayPresenceTopic } from '../../src/protocol/topics.ts';
import { eventually } from './net.ts';

/** Where a broker retains nothing, a box asks for its gateway (PROTOCOL.md, clause PRE-4). */
const ASK_AFTER_MS = 3_000;

export interface FakeBoxIdentity {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

export interface FakeBoxOptions {
  gateway: { origin: string; mqttUrl: string | undefined };
  identity: FakeBoxIdentity;
  transport: 'mqtt' | 'http';
  /** The gateway to which it posts over HTTP; the one that has its stream by default. */
  postsTo?: () => string;
  /** The lane in which it speaks over MQTT; 0 by default. */
  lane?: number;
  sessionId?: string;
  /** An earlier connection of this box in this session. */
  again?: FakeBox;
  /** Reaction to a push; by default the box shows it. */
  onShow?: (box: FakeBox, show: DownOf<'show'>) => unknown;
  /** Push that the hello reports as shown. */
  shownPushId?: string;
  /** Whether it says hello and waits for the answer; true by default. */
  hello?: boolean;
}

/** A box's connection over any transport. */
interface Wire {
  /** Challenge that a hello on this connection answers. */
  readonly challenge: string;
  send(text: string): Promise<void>;
  /** Disconnects without any message, as in a power cut. */
  vanish(): void;
  close(): Promise<void>;
}

/** A box that follows PROTOCOL.md strictly. Any invalid message of the gateway fails the test. */
export class FakeBox {
  readonly sessionId: string;
  readonly received: DownMessage[] = [];
  readonly faults: unknown[] = [];
  /** `alive` messages that it sent, and those that were answered. */
  readonly alive: string[] = [];
  readonly heard: string[] = [];
  readonly #identity: FakeBoxIdentity;
  readonly #onShow: NonNullable<FakeBoxOptions['onShow']>;
  readonly seal: BoxSeal;
  #wire: Wire | undefined;

  constructor({ identity, again, onShow = (box, show) => box.shown(show), ...options }: FakeBoxOptions) {
    const sessionId = again?.sessionId ?? options.sessionId ?? crypto.randomUUID();
    this.#identity = identity;
    this.sessionId = sessionId;
    this.#onShow = onShow;
    const key = signingKeyOf(systemRandom.secret(32));
    this.seal = again?.seal ?? new BoxSeal({ ...identity, sessionId }, key, systemClock);
  }

  connected(wire: Wire): void {
    this.#wire = wire;
  }

  /** Handles a message of the gateway. */
  take(text: string): void {
    try {
      const decoded = this.seal.open(text);
      // On MQTT all agents of a box share its topic.
      if (!decoded.ok && decoded.code === 'WRONG_SESSION') return;
      if (!decoded.ok) throw new Error(`${decoded.code}: ${decoded.reason}: ${text}`);
      const payload = JSON.parse(Buffer.from(text.split('.')[1] ?? '', 'base64url').toString('utf8'));
      deepStrictEqual(payload, decoded.value, 'the gateway sends no field that the schema lacks');
      if (decoded.value.type === 'heard') this.heard.push(decoded.value.aliveId);
      else this.received.push(decoded.value);
      if (decoded.value.type === 'show') this.#onShow(this, decoded.value);
    } catch (error) {
      this.faults.push(error);
    }
  }

  async send(body: UpBody, id: string = crypto.randomUUID()): Promise<void> {
    const head = { v: 1, id, sentAtMs: Date.now(), sessionId: this.sessionId };
    const message = { ...head, ...body } as UpMessage;
    if (message.type === 'alive') this.alive.push(id);
    await this.sendText(this.sealed(message));
  }

  /** Encodes and signs a message, even an invalid one, with the next number. */
  sealed(message: object): string {
    return this.seal.seal(message as UpMessage, this.#wire?.challenge ?? '');
  }

  async sendText(text: string): Promise<void> {
    if (this.#wire === undefined) throw new Error('not connected');
    await this.#wire.send(text);
  }

  /** Says hello; reports no push as shown by default. */
  hello(change: Partial<FakeBoxIdentity> = {}, shownPushId: string | null = null): Promise<void> {
    const { terminalCode, serialNumber } = { ...this.#identity, ...change };
    const version = { agentVersion: 'fake', display: 'fake', shownPushId };
    return this.send({ type: 'hello', terminalCode, serialNumber, ...version });
  }

  async shown({ pushId }: { pushId: string }): Promise<void> {
    await this.send({ type: 'accepted', pushId });
    await this.send({ type: 'shown', pushId });
  }

  /** Waits for the `nth` message of a type, counted from 1. */
  async next<T extends DownMessage['type']>(type: T, nth = 1): Promise<DownOf<T>> {
    return eventually(`message ${nth} of type ${type} to ${this.#identity.terminalCode}`, () => this.of(type)[nth - 1]);
  }

  of<T extends DownMessage['type']>(type: T): DownOf<T>[] {
    return this.received.filter((it): it is DownOf<T> => it.type === type);
  }

  vanish(): void {
    this.#wire?.vanish();
  }

  async close(): Promise<void> {
    await this.#wire?.close();
  }
}

/** Connects a fake box. At the end of the test it is closed, and its faults fail the test. */
export async function connectFakeBox(options: FakeBoxOptions): Promise<FakeBox> {
  const box = new FakeBox(options);
  onTestFinished(async () => {
    await box.close();
    if (box.faults.length > 0) throw new AggregateError(box.faults, `faults of a fake box: ${box.faults.join('; ')}`);
  });
  box.connected(options.transport === 'mqtt' ? await overMqtt(box, options) : await overHttp(box, options));
  if (options.hello === false) return box;
  await box.hello({}, options.shownPushId);
  await box.next('welcome');
  return box;
}

async function overMqtt(box: FakeBox, { gateway, identity, lane = 0 }: FakeBoxOptions): Promise<Wire> {
  const { terminalCode, secret } = identity;
  const presence = (online: boolean) => boxPresence(identity, box.sessionId, online);
  const presenceTopic = boxTopic(terminalCode, 'presence', lane);
  const client: MqttClient = await connectAsync(gateway.mqttUrl ?? '', {
    username: terminalCode,
    password: loginOf(secret),
    // RabbitMQ ends the connection of a subscriber whose client id does not begin with its login.
    clientId: `${terminalCode}-fake-${box.sessionId.slice(0, 8)}`,
    reconnectPeriod: 0,
    will: { topic: presenceTopic, payload: Buffer.from(presence(false)), qos: 1, retain: true },
  });
  client.on('error', () => undefined);
  let challenge: string | undefined;
  let hasAsked = false;
  client.on('message', (topic, payload) => {
    const decoded = decodePresence(payload);
    const isDown = topic === boxTopic(terminalCode, 'down', lane);
    // A gateway answers there, to the box that has asked.
    const isAnswer = isDown && hasAsked && decoded.ok;
    if (isDown && !isAnswer) {
      box.take(payload.toString('utf8'));
      return;
    }
    if (!(isAnswer || topic === gatewayPresenceTopic(lane)) || !decoded.ok)
      box.faults.push(new Error(`unexpected message on ${topic}`));
    else challenge = decoded.value.online ? decoded.value.sessionId : undefined;
  });
  await client.subscribeAsync([boxTopic(terminalCode, 'down', lane), gatewayPresenceTopic(lane)], { qos: 1 });
  await client.publishAsync(presenceTopic, presence(true), { qos: 1, retain: true });
  let askAtMs = performance.now() + ASK_AFTER_MS;
  const run = await eventually('a present gateway', async () => {
    if (challenge === undefined && performance.now() > askAtMs) {
      askAtMs += ASK_AFTER_MS;
      hasAsked = true;
      await client.publishAsync(presenceTopic, askingPresence(box.sessionId), { qos: 1, retain: true });
    }
    return challenge;
  });
  return {
    challenge: run,
    send: async (text) => {
      await client.publishAsync(boxTopic(terminalCode, 'up', lane), text, { qos: 1 });
    },
    vanish: () => client.stream.destroy(),
    close: async () => {
      if (client.connected) await client.endAsync(true);
    },
  };
}

async function overHttp(
  box: FakeBox,
  { gateway, identity, postsTo = () => gateway.origin }: FakeBoxOptions,
): Promise<Wire> {
  const basic = Buffer.from(`${identity.terminalCode}:${loginOf(identity.secret)}`).toString('base64');
  const headers = { authorization: `Basic ${basic}`, [BOX_SESSION_HEADER]: box.sessionId };
  const stream = request(`${gateway.origin}${BOX_PATHS.stream}`, { headers, agent: false });
  stream.on('error', () => undefined);
  const challenge = await new Promise<string>((resolve, reject) => {
    stream.once('error', reject);
    stream.once('response', (response) => {
      if (response.statusCode !== 200) reject(new Error(`stream: HTTP ${response.statusCode}`));
      let rest = '';
      response.setEncoding('utf8');
      response.on('error', () => undefined);
      response.on('data', (chunk: string) => {
        const events = (rest + chunk).split('\n\n');
        rest = events.pop() ?? '';
        for (const event of events) {
          if (event.startsWith('data: ')) box.take(event.slice('data: '.length));
          else if (event !== ':') box.faults.push(new Error(`unexpected event: ${event}`));
        }
      });
      resolve(String(response.headers[BOX_CHALLENGE_HEADER]));
    });
    stream.end();
  });
  // In real time even when the gateway's clock is virtual: such a test sends `alive` itself.
  const alive = setInterval(() => {
    // Fails when the gateway has gone, which also ends the stream.
    box.send({ type: 'alive' }).catch(() => undefined);
  }, BOX_ALIVE_MS);
  stream.once('close', () => clearInterval(alive));
  return {
    challenge,
    send: async (text) => {
      const url = `${postsTo()}${BOX_PATHS.messages}`;
      const answer = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/jose' },
        body: text,
      });
      if (answer.status !== 202) throw new Error(`message: HTTP ${answer.status} ${await answer.text()}`);
    },
    vanish: () => stream.destroy(),
    close: async () => {
      stream.destroy();
    },
  };
}
