import type { IncomingMessage } from 'node:http';
import { hostnameOf, isForeignPage, strangerProblem } from '../../lib/http-guard.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { Refusal } from './contract.ts';

/** Needs no token, so that whoever watches programs needs none. */
const OPEN_PATH = '/healthz';

/**
 * Whether a request may be answered: with a token, to whoever has it; without one, to programs and pages of this machine.
 * Throws Refusal.
 */
export function assertAllowed(request: IncomingMessage, token: string | undefined): void {
  const host = hostnameOf(request);
  if (host === undefined) throw new Refusal(400, 'Host is not one legal name', 'ask with the address of the server');
  if (isForeignPage(request)) throw new Refusal(403, 'a page of another origin asks', 'ask from a program');
  if (token === undefined) {
    const stranger = strangerProblem(request);
    if (stranger !== undefined)
      throw new Refusal(403, stranger, 'start the server with --token-file, and send the token');
    // A web page elsewhere can make this machine's browser ask, under a name that resolves to loopback.
    if (!isLoopbackHost(host)) throw new Refusal(403, 'not by a loopback name', 'ask with http://127.0.0.1:PORT');
    return;
  }
  if (request.url?.split('?', 1)[0] === OPEN_PATH) return;
  const [, given] = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (given !== undefined && equalSecrets(given, token)) return;
  throw new Refusal(
    401,
    given === undefined ? 'a token is needed' : 'it is another token',
    'send Authorization: Bearer TOKEN',
    {
      'www-authenticate': 'Bearer',
    },
  );
}
