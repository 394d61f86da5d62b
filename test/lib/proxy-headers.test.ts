import type { Socket } from 'node:net';
import { expect, it } from 'vitest';
import { strangerProblem } from '../../src/lib/http-server.ts';

const HERE = { remoteAddress: '127.0.0.1', localAddress: '127.0.0.1' } as Socket;
const problemWith = (header: string) => strangerProblem({ socket: HERE, headers: { host: 'x', [header]: 'y' } });

/** As the manuals of these proxies, networks and tunnels name them. */
const PROXIES: Record<string, string[]> = {
  'RFC 7239, 8586 and 9110': [
    'Forwarded',
    'Via',
    'Max-Forwards',
    'CDN-Loop',
    'Proxy-Authorization',
    'Proxy-Connection',
  ],
  'nearly all': ['X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Forwarded-Port', 'X-Forwarded-Prefix'],
  nginx: [
    'X-Real-IP',
    'X-Scheme',
    'X-Original-URI',
    'X-Original-Forwarded-For',
    'X-SSL-Client-Verify',
    'SSL-Client-Cert',
  ],
  'IIS, ISA, App Gateway': [
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Original-Host',
    'Front-End-Https',
    'X-ARR-LOG-ID',
    'Disguised-Host',
  ],
  Azure: ['X-Azure-ClientIP', 'X-Azure-SocketIP', 'X-Azure-Ref', 'X-Azure-FDID', 'X-MS-Forwarded-Client-Cert'],
  Google: ['X-Appengine-User-Ip', 'X-AppEngine-Country', 'X-ProxyUser-Ip'],
  AWS: ['X-Amz-Cf-Id', 'CloudFront-Viewer-Address', 'X-Amzn-Trace-Id', 'X-Amzn-Oidc-Identity'],
  Envoy: ['X-Envoy-External-Address', 'X-Envoy-Original-Path', 'X-Envoy-Peer-Metadata'],
  Cloudflare: [
    'CF-Connecting-IP',
    'CF-Connecting-IPv6',
    'CF-Ray',
    'CF-Visitor',
    'CF-IPCountry',
    'True-Client-IP',
    'CF-Pseudo-IPv4',
  ],
  'other networks': [
    'Fastly-Client-IP',
    'Fastly-SSL',
    'Akamai-Origin-Hop',
    'Ali-Cdn-Real-Ip',
    'Cdn-Src-Ip',
    'Incap-Client-IP',
  ],
  'more of them': [
    'X-Sucuri-ClientIP',
    'X-Sucuri-Country',
    'X-Varnish',
    'X-Vercel-Id',
    'X-NF-Client-Connection-IP',
    'Fly-Client-IP',
  ],
  hosts: [
    'DO-Connecting-IP',
    'X-Client-IP',
    'Client-IP',
    'X-Cluster-Client-IP',
    'X-Remote-IP',
    'X-Remote-Addr',
    'X-Source-IP',
  ],
  'old ones': [
    'WL-Proxy-Client-IP',
    'Proxy-Client-IP',
    'X-Originating-IP',
    'X-BlueCoat-Via',
    'X-Host',
    'X-HTTP-Host-Override',
  ],
  tunnels: ['Tailscale-User-Login', 'Ngrok-Auth-User-Email', 'Remote-User', 'X-Remote-User', 'Cf-Warp-Tag-Id'],
};

it.each(Object.entries(PROXIES))('THR-29 whoever comes with a header of a proxy is a stranger: %s', (_who, headers) => {
  for (const header of headers.flatMap((it) => [it.toLowerCase(), it.toLowerCase().replaceAll('-', '_')])) {
    expect(problemWith(header)).toBe(`through a proxy, which sent ${header.slice(0, 32)}`);
  }
});

it('THR-29 what programs and browsers send makes nobody a stranger', () => {
  const headers = [
    ...[
      'accept',
      'accept-encoding',
      'accept-language',
      'authorization',
      'cache-control',
      'connection',
      'cookie',
      'dnt',
    ],
    ...[
      'content-length',
      'content-type',
      'expect',
      'from',
      'if-match',
      'if-none-match',
      'if-modified-since',
      'keep-alive',
    ],
    ...['last-event-id', 'origin', 'pragma', 'priority', 'range', 'referer', 'save-data', 'te', 'transfer-encoding'],
    ...[
      'sec-ch-ua',
      'sec-ch-ua-platform',
      'sec-fetch-dest',
      'sec-fetch-mode',
      'sec-fetch-site',
      'sec-gpc',
      'user-agent',
    ],
    ...[
      'baggage',
      'traceparent',
      'tracestate',
      'upgrade-insecure-requests',
      'x-b3-traceid',
      'x-client-data',
      'x-request-id',
    ],
    ...['idempotency-key', 'x-api-key', 'x-csrf-token', 'x-requested-with', 'x-correlation-id', 'webhook-id', 'x-zip'],
    ...['paybox-session', 'x-paybox-shard', 'x-paybox-cluster', 'x-paybox-client', 'x-paybox-own', 'svix-id'],
  ];
  for (const header of headers) expect([header, problemWith(header)]).toEqual([header, undefined]);
});
