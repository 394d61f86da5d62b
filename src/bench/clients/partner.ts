import type { z } from 'zod';
import { MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { checkSum } from '../../protocol/checksum.ts';
import { issuesOf } from '../../protocol/codec.ts';
import { explained } from '../../protocol/codes.ts';
import {
  type GenerateResponse,
  generateResponse,
  PATHS,
  type SendQrRequest,
  type StatusResponse,
  statusResponse,
  tokenResponse,
} from '../../protocol/http-api.ts';
import { parseJson } from './bodies.ts';

/** What a partner's program needs to call the service. */
export interface PartnerAccess {
  /** The service's base address including its path prefix, as in `http://127.0.0.1:8800/vqr`. */
  baseUrl: string;
  username: string;
  password: string;
}

export interface Generate {
  bankAccount: string;
  bankCode: string;
  userBankName: string;
  amount: number;
  content: string;
  orderId: string;
}

const ANSWER_TIMEOUT_MS = 30_000;

/** A partner's side of the service specification: token, generate, send-qr, test callback. */
export class PartnerClient {
  readonly #access: PartnerAccess;

  constructor(access: PartnerAccess) {
    this.#access = access;
  }

  /** A fresh bearer token (specification 4.1). */
  async token(): Promise<string> {
    const { username, password } = this.#access;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const answer = await this.#post(PATHS.token, `Basic ${basic}`, {}, tokenResponse);
    return answer.access_token;
  }

  /** A dynamic QR (specification 4.2, qrType 0). Throws PayboxError with the code of a refusal. */
  generate(token: string, order: Generate): Promise<GenerateResponse> {
    return this.#post(PATHS.generate, `Bearer ${token}`, { ...order, transType: 'C', qrType: 0 }, generateResponse);
  }

  /** Pushes a QR to a box (specification 4.3); a checkSum is added. A refusal is an answer, not an error. */
  sendQr(token: string, push: Omit<SendQrRequest, 'checkSum'> & { checkSum?: string }): Promise<StatusResponse> {
    const signed = { checkSum: checkSum(this.#access.password, push), ...push };
    return this.#post(PATHS.sendQr, `Bearer ${token}`, signed, statusResponse, true);
  }

  /** The sandbox's simulated payment (specification 4.4). A refusal is an answer, not an error. */
  testCallback(
    token: string,
    payment: { bankAccount: string; content: string; amount: number; transType: 'C' | 'D' },
  ): Promise<StatusResponse> {
    return this.#post(PATHS.testCallback, `Bearer ${token}`, payment, statusResponse, true);
  }

  async #post<T>(
    path: string,
    authorization: string,
    body: object,
    schema: z.ZodType<T>,
    refusalIsAnswer = false,
  ): Promise<T> {
    const url = `${this.#access.baseUrl}${path}`;
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS),
    }).catch((error: unknown) => {
      throw unreachable(this.#access.baseUrl, error);
    });
    const text = await response.text();
    if (!response.ok && !refusalIsAnswer) {
      const refusal = statusResponse.safeParse(parseJson(text));
      const why = refusal.success ? explained(refusal.data.message) : text;
      const isElsewhere = response.status === 404;
      const fix = isElsewhere ? 'the base address has a path of its own, as in http://127.0.0.1:8800/vqr' : '';
      const code = refusal.success ? refusal.data.message : 'REFUSED';
      throw new PayboxError(code, `${path} answered ${response.status}: ${why}`, { severity: 'fatal', fix });
    }
    const parsed = schema.safeParse(parseJson(text));
    if (parsed.success) return parsed.data;
    throw new PayboxError(
      'REFUSED',
      `${path} answered ${response.status} in another shape: ${issuesOf(parsed.error)}`,
      {
        severity: 'fatal',
      },
    );
  }
}

function unreachable(baseUrl: string, error: unknown): MissingPeerError {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const why = systemCodeOf(cause) ?? reasonOf(cause);
  return new MissingPeerError(
    `no gateway answers at ${baseUrl} (${why})`,
    'start one with "npx paybox up", or name another with --service',
    error,
  );
}
