import { connect, type MqttClient } from 'mqtt';
import { onTestFinished } from 'vitest';
import {
  type BoxNotice,
  boxIdTopic,
  decodeEnrolAnswer,
  decodeNotice,
  ENROL_TOPIC,
  enrolAnswerTopics,
  FIRMWARE_PACKET_BYTES_MAX,
  macCheckSum,
  packetBytes,
} from '../../src/protocol/dialect.ts';

export interface FirmwareOptions {
  mqttUrl: string;
  macAddr: string;
  checkSumSalt: string;
  login: { username: string; password: string };
  /** The spelling of the answer's topic that it listens on: newer firmware the MAC as sent, older without colons. */
  answerSpelling?: 'as-sent' | 'plain';
  /** LVGL firmware that knows its boxId does not subscribe after a reconnect. */
  resubscribes?: boolean;
  reconnectMs?: number;
}

/**
 * A box of another maker, as public firmware behaves: clean session with a fixed client id, publishes with QoS 0, enrols
 * again after each reconnect, drops packets over 1,024 bytes without a word, says each N05 that it gets.
 */
export class FirmwareBox {
  /** Everything on its screen: the QR to be scanned, an amount with a dynamic QR, the text of a payment. */
  screen: { kind: 'starting' | 'certificate' | 'idle' | 'dynamic' | 'paid'; qrCode: string; amount?: number } = {
    kind: 'starting',
    qrCode: '',
  };
  boxId: string | undefined;
  readonly notices: BoxNotice[] = [];
  /** Texts that its loudspeaker has said. */
  readonly spoken: string[] = [];
  /** Bytes of the packets that did not fit its buffer. */
  readonly dropped: number[] = [];
  readonly packetBytes: number[] = [];
  enrolments = 0;
  readonly #options: FirmwareOptions;
  readonly #client: MqttClient;
  readonly #answerTopic: string;

  constructor(options: FirmwareOptions) {
    this.#options = options;
    const { macAddr, login, mqttUrl, answerSpelling = 'as-sent', reconnectMs = 2_000 } = options;
    const [asSent = '', plain = ''] = enrolAnswerTopics(macAddr);
    this.#answerTopic = answerSpelling === 'as-sent' ? asSent : plain;
    this.#client = connect(mqttUrl, {
      ...login,
      clientId: `VQRBOX-${macAddr}`,
      clean: true,
      keepalive: 15,
      reconnectPeriod: reconnectMs,
      resubscribe: false,
    });
    this.#client.on('error', () => undefined);
    this.#client.on('message', (topic, payload) => this.#receive(topic, payload));
    this.#client.on('connect', () => this.#connected());
    onTestFinished(() => this.stop());
  }

  get static(): string {
    return this.notices.findLast((it) => it.notificationType === 'N16')?.qrCode ?? '';
  }

  types(): string[] {
    return this.notices.map((it) => it.notificationType);
  }

  /** Takes a message as if the broker had sent it. */
  hear(payload: string): void {
    this.#noticed(Buffer.from(payload));
  }

  /** Ends the connection; it comes back by itself. */
  cut(): void {
    this.#client.stream.destroy();
  }

  async stop(): Promise<void> {
    await this.#client.endAsync(true);
  }

  #connected(): void {
    this.#client.subscribe(this.#answerTopic, { qos: 0 });
    const { macAddr, checkSumSalt, resubscribes = true } = this.#options;
    const again = this.boxId === undefined ? {} : { localIP: '192.0.2.7' };
    if (this.boxId !== undefined && resubscribes) this.#client.subscribe(boxIdTopic(this.boxId), { qos: 1 });
    this.enrolments += 1;
    const request = { macAddr, checkSum: macCheckSum(macAddr, checkSumSalt), ...again };
    this.#client.publish(ENROL_TOPIC, JSON.stringify(request), { qos: 0 });
  }

  #receive(topic: string, payload: Buffer): void {
    const bytes = packetBytes(topic, payload.toString('utf8'));
    this.packetBytes.push(bytes);
    if (bytes > FIRMWARE_PACKET_BYTES_MAX) this.dropped.push(bytes);
    else if (topic === this.#answerTopic) this.#enrolled(payload);
    else this.#noticed(payload);
  }

  #enrolled(payload: Buffer): void {
    const answer = decodeEnrolAnswer(payload);
    if (!answer.ok || this.boxId !== undefined) return;
    this.boxId = answer.value.boxId;
    this.screen = { kind: 'certificate', qrCode: answer.value.qrCertificate };
    this.#client.subscribe(boxIdTopic(this.boxId), { qos: 1 });
  }

  #noticed(payload: Buffer): void {
    const notice = decodeNotice(payload);
    if (!notice.ok) return;
    const { value } = notice;
    this.notices.push(value);
    if (value.notificationType === 'N16') this.screen = { kind: 'idle', qrCode: value.qrCode };
    if (value.notificationType === 'N17') this.screen = { ...value, kind: 'dynamic' };
    if (value.notificationType === 'N12') this.screen = { kind: 'idle', qrCode: this.static };
    if (value.notificationType !== 'N05') return;
    // Without an id it cannot know that a notice comes again: it says each.
    this.spoken.push(value.message);
    this.screen = { kind: 'paid', qrCode: '', amount: value.amount };
  }
}
