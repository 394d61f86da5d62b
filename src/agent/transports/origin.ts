import { z } from 'zod';
import { LIMITS } from '../../protocol/fields.ts';

/** The option that names a gateway over HTTP. */
export const gatewayOrigin = z
  .url({ protocol: /^https?$/, error: 'an http:// or https:// address', abort: true })
  .max(LIMITS.urlMax)
  .refine((url) => isOrigin(new URL(url)), {
    error: 'expected an origin only, as https://gateway.example: no user name, path or query',
    abort: true,
  })
  .describe("the gateway's origin");

function isOrigin(url: URL): boolean {
  return url.username === '' && url.pathname === '/' && url.search === '' && url.hash === '';
}
