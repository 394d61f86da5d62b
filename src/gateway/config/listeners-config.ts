import { z } from 'zod';
import { isNetwork } from '../../lib/callers.ts';
import { isExposed } from '../../lib/tls.ts';
import { BROKER_SCHEMES } from '../../protocol/packet-limit.ts';
import type { Complain } from './boxes-config.ts';
import { hasUserInfo } from './callback-config.ts';
import { isGuarded, LISTENS_PLAINLY, loopback } from './mode.ts';

/* The options of the gateway's listeners, which are its HTTP server and its broker, and of its login at another broker. */

const port = z.int().min(0).max(65_535);
const host = z.string().min(1).max(255);
const file = z.string().min(1).max(1000);
const serverTls = z
  .strictObject({ cert: file, key: file })
  .describe('PEM files, relative to the configuration file; TLS 1.2 or newer');
const allowPlain = z.boolean().default(false).describe('no TLS, although others can read and change every message');

const PROXIES_MAX = 100;
const trustedProxies = z
  .array(z.string().refine(isNetwork, 'expected an IP address, or a network as 10.0.0.0/8'))
  .max(PROXIES_MAX)
  .default([])
  .describe('addresses of proxies that say where a caller is (PROTOCOL.md, clause LIM-8)');
const proxyProtocol = z
  .boolean()
  .default(false)
  .describe('http.trustedProxies begin each connection with a PROXY header, version 2 (PROTOCOL.md, clause LIM-9)');

/** Options of the HTTP server. Other machines may reach a listener only over TLS, unless allowPlain is set. */
export const httpListener = z
  .strictObject({
    host: host.default('127.0.0.1'),
    port: port.default(8800),
    tls: serverTls.optional(),
    allowPlain,
    loopback,
    trustedProxies,
    proxyProtocol,
  })
  .refine(isGuarded, LISTENS_PLAINLY);

const embedded = z
  .strictObject({
    host: host.default('127.0.0.1'),
    port: port.default(18_830),
    tls: serverTls
      .extend({
        clientCa: file.optional().describe('requires of every box a certificate by this CA in the name of the box'),
      })
      .optional(),
    allowPlain,
    proxyProtocol,
  })
  .refine(isGuarded, LISTENS_PLAINLY);

const clientTls = z
  .strictObject({ ca: file.optional(), cert: file.optional(), key: file.optional() })
  .refine((it) => (it.cert === undefined) === (it.key === undefined), 'expected cert and key together');

export const mqtt = z
  .strictObject({
    embedded: embedded.optional(),
    url: z
      .url({ protocol: /^(mqtts?|wss?)$/, error: 'an mqtt://, mqtts://, ws:// or wss:// address', abort: true })
      .refine(
        (url) => !hasUserInfo(url),
        'expected an address without a user name: use mqtt.username and mqtt.password',
      )
      .optional(),
    username: z.string().max(200).optional(),
    password: z.string().max(200).optional(),
    tls: clientTls.optional().describe("the CA of the broker at url, and the gateway's own certificate"),
    allowPlain,
  })
  .refine((it) => (it.embedded === undefined) !== (it.url === undefined), 'expected either embedded or url, not both')
  .refine((it) => it.url !== undefined || it.username === undefined, 'username and password belong to url')
  .refine((it) => it.tls === undefined || /^(mqtts|wss):/.test(it.url ?? ''), {
    path: ['tls'],
    error: 'expected only beside a url with TLS, mqtts:// or wss://; embedded has its own',
  })
  .refine((it) => it.allowPlain || it.url === undefined || !isExposed(it.url, BROKER_SCHEMES), {
    path: ['url'],
    error: 'expected mqtts:// or wss:// for a broker on another machine, or allowPlain: true beside it',
  });

interface Listeners {
  http: z.output<typeof httpListener>;
  mqtt: z.output<typeof mqtt> | null;
}

/** Complains about PROXY headers without a named proxy, because they are accepted only from a known proxy. */
export function checkProxies({ http, mqtt }: Listeners, complain: Complain): void {
  if (http.trustedProxies.length > 0) return;
  const what = 'expected http.trustedProxies beside it: the addresses of the proxies that send the header';
  if (http.proxyProtocol) complain(['http', 'proxyProtocol'], what);
  if (mqtt?.embedded?.proxyProtocol === true) complain(['mqtt', 'embedded', 'proxyProtocol'], what);
}
