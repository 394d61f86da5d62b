import type { IncomingHttpHeaders } from 'node:http';

/**
 * Matches headers that a proxy, a load balancer, a content delivery network or a tunnel adds to a request, in lower
 * case and with hyphens. Each pattern names the senders of its headers. Programs and browsers send none of them by
 * themselves, so a request with one comes from behind a proxy (PROTOCOL.md, threat THR-29).
 */
const PROXY_HEADERS: readonly RegExp[] = [
  // RFC 7239; X-Forwarded-… of nearly every proxy; X-Original-Forwarded-For and X-MS-Forwarded-… of clouds.
  /forwarded/,
  // RFC 9110, sections 7.6.2 and 7.6.3; X-BlueCoat-Via and the like.
  /^via$|-via$|^max-forwards$/,
  // These are Proxy-Client-IP and WL-Proxy-… of WebLogic, X-ProxyUser-Ip of Google, Proxy-Connection, X-Proxy-….
  /proxy/,
  // These are CDN-Loop (RFC 8586), Cdn-Src-Ip; CF-Connecting-IP, CF-Ray, CF-Visitor, CF-IPCountry, CF-Worker of Cloudflare.
  /^cdn-|^cf-/,
  // These are True-Client-IP of Akamai and Cloudflare, Fastly-Client-IP, X-Client-IP, X-Cluster-Client-IP,
  // X-Azure-ClientIP; X-Real-IP of nginx, Ali-CDN-Real-IP; DO-Connecting-IP; X-Azure-SocketIP; X-Appengine-User-Ip.
  /(?:client|real|connecting|socket|user|remote|source|peer|src)-?ip(?:v?6)?$/,
  // X-NF-Client-Connection-IP of Netlify, X-Originating-IP of mail gateways, and any other that ends in an address.
  /-ip(?:v?6)?$|-addr(?:ess)?$/,
  // X-Envoy-External-Address, X-Envoy-Original-Path and others of Envoy and Istio.
  /^x-envoy-/,
  // These are X-Azure-Ref, X-Azure-FDID of Front Door; X-ARR-LOG-ID, X-ARR-SSL, Disguised-Host of App Service.
  /^x-azure-|^x-arr-|^disguised-host$/,
  // X-Appengine-Country, X-Appengine-Request-Log-Id and others of Google App Engine.
  /^x-appengine-/,
  // X-Amz-Cf-Id and CloudFront-Viewer-… of AWS CloudFront; X-Amzn-… of its load balancers and gateways.
  /^x-amz-cf-|^cloudfront-|^x-amzn-(?:trace-id|oidc-|mtls-|tls-)/,
  // CDNs and hosts send these: Fastly-…, Fly-…, X-Vercel-…, X-NF-… (Netlify), Incap-… and X-Sucuri-… , Akamai-…, X-Varnish, Render and Heroku.
  /^fastly-|^fly-|^x-vercel-|^x-nf-|^incap-|^x-sucuri-|^akamai-|^x-akamai-|^x-varnish|^rndr-|^x-request-start$/,
  // Tailscale-User-… of `tailscale serve`, Ngrok-… of ngrok, Remote-User of proxies that log users in.
  /^tailscale-|^ngrok-|^(?:x-)?remote-(?:user|group|name|email)/,
  // X-Original-Host, X-Original-URL and X-Rewrite-URL (IIS, Azure, ingresses) carry values that the proxy replaced.
  /^x-original-|^x-rewrite-/,
  // X-Host and X-HTTP-Host-Override carry the host name that the client asked the proxy for.
  /^x-host$|^x-http-host/,
  // Front-End-Https of ISA and TMG, X-Scheme and X-Url-Scheme of nginx, X-SSL-… and SSL-Client-…: TLS that ended before.
  /^front-end-|^x-(?:url-)?scheme$|^x-ssl-|^(?:x-)?ssl-client|^x-client-(?:cert|verify|dn)|^client-cert/,
];

/** Returns the first header that names a proxy; `undefined` for a request without one. */
export function proxyHeaderIn(headers: IncomingHttpHeaders): string | undefined {
  return Object.keys(headers).find((name) => {
    // Some servers write underscores instead of hyphens.
    const plain = name.replaceAll('_', '-');
    return PROXY_HEADERS.some((pattern) => pattern.test(plain));
  });
}
