import { z } from 'zod';
import { ConfigError, MissingPeerError, PayboxError, reasonOf } from '../../lib/errors.ts';
import {
  askHttp,
  authorizationHeader,
  type HttpRequest,
  openHttp,
  parseJson,
  readBody,
} from '../../lib/http-client.ts';
import { withoutUnseen } from '../../lib/text.ts';
import { TLS_FLOOR } from '../../lib/tls.ts';
import { explained } from '../../protocol/codes.ts';
import { statusResponse } from '../../protocol/http-api.ts';
import { readAuthority } from './authority.ts';
import { adminTokenOf, assertHidden } from './secrets.ts';

const ANSWER_TIMEOUT_MS = 20_000;
/** Saving a large file may take this long. */
const SAVE_TIMEOUT_MS = 600_000;
const ANSWER_BYTES_MAX = 1_000_000;

const explainedRefusal = z.object({ reason: z.string().max(1_000).transform(withoutUnseen) });

/** Advises on refusals whose reason contains no advice. */
const FIXES: Record<string, string> = {
  E46: 'run it with --help, which names what it takes',
  E96: 'check the name: list shows the names there are',
  NAME_TAKEN: 'choose another one, or change the row that has it',
  TOO_MANY_SALES: 'wait a little and run it again; give each till a token of its own',
  NOT_ALLOWED: 'ask an admin for a token of another role: paybox admin tokens add',
};

export interface AdminOptions {
  /** The gateway's origin. */
  gateway: string;
  /** The CA of its certificate, unless it is a well-known one. */
  ca?: string;
  adminTokenFile?: string;
  /** The gateway's configuration. Its token is used if neither that file nor the environment has one. */
  config?: string;
}

/** Returns the token of the gateway with this configuration. Throws ConfigError. */
async function tokenOfGateway(file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined;
  // Only then: it is much code for a command.
  const [{ loadGatewayConfig }, { readRootToken }] = await Promise.all([
    import('../../gateway/config/config.ts'),
    import('../../gateway/access/root-token.ts'),
  ]);
  return readRootToken(await loadGatewayConfig(file));
}

/** Calls the gateway's admin routes: below `/_mock`, unless a path begins with a slash. */
export class AdminClient {
  readonly #origin: string;
  readonly #token: string | undefined;
  readonly #ca: string | undefined;

  /** Returns a client with the token that the options name. Throws ConfigError. */
  static async open(options: AdminOptions): Promise<AdminClient> {
    return new AdminClient(options, adminTokenOf(options) ?? (await tokenOfGateway(options.config)));
  }

  private constructor({ gateway, ca }: AdminOptions, token: string | undefined) {
    const parsed = URL.parse(gateway);
    if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
      throw new ConfigError(`--gateway ${gateway}: expected the origin of a gateway, as http://127.0.0.1:8800`);
    }
    this.#origin = parsed.origin;
    this.#token = token;
    this.#ca = ca === undefined ? undefined : readAuthority(ca);
    assertHidden(this.#token, '--gateway', gateway);
  }

  /** Throws PayboxError for a refusal, MissingPeerError if no gateway answers. */
  async get<T>(path: string): Promise<T> {
    const { status, json } = await this.#ask('GET', path);
    if (status === 200) return json as T;
    throw this.#problem(status, json);
  }

  /**
   * Returns the code of a refusal; undefined on success. Throws MissingPeerError, and PayboxError for any other answer.
   */
  async post(path: string, body: object): Promise<string | undefined> {
    const { status, json } = await this.#ask('POST', path, JSON.stringify(body));
    if (status === 200) return undefined;
    const refusal = statusResponse.safeParse(json);
    if (refusal.success && (status === 400 || status === 404)) return refusal.data.message;
    throw this.#problem(status, json);
  }

  /** Sends a change; returns the JSON of the answer, status 200 or 201. Throws as `get` does. */
  async change<T>(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<T> {
    const { status, json } = await this.#ask(method, path, body && JSON.stringify(body), headers);
    if (status === 200 || status === 201) return json as T;
    throw this.#problem(status, json);
  }

  /** Streams the answer to `take`, piece by piece. Throws as `get` does; a PayboxError of `take` passes through. */
  async save(path: string, take: (piece: Buffer, total: number) => Promise<void>): Promise<void> {
    const signal = AbortSignal.timeout(SAVE_TIMEOUT_MS);
    const refused = await this.#reach(async () => {
      const answer = await openHttp(this.#url(path), this.#request({ signal }));
      const { statusCode: status = 0 } = answer;
      if (status !== 200) return this.#problem(status, parseJson((await readBody(answer, ANSWER_BYTES_MAX)) ?? ''));
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

  #problem(status: number, json: unknown): PayboxError {
    const refusal = statusResponse.safeParse(json);
    const code = refusal.success ? refusal.data.message : `HTTP ${status}`;
    const isStranger = status === 401 || (status === 429 && code === 'E74');
    const fix = isStranger
      ? "name a file with a token of the gateway with --admin-token-file, or with --config the gateway's own file: without adminToken in it, a live gateway has its first token in admin-token of its dataDir"
      : 'check that --gateway is the origin of a gateway';
    const { reason } = explainedRefusal.safeParse(json).data ?? {};
    // The reason explains this call. The meaning of the code covers every call that may answer with it.
    if (reason !== undefined && !isStranger) {
      const fix = FIXES[code] ?? '';
      return new PayboxError(code, `${this.#origin} refused: ${reason} (${code})`, { severity: 'fatal', fix });
    }
    return new PayboxError(code, `${this.#origin} refused: ${explained(code)}`, { severity: 'fatal', fix });
  }

  async #ask(
    method: string,
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; json: unknown }> {
    const answer = await this.#reach(() =>
      askHttp(this.#url(path), this.#request({ method, body, headers }), {
        timeoutMs: ANSWER_TIMEOUT_MS,
        bytesMax: ANSWER_BYTES_MAX,
      }),
    );
    return { status: answer.status, json: parseJson(answer.body) };
  }

  async #reach<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof PayboxError) throw error;
      const fix = 'start the gateway, or name its origin with --gateway; --ca names the CA of its certificate';
      throw new MissingPeerError(`the gateway at ${this.#origin} cannot be reached: ${reasonOf(error)}`, fix, error);
    }
  }

  #url(path: string): URL {
    return new URL(path.startsWith('/') ? path : `/_mock/${path}`, this.#origin);
  }

  #request(request: HttpRequest): HttpRequest {
    return {
      ...TLS_FLOOR,
      ...(this.#ca && { ca: this.#ca }),
      ...request,
      headers: { ...request.headers, ...authorizationHeader(this.#token) },
      agent: false,
    };
  }
}
