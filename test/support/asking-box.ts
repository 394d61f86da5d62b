import { request } from 'node:http';
import { systemRandom } from '../../src/lib/random.ts';
import {
  agreedSecret,
  agreementKeyOf,
  boxProof,
  ENROLMENT_CODE_BYTES,
  type EnrolmentState,
  enrolmentCodeOf,
  gatewayProof,
} from '../../src/protocol/enrolment.ts';
import { loginOf } from '../../src/protocol/keys.ts';

export interface Asked {
  status: number;
  body: Record<string, unknown>;
}

/** Sends a request as a box with this loopback address. */
export function askFrom(localAddress: string, url: string, method = 'GET', body?: unknown): Promise<Asked> {
  const text = body === undefined ? '' : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = text === '' ? {} : { 'content-type': 'application/json' };
    const asking = request(url, { method, headers, localAddress, agent: false }, async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      resolve({ status: answer.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString() || '{}') });
    });
    asking.on('error', reject);
    asking.end(text);
  });
}

/** A client that asks for enrolment as the clauses say: the real box, or an impostor. */
export class AskingBox {
  readonly code: string;
  readonly key = agreementKeyOf(systemRandom.secret(32));
  readonly #origin: string;
  readonly #from: string;
  readonly #names: { terminalCode: string; serialNumber: string };
  id = '';

  constructor(
    origin: string,
    names: { terminalCode: string; serialNumber: string },
    from = '127.0.0.1',
    code = enrolmentCodeOf(Buffer.from(systemRandom.secret(ENROLMENT_CODE_BYTES), 'base64url')),
  ) {
    this.code = code;
    this.#origin = origin;
    this.#from = from;
    this.#names = { terminalCode: names.terminalCode, serialNumber: names.serialNumber };
  }

  get request() {
    const { publicKey } = this.key;
    return { ...this.#names, publicKey, proof: boxProof(this.code, { ...this.#names, boxKey: publicKey }) };
  }

  async ask(change: object = {}): Promise<Asked> {
    const answer = await askFrom(this.#from, `${this.#origin}/box/v1/enrolments`, 'POST', {
      ...this.request,
      ...change,
    });
    if (typeof answer.body.id === 'string') this.id = answer.body.id;
    return answer;
  }

  /** State of its request; undefined when there is none. */
  async state(): Promise<EnrolmentState | undefined> {
    const { status, body } = await askFrom(this.#from, `${this.#origin}/box/v1/enrolments/${this.id}`);
    return status === 404 ? undefined : (body as EnrolmentState);
  }

  /** The secret of an accepted request, if its proof matches the code. */
  async agree(code = this.code): Promise<string | undefined> {
    const state = await this.state();
    if (state?.state !== 'accepted') return undefined;
    const agreement = { ...this.#names, boxKey: this.key.publicKey, gatewayKey: state.publicKey };
    const shared = this.key.agree(state.publicKey);
    if (shared === undefined || state.proof !== gatewayProof(code, agreement)) return undefined;
    return agreedSecret(shared, code, agreement);
  }
}

/** Status of the gateway's answer to a login of this box over HTTP. */
export async function loginStatus(origin: string, terminalCode: string, secret: string): Promise<number> {
  const authorization = `Basic ${Buffer.from(`${terminalCode}:${loginOf(secret)}`).toString('base64')}`;
  const headers = { authorization, 'paybox-session': systemRandom.uuid() };
  const answer = await fetch(`${origin}/box/v1/stream`, { headers });
  await answer.body?.cancel();
  return answer.status;
}
