import type { IncomingMessage } from 'node:http';
import { strangerProblem } from '../../../lib/http-server.ts';
import type { Random } from '../../../lib/random.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import { type Answer, nothing, plain } from './answer.ts';

const COOKIE_BYTES = 32;

/**
 * Says who may make a request besides those with full access: whoever may see the screen, and whoever has not logged in.
 */
export type OpenTo = readonly ('screen' | 'login')[];

/** Says what a request may access. */
export interface Access {
  /** The open part: everything, only the screen, or only the login. */
  open: 'all' | 'screen' | 'login';
  /**
   * True if the request comes from this machine. Only this machine receives the enrolment code (PROTOCOL.md, clause
   * ENR-1).
   */
  isHere: boolean;
}

/**
 * Controls access to the box's pages (PROTOCOL.md, threat THR-30). With a configured token, only requests with it have
 * access, as bearer or as the cookie that the login returns. Without a token, programs and pages of this machine have
 * access, and others see only the screen.
 */
export class PageGuard {
  readonly #token: string | undefined;
  /** The cookie value that stands for the token until the next start. */
  readonly #cookie: string;

  constructor(token: string | undefined, random: Random) {
    this.#token = token;
    this.#cookie = random.secret(COOKIE_BYTES);
  }

  /** Returns whether a token is required. */
  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  accessOf(request: IncomingMessage): Access {
    const isHere = strangerProblem(request) === undefined;
    if (this.#token === undefined) return { open: isHere ? 'all' : 'screen', isHere };
    const isKnown = this.#hasBearer(request) || equalSecrets(cookieOf(request) ?? '', this.#cookie);
    return { open: isKnown ? 'all' : 'login', isHere };
  }

  /** Returns the refusal of a request for a route that is open to these, if any. */
  refusal(openTo: OpenTo, { open }: Access): Answer | undefined {
    if (open === 'all' || openTo.includes(open)) return undefined;
    if (open === 'screen') {
      return plain(
        403,
        'from another machine only the screen can be seen: set http.token in the configuration of the box',
      );
    }
    return {
      ...plain(401, 'send http.token of the box as a bearer, or log in at /'),
      headers: { 'www-authenticate': 'Bearer realm="paybox"' },
    };
  }

  /** Exchanges the token, sent as bearer, for a cookie. */
  login(request: IncomingMessage): Answer {
    if (!this.#hasBearer(request)) return plain(401, 'this is not the token of the box');
    const cookie = `${cookieName(request)}=${this.#cookie}; Path=/; HttpOnly; SameSite=Strict`;
    return { ...nothing(), headers: { 'set-cookie': cookie } };
  }

  #hasBearer({ headers }: IncomingMessage): boolean {
    const [, given] = /^Bearer +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
    return this.#token !== undefined && given !== undefined && equalSecrets(given, this.#token);
  }
}

/** Returns the name of the cookie. It contains the port, because browsers share cookies between all ports of a host. */
function cookieName({ socket }: IncomingMessage): string {
  return `paybox-${socket.localPort}`;
}

function cookieOf(request: IncomingMessage): string | undefined {
  const begin = `${cookieName(request)}=`;
  const found = request.headers.cookie?.split(/; */).find((it) => it.startsWith(begin));
  return found?.slice(begin.length);
}
