import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as requestPlain } from 'node:http';
import { request as requestTls } from 'node:https';
import { z } from 'zod';
import { systemClock, withAbortAfter } from '../lib/clock.ts';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../lib/errors.ts';
import { TLS_FLOOR } from '../lib/tls.ts';
import { explained } from '../protocol/codes.ts';
import { statusResponse } from '../protocol/http-api.ts';
import { adminTokenOf, assertHidden } from './secrets.ts';

const ANSWER_TIMEOUT_MS = 20_000;
/** Of a large file. */
const SAVE_TIMEOUT_MS = 600_000;
const ANSWER_CHARS_MAX = 1_000_000;

const explainedRefusal = z.object({ reason: z.string().max(1_000) });

export interface AdminOptions {
  /** The gateway's origin. */
  gateway: string;
  /** The CA of its certificate, if that is no well-known one. */
  ca?: string;
  adminTokenFile?: string;
  /** Where neither that file nor the environment names one. */
  adminToken?: string | undefined;
}

/** The gateway's own routes for its owners, `/_mock`, as a command uses them. */
export class AdminClient {
  readonly #origin: string;
  readonly #token: string | undefined;
  readonly #ca: Buffer | undefined;

  /** Throws ConfigError. */
  constructor(options: AdminOptions) {
    const { gateway, ca } = options;
    const parsed = URL.parse(gateway);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new ConfigError(`--gateway ${gateway}: expected the origin of a gateway, as http://127.0.0.1:8800`);
    }
    this.#origin = parsed.origin;
    this.#token = adminTokenOf(options) ?? options.adminToken;
    this.#ca = ca === undefined ? undefined : readAuthority(ca);
    assertHidden(this.#token, '--gateway', gateway);
  }

  /** Throws PayboxError for a refusal, MissingPeerError when no gateway answers. */
  async get<T>(path: string): Promise<T> {
    const { status, json } = await this.#ask('GET', path, '');
    if (status === 200) return json as T;
    throw this.#problem(status, json);
  }

  /** The code of a refusal; undefined when it is done. Throws MissingPeerError, and PayboxError for a stranger. */
  async post(path: string, body: object): Promise<string | undefined> {
    const { status, json } = await this.#ask('POST', path, JSON.stringify(body));
    if (status === 200) return undefined;
    const refusal = statusResponse.safeParse(json);
    if (refusal.success && (status === 400 || status === 404)) return refusal.data.message;
    throw this.#problem(status, json);
  }

  /** Gives what is answered to `take`, piece by piece. Throws as `get` does, and a PayboxError of `take` as it is. */
  async save(path: string, take: (piece: Buffer, total: number) => Promise<void>): Promise<void> {
    const refused = await this.#within(SAVE_TIMEOUT_MS, async (signal) => {
      const answer = await this.#request('GET', path, '', signal);
      if (answer.statusCode !== 200) return this.#problem(answer.statusCode, await readJson(answer));
      const total = Number(answer.headers['content-length']);
      let bytes = 0;
      for await (const chunk of answer as AsyncIterable<Buffer>) {
        await take(chunk, total);
        bytes += chunk.length;
      }
      if (bytes !== total) throw new Error(`only ${bytes} of ${total} bytes came`);
      return undefined;
    });
    if (refused !== undefined) throw refused;
  }

  #problem(status: number | undefined, json: unknown): PayboxError {
    const refusal = statusResponse.safeParse(json);
    const code = refusal.success ? refusal.data.message : `HTTP ${status}`;
    const isStranger = status === 401 || status === 429;
    const fix = isStranger
      ? 'run it on the machine of the gateway, or name the adminToken of its configuration with --admin-token-file'
      : 'check that --gateway is the origin of a gateway';
    const { reason } = explainedRefusal.safeParse(json).data ?? {};
    const what = `${this.#origin} refused: ${explained(code)}`;
    if (reason !== undefined) return new PayboxError(code, what, { severity: 'fatal', fix: reason });
    return new PayboxError(code, what, { severity: 'fatal', fix });
  }

  async #ask(method: string, path: string, body: string): Promise<{ status: number | undefined; json: unknown }> {
    return this.#within(ANSWER_TIMEOUT_MS, async (signal) => {
      const answer = await this.#request(method, path, body, signal);
      return { status: answer.statusCode, json: await readJson(answer) };
    });
  }

  async #within<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    try {
      return await withAbortAfter(systemClock, timeoutMs, new AbortController().signal, work);
    } catch (error) {
      if (error instanceof PayboxError) throw error;
      const fix = 'start the gateway, or name its origin with --gateway; --ca names the CA of its certificate';
      throw new MissingPeerError(`the gateway at ${this.#origin} cannot be reached: ${reasonOf(error)}`, fix, error);
    }
  }

  #request(method: string, path: string, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    const headers = {
      ...(body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
      ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
    };
    const options = { method, headers, signal, agent: false };
    const url = new URL(`/_mock/${path}`, this.#origin);
    return new Promise((resolve, reject) => {
      const request =
        url.protocol === 'https:'
          ? requestTls(url, { ...options, ...TLS_FLOOR, ...(this.#ca && { ca: this.#ca }) })
          : requestPlain(url, options);
      request.on('error', reject);
      request.on('response', resolve);
      request.end(body);
    });
  }
}

function readAuthority(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new ConfigError(`--ca ${file} cannot be read: ${reasonOf(error)}`, 'name a PEM file');
  }
}

async function readJson(answer: IncomingMessage): Promise<unknown> {
  let text = '';
  for await (const chunk of answer.setEncoding('utf8')) {
    text += String(chunk);
    if (text.length > ANSWER_CHARS_MAX) throw new Error('the answer has no end');
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
