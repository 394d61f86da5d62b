import type { MqttClient } from 'mqtt';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { encode } from '../../src/protocol/codec.ts';
import { signingKeyOf } from '../../src/protocol/keys.ts';
import type { DownBody, UpMessage } from '../../src/protocol/messages.ts';
import { GatewaySeal, readUp } from '../../src/protocol/seal.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../../src/protocol/topics.ts';
import { encodeVietQr } from '../../src/protocol/vietqr.ts';

export const TERMINAL_CODE = 'VVB000001';
export const HOLDER = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
const LIFETIME_MS = 300_000;

/** A gateway that sends arbitrary messages to one box and acknowledges every report. */
export class FloodingGateway {
  readonly reported = new Set<string>();
  readonly #unreported = new Map<string, DownBody>();
  /** Pushes not ended. The box may show only the newest one. */
  #open: string[] = [];
  readonly refused: Record<string, number> = {};
  accepted = 0;
  shown = 0;
  ended = 0;
  sessions = 0;
  #sessionId = '';
  #helloAtMs = 0;
  #seal: GatewaySeal | undefined;
  readonly #key = signingKeyOf(systemRandom.secret(32));
  readonly #run = systemRandom.uuid();
  readonly #client: MqttClient;
  readonly #secret: string;

  constructor(client: MqttClient, secret: string) {
    this.#client = client;
    this.#secret = secret;
  }

  async begin(): Promise<void> {
    this.#client.on('message', (_topic, payload) => {
      this.#hear(payload);
    });
    await this.#client.subscribeAsync(boxTopic('+', 'up'), { qos: 1 });
    const birth = encode({ v: 1, online: true, sessionId: this.#run });
    await this.#client.publishAsync(GATEWAY_PRESENCE_TOPIC, birth, { qos: 1, retain: true });
  }

  send(body: DownBody): void {
    const head = { v: 1, id: systemRandom.uuid(), sentAtMs: Date.now(), sessionId: this.#sessionId } as const;
    if (this.#seal === undefined) return;
    const sealed = this.#seal.seal({ ...head, ...body }, this.#key);
    this.#client.publish(boxTopic(TERMINAL_CODE, 'down'), sealed, { qos: 1 });
  }

  /** Sends a payment, and again at each welcome until it is reported (PROTOCOL.md, clause MSG-7). */
  pay(payment: DownBody & { type: 'payment' }): void {
    this.#unreported.set(payment.transactionId, payment);
    this.send(payment);
  }

  show(order: { pushId: string; orderId: string; amount: number; content: string }): void {
    this.#open = [order.pushId];
    const { bankAccount: account } = HOLDER;
    const { amount, content: purpose } = order;
    const qrCode = encodeVietQr({ bin: '970422', account, service: 'account', initiation: 'dynamic', amount, purpose });
    const times = { expiresAtMs: Date.now() + LIFETIME_MS, expiresInMs: LIFETIME_MS };
    const sessionMs = Math.floor(performance.now() - this.#helloAtMs);
    this.send({ type: 'show', ...order, ...HOLDER, qrCode, ...times, sessionMs });
  }

  #hear(payload: Buffer): void {
    const read = readUp(TERMINAL_CODE, payload);
    if (!read.ok) return;
    if (read.value.message.type === 'hello') {
      const box = { terminalCode: TERMINAL_CODE, secret: this.#secret };
      const greeted = GatewaySeal.greet(box, this.#run, read.value, systemClock);
      if (!greeted.ok) return;
      this.#seal = greeted.value.seal;
      this.#take(greeted.value.hello);
      return;
    }
    const opened = this.#seal?.open(read.value);
    if (opened?.ok) this.#take(opened.value);
  }

  #take(message: UpMessage): void {
    switch (message.type) {
      case 'hello':
        this.sessions += 1;
        this.#sessionId = message.sessionId;
        this.#helloAtMs = performance.now();
        this.send({ type: 'welcome', link: HOLDER, openPushIds: [...this.#open] });
        for (const payment of this.#unreported.values()) this.send(payment);
        break;
      case 'rejected':
        this.refused[message.code] = (this.refused[message.code] ?? 0) + 1;
        break;
      case 'accepted':
        this.accepted += 1;
        break;
      case 'shown':
        this.shown += 1;
        break;
      case 'ended':
        this.ended += 1;
        this.send({ type: 'ack', reportIds: [message.id] });
        break;
      case 'paid':
        this.reported.add(message.transactionId);
        this.#unreported.delete(message.transactionId);
        this.send({ type: 'ack', reportIds: [message.id] });
        break;
    }
  }
}
