import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto';
import type { Random } from '../../lib/random.ts';
import type { LivingGateway } from './gateway-rows.ts';
import type { ClusterLanes } from './lanes.ts';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/**
 * Says things to one gateway over the broker, which wakes no other one. The broker and whoever else reads there learns
 * nothing: each text is sealed for its lane by a key that only gateways of this database have. So nobody can make one,
 * or lead it to another gateway. A text may be lost or come twice.
 */
export class BrokerLine {
  readonly #lanes: ClusterLanes;
  readonly #key: Buffer;
  readonly #random: Random;
  readonly #gateways: () => readonly LivingGateway[];

  constructor(lanes: ClusterLanes, vaultKey: Buffer, random: Random, gateways: () => readonly LivingGateway[]) {
    this.#lanes = lanes;
    this.#key = createHmac('sha256', vaultKey).update('paybox what gateways say').digest();
    this.#random = random;
    this.#gateways = gateways;
  }

  /** Says something to a run. Returns false if it or this gateway is not at the broker. */
  say(run: string, text: string): boolean {
    const there = this.#gateways().find((it) => it.run === run);
    return there?.served === true && this.#lanes.send(there.lane, this.#seal(text, there.lane));
  }

  /** Passes on what others say here. Anything else is ignored. */
  begin(heard: (text: string) => void): void {
    this.#lanes.hear((sealed) => {
      const text = this.#opened(sealed);
      if (text !== undefined) heard(text);
    });
  }

  #seal(text: string, lane: number): Buffer {
    const iv = Buffer.from(this.#random.secret(IV_BYTES), 'base64url');
    const cipher = createCipheriv(CIPHER, this.#key, iv).setAAD(Buffer.from(String(lane)));
    return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  }

  #opened(sealed: Buffer): string | undefined {
    if (sealed.length < IV_BYTES + TAG_BYTES) return undefined;
    const [iv, tag] = [sealed.subarray(0, IV_BYTES), sealed.subarray(-TAG_BYTES)];
    const decipher = createDecipheriv(CIPHER, this.#key, iv)
      .setAAD(Buffer.from(String(this.#lanes.own)))
      .setAuthTag(tag);
    try {
      return decipher.update(sealed.subarray(IV_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
    } catch {
      return undefined;
    }
  }
}
