import type { IncomingMessage } from 'node:http';
import { strangerProblem } from '../../../lib/http-server.ts';
import type { Random } from '../../../lib/random.ts';
import { equalSecrets } from '../../../protocol/checksum.ts';
import { type Answer, nothing, plain } from './answer.ts';

const COOKIE_BYTES = 32;

/** Everyone who may see the screen may make these requests. */
const OF_SCREEN = ['GET /', 'GET /box.css', 'GET /screen.js', 'GET /screen.png', 'GET /screen.txt', 'GET /healthz'];
const BEFORE_LOGIN = ['GET /', 'GET /box.css', 'GET /login.js', 'POST /login', 'GET /healthz'];

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

  /** Returns the refusal of this request, if any. `asked` is the method and the path. */
  refusal(asked: string, { open }: Access): Answer | undefined {
    if (open === 'screen' && !OF_SCREEN.includes(asked)) {
      return plain(
        403,
        'from another machine only the screen can be seen: set http.token in the configuration of the box',
      );
    }
    if (open === 'login' && !BEFORE_LOGIN.includes(asked)) {
      return {
        ...plain(401, 'send http.token of the box as a bearer, or log in at /'),
        headers: { 'www-authenticate': 'Bearer realm="paybox"' },
      };
    }
    return undefined;
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
