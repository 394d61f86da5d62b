import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { basicCredentials } from '../../lib/http-server.ts';
import { BOX_PATHS, PATHS } from '../../protocol/http-api.ts';
import { pathOf } from '../access/requests.ts';
import { parseJson } from '../common/decode.ts';
import { homeOf, shardOf, shardOfQrRef } from '../common/shard.ts';

/** Finds boxes of the registry, and caches them. */
export type FindBox = (terminalCode: string, serialNumber: string) => Promise<Parameters<typeof homeOf>[0] | undefined>;

/** The shards that answer a request. */
export type Destination =
  | { shard: number }
  /** The member that received the request: pages, and what they say about it. */
  | 'here'
  /** The first shard that has the requested thing. */
  | 'first'
  /** All shards: a list that each of them has a part of. */
  | 'merged'
  /** All shards, with those that are moving: an order of a fault for all of them. */
  | 'everywhere'
  /** Nobody: there is no such shard. */
  | 'nowhere';

/** The names in the bodies of calls that concern an account or a box. */
const named = z.object({
  bankAccount: z.string().catch(''),
  terminalCode: z.string().catch(''),
  serialNumber: z.string().catch(''),
  /** The box in an order of a fault. */
  box: z.string().catch(''),
});
type Named = z.infer<typeof named>;
const NOBODY: Named = { bankAccount: '', terminalCode: '', serialNumber: '', box: '' };

const BOX_CALLS: readonly string[] = Object.values(BOX_PATHS);
const PAGES = /^\/(?:$|docs|openapi\.json$|registry$|admin\/openapi\.json$|_mock\/about$|[\w.-]+\.(?:css|js)$)/;
/** Lists that every shard has a part of. */
const LISTS =
  /^\/_mock\/(?:boxes|orders|payments|callbacks|callbacks\/backlog|credits|calls|faults)$|^\/admin\/v1\/sales(?:\.csv)?$/;
/** Paths of one thing, which one of the shards has. */
const THINGS = /^\/_mock\/(?:orders|callbacks|payments)\/|^\/_mock\/faults(?:\/|$)|^\/admin\/v1\/sales\/[^/]+/;
const BOX = /^\/_mock\/boxes\/([^/]+)$/;
const QR_PICTURE = /^\/qr\/([^/]+)$/;
const SALES = '/admin/v1/sales';
/** An order of a fault here goes to all shards if it names no box. */
const ORDERS = '/_mock/faults';
/** Sends all failed callbacks again. */
const RESEND = '/_mock/callbacks/resend';

/** The shard that has the registry, the boxes that enrol, and everything without an account. */
const REGISTRY: Destination = { shard: 0 };

/** Finds the shards of requests by the account, the box or the partner that a request names. */
export class Destinations {
  readonly #basePath: string;
  readonly #count: number;
  readonly #findBox: FindBox;

  constructor({ basePath, count, findBox }: { basePath: string; count: number; findBox: FindBox }) {
    this.#basePath = basePath;
    this.#count = count;
    this.#findBox = findBox;
  }

  async of(request: FastifyRequest, body: Buffer | undefined): Promise<Destination> {
    const path = pathOf(request);
    if (path.startsWith(`${this.#basePath}/`)) {
      const call = path.slice(this.#basePath.length);
      if (call === PATHS.token) return { shard: shardOf(basicCredentials(request)?.username ?? '', this.#count) };
      if (call === PATHS.cancelQr) return 'first';
      if (Object.values(PATHS).some((it) => it === call))
        return this.#ofNamed(namesIn(body, request.headers), call === PATHS.sendQr);
    }
    const [, ref] = QR_PICTURE.exec(path) ?? [];
    if (ref !== undefined) return { shard: shardOfQrRef(ref, this.#count) ?? 0 };
    if (BOX_CALLS.includes(path)) return this.#ofBox(basicCredentials(request)?.username ?? '', '');
    if (PAGES.test(path)) return 'here';
    // A sale that names no box is for the first box, as at a gateway alone.
    if (path === SALES && request.method === 'POST')
      return this.#ofBox(namesIn(body, request.headers).terminalCode, '');
    if (request.method === 'GET' && path.startsWith('/_mock/')) {
      const [, code = ''] = BOX.exec(path) ?? [];
      const one = code === '' ? shardNamed(request, this.#count) : await this.#ofBox(code, '');
      if (one !== undefined) return one;
    }
    if (request.method === 'GET' && LISTS.test(path)) return shardNamed(request, this.#count) ?? 'merged';
    if (request.method === 'POST' && path === RESEND) return 'merged';
    if (request.method === 'POST' && path === ORDERS) {
      const { box } = namesIn(body, request.headers);
      return box === '' ? 'everywhere' : this.#ofBox(box, '');
    }
    if (THINGS.test(path)) return 'first';
    return REGISTRY;
  }

  async #ofNamed({ bankAccount, terminalCode, serialNumber }: Named, toBox: boolean): Promise<Destination> {
    if (toBox && (terminalCode !== '' || serialNumber !== '')) return this.#ofBox(terminalCode, serialNumber);
    return { shard: shardOf(bankAccount, this.#count) };
  }

  async #ofBox(terminalCode: string, serialNumber: string): Promise<Destination> {
    const box = await this.#findBox(terminalCode, serialNumber);
    return { shard: box === undefined ? shardOf(terminalCode, this.#count) : homeOf(box, this.#count) };
  }
}

/** Returns the shard of `?shard=`. Undefined without one. */
function shardNamed({ query }: FastifyRequest, count: number): Destination | undefined {
  const { shard } = z.object({ shard: z.string().optional().catch('') }).parse(query);
  if (shard === undefined) return undefined;
  return /^\d{1,4}$/.test(shard) && Number(shard) < count ? { shard: Number(shard) } : 'nowhere';
}

function namesIn(body: Buffer | undefined, headers: FastifyRequest['headers']): Named {
  const json = parseJson(body, headers);
  const names = json.ok ? named.safeParse(json.value) : undefined;
  return names?.data ?? NOBODY;
}
