import { z } from 'zod';
import { systemCodeOf } from '../../../lib/errors.ts';
import { isExposed, isTlsUrl, readPemFiles, TLS_FLOOR, type UrlSchemes } from '../../../lib/tls.ts';
import { LIMITS } from '../../../protocol/fields.ts';
import type { GatewayAddress } from '../contract.ts';

const file = z.string().min(1).max(1000);

const linkTls = z
  .strictObject({
    ca: file.optional().describe("what the peer's certificate must be made by; the well-known authorities if left out"),
    cert: file.optional().describe("the box's own certificate, in the name of its terminalCode"),
    key: file.optional().describe("the private key of the box's certificate"),
    servername: z
      .string()
      .min(1)
      .max(255)
      .optional()
      .describe("the name in the peer's certificate, if not that of url"),
  })
  .refine((it) => (it.cert === undefined) === (it.key === undefined), 'expected cert and key together');

/** The TLS options of every transport. Files are PEM, relative to the configuration. */
export const tlsOptions = {
  tls: linkTls.optional().describe('for an address with TLS'),
  allowPlain: z
    .boolean()
    .optional()
    .describe('allow another machine without TLS; others on the network can read and change messages'),
};

/** The option for the origin of a gateway over HTTP. */
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

/** Returns a check of the options of a transport with these schemes (PROTOCOL.md, clause TLS-1). */
export function checkTls(schemes: UrlSchemes) {
  const withTls = Object.keys(schemes).filter((scheme) => schemes[scheme]?.isTls);
  return (link: GatewayAddress, context: z.RefinementCtx): void => {
    const complain = (key: string, message: string) =>
      context.addIssue({ code: 'custom', path: [key], message, input: link });
    if (isExposed(link.url, schemes) && link.allowPlain !== true) {
      complain('url', 'expected an address with TLS for another machine, or allowPlain: true beside it');
    }
    if (link.tls !== undefined && !isTlsUrl(link.url, schemes)) {
      complain('tls', `expected only beside an address with TLS: ${withTls.map((it) => `${it}://`).join(' or ')}`);
    }
  };
}

/**
 * Returns the TLS options for Node. It reads the files for each connection, so that new files need no restart. TLS
 * always checks the peer's certificate and host name. Throws ConfigError that names `option` for an unreadable file.
 */
export function connectionTls({ tls }: GatewayAddress, option = 'link.tls') {
  const { servername, ...files } = tls ?? {};
  return { ...TLS_FLOOR, ...readPemFiles(files, option), ...(servername === undefined ? {} : { servername }) };
}

/** Returns the fix for a certificate that Node refuses; undefined for any other error. */
export function certificateFix(error: unknown): string | undefined {
  switch (systemCodeOf(error)) {
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return "check the box's clock, then the dates of the peer's certificate";
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return 'check link.url: it must be one of the names in the certificate';
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'CERT_SIGNATURE_FAILURE':
      return 'check link.url, and that link.tls.ca is the CA that made the certificate of the gateway or broker';
    default:
      return undefined;
  }
}
