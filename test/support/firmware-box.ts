import { createHash } from 'node:crypto';
import { connect, type MqttClient } from 'mqtt';
import { onTestFinished } from 'vitest';

/** A longer packet does not fit its buffer. */
const BUFFER_BYTES = 1024;

/** A message as it came in. */
interface Notice {
  notificationType: string;
  amount?: string | number;
  message?: string | null;
  qrCode?: string | null;
}

export interface FirmwareOptions {
  mqttUrl: string;
  macAddr: string;
  checkSumSalt: string;
  login: { username: string; password: string };
  /** The spelling of the answer's topic that it listens on: newer firmware the MAC as sent, older without colons. */
  answerSpelling?: 'as-sent' | 'plain';
  /** LVGL firmware that knows its boxId does not subscribe after a reconnect. */
  resubscribes?: boolean;
  /** Takes the first answer after each of its questions, whatever boxId that names; otherwise the first one at all. */
  believesEachAnswer?: boolean;
  reconnectMs?: number;
}

/**
 * A box of another maker, as public firmware behaves: clean session with a fixed client id, publishes with QoS 0, enrols
 * again after each reconnect, drops packets over 1,024 bytes without a word, says each N05 that it gets. Written anew
 * from the facts about such firmware: it shares no code with the box, the gateway or the bench.
 */
export class FirmwareBox {
  /** Everything on its screen: the QR to be scanned, an amount with a dynamic QR, the text of a payment. */
  screen: { kind: 'starting' | 'certificate' | 'idle' | 'dynamic' | 'paid'; qrCode: string; amount?: number } = {
    kind: 'starting',
    qrCode: '',
  };
  boxId: string | undefined;
  readonly notices: Notice[] = [];
  /** Texts that its loudspeaker has said. */
  readonly spoken: string[] = [];
  /** Bytes of the packets that did not fit its buffer. */
  readonly dropped: number[] = [];
  readonly packetBytes: number[] = [];
  enrolments = 0;
  #asks = false;
  readonly #options: FirmwareOptions;
  readonly #client: MqttClient;
  readonly #answerTopic: string;

  constructor(options: FirmwareOptions) {
    this.#options = options;
    const { macAddr, login, mqttUrl, answerSpelling = 'as-sent', reconnectMs = 2_000 } = options;
    const name = answerSpelling === 'as-sent' ? macAddr : macAddr.replaceAll(/[:.-]/g, '');
    this.#answerTopic = `/vqr/handle-box/response/${name}`;
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
    if (this.boxId !== undefined && resubscribes) this.#client.subscribe(`vietqr/boxId/${this.boxId}`, { qos: 1 });
    this.enrolments += 1;
    this.#asks = true;
    const checkSum = createHash('md5').update(`${macAddr}${checkSumSalt}`).digest('hex');
    this.#client.publish('/vqr/handle-box', JSON.stringify({ macAddr, checkSum, ...again }), { qos: 0 });
  }

  #receive(topic: string, payload: Buffer): void {
    // Both lengths, the number of a QoS 1 packet, and a head of two or three bytes.
    const rest = 2 + Buffer.byteLength(topic) + 2 + payload.length;
    const bytes = rest + (rest < 128 ? 2 : 3);
    this.packetBytes.push(bytes);
    if (bytes > BUFFER_BYTES) this.dropped.push(bytes);
    else if (topic === this.#answerTopic) this.#enrolled(payload);
    else this.#noticed(payload);
  }

  #enrolled(payload: Buffer): void {
    const { boxId, qrCertificate } = read(payload) ?? {};
    const isAwaited = this.#options.believesEachAnswer ? this.#asks : this.boxId === undefined;
    if (typeof boxId !== 'string' || typeof qrCertificate !== 'string' || !isAwaited) return;
    this.#asks = false;
    if (boxId === this.boxId) return;
    this.boxId = boxId;
    this.screen = { kind: 'certificate', qrCode: qrCertificate };
    this.#client.subscribe(`vietqr/boxId/${boxId}`, { qos: 1 });
  }

  #noticed(payload: Buffer): void {
    const notice = read(payload) as Notice | undefined;
    if (notice === undefined || !/^N(00|05|12|16|17)$/.test(notice.notificationType)) return;
    this.notices.push(notice);
    const { notificationType, qrCode } = notice;
    const amount = Number(String(notice.amount ?? '').replaceAll(',', ''));
    if (notificationType === 'N16' && qrCode) this.screen = { kind: 'idle', qrCode };
    if (notificationType === 'N17' && qrCode && amount > 0) this.screen = { kind: 'dynamic', qrCode, amount };
    if (notificationType === 'N12') this.screen = { kind: 'idle', qrCode: this.static };
    if (notificationType !== 'N05' || !(amount > 0)) return;
    // Without an id it cannot know that a notice comes again: it says each.
    this.spoken.push(notice.message ?? '');
    this.screen = { kind: 'paid', qrCode: '', amount };
  }
}

function read(payload: Buffer): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(payload.toString('utf8'));
    return typeof json === 'object' && json !== null && !Array.isArray(json)
      ? (json as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
