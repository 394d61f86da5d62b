import type { z } from 'zod';
import { MissingPeerError, PayboxError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { askHttp, parseJson } from '../../../lib/http-client.ts';
import { checkSum } from '../../../protocol/checksum.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import { explained } from '../../../protocol/codes.ts';
import {
  type GenerateResponse,
  generateResponse,
  PATHS,
  REASON_HEADER,
  type SendQrRequest,
  type StatusResponse,
  statusResponse,
  tokenResponse,
  WARNING_HEADER,
} from '../../../protocol/http-api.ts';

/** The address and credentials of a partner. */
export interface PartnerAccess {
  /** The base address of the service with its path prefix, for example `http://127.0.0.1:8800/vqr`. */
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

const ANSWER_LIMITS = { timeoutMs: 30_000, bytesMax: 1_000_000 };

/** Sends the partner's calls of the service specification: token, generate, send-qr, test callback. */
export class PartnerClient {
  readonly #access: PartnerAccess;

  constructor(access: PartnerAccess) {
    this.#access = access;
  }

  /** Requests a new bearer token (specification 4.1). */
  async token(): Promise<string> {
    const { username, password } = this.#access;
    const basic = Buffer.from(`${username}:${password}`).toString('base64');
    const answer = await this.#post(PATHS.token, `Basic ${basic}`, {}, tokenResponse);
    return answer.access_token;
  }

  /** Creates a dynamic QR (specification 4.2, qrType 0). Throws PayboxError with the refusal code. */
  generate(token: string, order: Generate): Promise<GenerateResponse> {
    return this.#post(PATHS.generate, `Bearer ${token}`, { ...order, transType: 'C', qrType: 0 }, generateResponse);
  }

  /** Pushes a QR to a box (specification 4.3) and adds the checkSum. Returns a refusal and does not throw it. */
  sendQr(token: string, push: Omit<SendQrRequest, 'checkSum'> & { checkSum?: string }): Promise<StatusResponse> {
    const signed = { checkSum: checkSum(this.#access.password, push), ...push };
    return this.#post(PATHS.sendQr, `Bearer ${token}`, signed, statusResponse, true);
  }

  /** Simulates a payment in the sandbox (specification 4.4). Returns a refusal or a warning and does not throw it. */
  async testCallback(
    token: string,
    payment: { bankAccount: string; content: string; amount: number; transType: 'C' | 'D' },
  ): Promise<StatusResponse & { warning?: string }> {
    const { value, warning } = await this.#ask(PATHS.testCallback, `Bearer ${token}`, payment, statusResponse, true);
    return { ...value, ...(warning !== undefined && { warning }) };
  }

  async #post<T>(...asked: Asked<T>): Promise<T> {
    return (await this.#ask(...asked)).value;
  }

  async #ask<T>(
    ...[path, authorization, body, schema, refusalIsAnswer = false]: Asked<T>
  ): Promise<{ value: T; warning: string | undefined }> {
    const url = `${this.#access.baseUrl}${path}`;
    const request = { method: 'POST', headers: { authorization }, body: JSON.stringify(body) };
    const answer = await askHttp(url, request, ANSWER_LIMITS).catch((error: unknown) => {
      throw unreachable(this.#access.baseUrl, error);
    });
    const { status } = answer;
    const json = parseJson(answer.body);
    const isSuccess = status >= 200 && status < 300;
    if (!isSuccess && !refusalIsAnswer) {
      const refusal = statusResponse.safeParse(json);
      const told = answer.headers[REASON_HEADER];
      const reason = typeof told === 'string' ? ` (${told})` : '';
      const why = refusal.success ? `${explained(refusal.data.message)}${reason}` : answer.body.toString('utf8');
      const isElsewhere = status === 404;
      const fix = isElsewhere ? 'the base address has a path of its own, as in http://127.0.0.1:8800/vqr' : '';
      const code = refusal.success ? refusal.data.message : 'REFUSED';
      throw new PayboxError(code, `${path} answered ${status}: ${why}`, { severity: 'fatal', fix });
    }
    const parsed = schema.safeParse(json);
    const warning = answer.headers[WARNING_HEADER];
    if (parsed.success) return { value: parsed.data, warning: typeof warning === 'string' ? warning : undefined };
    throw new PayboxError('REFUSED', `${path} answered ${status} in another shape: ${issuesOf(parsed.error)}`, {
      severity: 'fatal',
    });
  }
}

type Asked<T> = [path: string, authorization: string, body: object, schema: z.ZodType<T>, refusalIsAnswer?: boolean];

function unreachable(baseUrl: string, error: unknown): MissingPeerError {
  const why = systemCodeOf(error) ?? reasonOf(error);
  return new MissingPeerError(
    `no gateway answers at ${baseUrl} (${why})`,
    'start one with "npx --no -- paybox up", or name another with --gateway; --ca names the CA of its certificate',
    error,
  );
}
