import type { Clock } from '../../../lib/clock.ts';
import { MissingPeerError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import { askHttp, parseJson } from '../../../lib/http-client.ts';
import { HTTP_SCHEMES, isTlsUrl } from '../../../lib/tls.ts';
import { explained } from '../../../protocol/codes.ts';
import {
  ENROLMENTS_PATH,
  type EnrolmentRequest,
  type EnrolmentState,
  enrolmentCreated,
  enrolmentState,
} from '../../../protocol/enrolment.ts';
import { statusResponse } from '../../../protocol/http-api.ts';
import type { GatewayAddress } from '../contract.ts';
import { certificateFix, connectionTls } from '../transports/tls.ts';

const ANSWER_LIMITS = { timeoutMs: 10_000, bytesMax: 4_096 };

/** Reports that one side refused an enrolment. The message says why. */
export class EnrolmentRefused extends PayboxError {
  constructor(message: string, fix: string, code: 'NOT_REGISTERED' | 'BOX_DISABLED' = 'NOT_REGISTERED') {
    super(code, message, { severity: 'retryable', fix });
  }
}

/** Sends a box's enrolment requests to its gateway (PROTOCOL.md, clauses ENR-2 to ENR-4). */
export class EnrolmentClient {
  readonly #at: GatewayAddress;
  readonly #clock: Clock;
  readonly #origin: string;

  constructor(at: GatewayAddress, clock: Clock) {
    this.#at = at;
    this.#clock = clock;
    this.#origin = new URL(at.url).origin;
  }

  /** Returns the id of the request. Throws EnrolmentRefused, and MissingPeerError when no gateway answers. */
  async register(request: EnrolmentRequest, signal: AbortSignal): Promise<string> {
    const { status, json } = await this.#ask('POST', ENROLMENTS_PATH, signal, JSON.stringify(request));
    const created = enrolmentCreated.safeParse(json);
    if (status === 201 && created.success) return created.data.id;
    throw this.#problem(status, json);
  }

  /**
   * Returns the state of the request; undefined when the gateway does not know it, or no longer knows it. Throws as
   * `register` does.
   */
  async state(id: string, signal: AbortSignal): Promise<EnrolmentState | undefined> {
    const { status, json } = await this.#ask('GET', `${ENROLMENTS_PATH}/${id}`, signal);
    if (status === 404) return undefined;
    const state = enrolmentState.safeParse(json);
    if (status === 200 && state.success) return state.data;
    throw this.#problem(status, json);
  }

  #problem(status: number, json: unknown): PayboxError {
    const refusal = statusResponse.safeParse(json);
    if (refusal.success && status === 400) {
      const what = `the gateway at ${this.#origin} does not enrol this box: ${explained(refusal.data.message)}`;
      if (refusal.data.message === 'BOX_DISABLED') return new EnrolmentRefused(what, 'enable it there', 'BOX_DISABLED');
      return new EnrolmentRefused(what, 'check terminalCode and serialNumber against the boxes of the gateway');
    }
    if (status === 429) {
      const fix = 'see in the log of the gateway who else asks in the name of this box, and cut them off';
      return new MissingPeerError(`${this.#origin} accepts no more enrolment requests for now`, fix);
    }
    const fix = 'check that enrolment.url is the origin of a gateway';
    return new MissingPeerError(`${this.#origin} answered ${status} to an enrolment request`, fix);
  }

  async #ask(method: 'GET' | 'POST', path: string, signal: AbortSignal, body?: string) {
    try {
      const tls = isTlsUrl(this.#origin, HTTP_SCHEMES) ? connectionTls(this.#at, 'enrolment.tls') : {};
      const request = { ...tls, method, body, signal, agent: false };
      const answer = await askHttp(new URL(path, this.#origin), request, { ...ANSWER_LIMITS, clock: this.#clock });
      return { status: answer.status, json: parseJson(answer.body) };
    } catch (error) {
      if (error instanceof PayboxError) throw error;
      const fix = certificateFix(error) ?? 'check enrolment.url, and that the gateway runs and can be reached';
      const what = `the gateway at ${this.#origin} cannot be reached to be enrolled by: ${reasonOf(error)}`;
      throw new MissingPeerError(what, fix, error);
    }
  }
}
