import type { IncomingMessage } from 'node:http';
import { strangerProblem } from '../../lib/http-server.ts';
import type { Random } from '../../lib/random.ts';
import { equalSecrets } from '../../protocol/checksum.ts';
import { type Answer, nothing, plain } from './answer.ts';

const COOKIE_BYTES = 32;

/** What may be asked for by whoever may see the screen only, and by whoever has not shown the token. */
const OF_SCREEN = ['GET /', 'GET /box.css', 'GET /screen.js', 'GET /screen.png', 'GET /screen.txt', 'GET /healthz'];
const BEFORE_LOGIN = ['GET /', 'GET /box.css', 'GET /login.js', 'POST /login', 'GET /healthz'];

/** Who asks for a page of the box. */
export interface Access {
  /** What is open to them: all of it, the screen, or the way to log in. */
  open: 'all' | 'screen' | 'login';
  /** Whether they are on this machine; the code of an enrolment is told to nobody else (PROTOCOL.md, clause ENR-1). */
  isHere: boolean;
}

/**
 * Whom the box's pages are open to (PROTOCOL.md, threat THR-30). With a token to whoever has it, as a bearer or as the
 * cookie that it was exchanged for; without one to programs and pages of this machine, and the screen alone to others.
 */
export class PageGuard {
  readonly #token: string | undefined;
  /** What a browser has instead of the token, until the box is started anew. */
  readonly #cookie: string;

  constructor(token: string | undefined, random: Random) {
    this.#token = token;
    this.#cookie = random.secret(COOKIE_BYTES);
  }

  /** Whether a token is asked for. */
  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  accessOf(request: IncomingMessage): Access {
    const isHere = strangerProblem(request) === undefined;
    if (this.#token === undefined) return { open: isHere ? 'all' : 'screen', isHere };
    const isKnown = this.#hasBearer(request) || equalSecrets(cookieOf(request) ?? '', this.#cookie);
    return { open: isKnown ? 'all' : 'login', isHere };
  }

  /** Why this is not answered, if so; `asked` is the method and the path. */
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
        headers: { 'www-authenticate': 'Bearer' },
      };
    }
    return undefined;
  }

  /** Exchanges the token, sent as a bearer, for a cookie. */
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

/** Of this port: cookies are shared by all that listens on one address. */
function cookieName({ socket }: IncomingMessage): string {
  return `paybox-${socket.localPort}`;
}

function cookieOf(request: IncomingMessage): string | undefined {
  const begin = `${cookieName(request)}=`;
  const found = request.headers.cookie?.split(/; */).find((it) => it.startsWith(begin));
  return found?.slice(begin.length);
}
