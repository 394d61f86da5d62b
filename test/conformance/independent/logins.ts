import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import type { Fault } from './faults.ts';
import { type Partner, Refusal, type World } from './world.ts';

/** Failures that are left, and when one more is given back. */
class Allowance {
  readonly #most: number;
  readonly #everyMs: number;
  #left: number;
  #sinceMs: number;

  constructor(most: number, everyMs: number, nowMs: number) {
    this.#most = most;
    this.#everyMs = everyMs;
    this.#left = most;
    this.#sinceMs = nowMs;
  }

  /** How long until a failure is allowed, in milliseconds; 0 for now. */
  waitMs(nowMs: number): number {
    this.#left = Math.min(this.#most, this.#left + (nowMs - this.#sinceMs) / this.#everyMs);
    this.#sinceMs = nowMs;
    return this.#left >= 1 ? 0 : (1 - this.#left) * this.#everyMs;
  }

  take(): void {
    this.#left -= 1;
  }
}

const LIFETIME_S = 300;
const HOUR_S = 3_600;
const base64 = (value: string | object) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value), 'utf8').toString('base64url');

/** Tokens for right credentials, and the limit of wrong ones (TOK-1 to TOK-6). */
export class Logins {
  readonly #world: World;
  readonly #key = randomUUID();
  readonly #allowances = new Map<string, Allowance>();
  readonly #known = new Set<string>();
  readonly #newest = new Map<Partner, string>();
  readonly #opaque = new Map<string, { partner: Partner; exp: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  /** Answers Basic credentials. Throws Refusal for wrong ones. */
  token(authorization: string | undefined, address: string): object {
    const { faults } = this.#world;
    const given = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(authorization ?? '')?.[1];
    const text = given === undefined ? '' : Buffer.from(given, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    if (colon < 0) throw this.#denied();
    const [username, password] = [text.slice(0, colon), text.slice(colon + 1)];
    const allowances = this.#allowancesOf(username, address);
    this.#limit(allowances);
    const partner = this.#world.partners.find((it) => it.username === username);
    const isRight =
      partner !== undefined && (isNear(password, partner.password, faults) || faults.has('any password gets a token'));
    if (!isRight) {
      for (const it of allowances) it.take();
      const isTold = partner === undefined && faults.has('an unknown user is told');
      throw isTold ? new Refusal('E67') : this.#denied();
    }
    this.#known.add(`${username} ${address}`);
    return {
      access_token: this.#sign(partner),
      token_type: faults.has('the token type is MAC') ? 'MAC' : 'Bearer',
      expires_in: faults.has('a token is said to be good for an hour') ? 3_600 : LIFETIME_S,
    };
  }

  /** The partner of a bearer. Throws Refusal for any other. */
  partnerOf(authorization: string | undefined): Partner {
    const { partners, faults } = this.#world;
    const bearer = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
    const [first] = partners;
    if (faults.has('no bearer is needed') && authorization === undefined && first !== undefined) return first;
    if (faults.has('any bearer is taken') && bearer !== undefined && first !== undefined) {
      return this.#owner(bearer) ?? first;
    }
    const partner = this.#owner(bearer ?? '');
    if (partner === undefined) throw this.#denied('Bearer');
    return partner;
  }

  #denied(scheme = 'Basic'): Refusal {
    const { faults } = this.#world;
    const status = faults.has(scheme === 'Basic' ? 'wrong credentials are 403' : 'a wrong bearer is 403') ? 403 : 401;
    const isBare = faults.has('a 401 has no WWW-Authenticate');
    return new Refusal('E74', status, isBare ? {} : { 'www-authenticate': `${scheme} realm="service"` });
  }

  #sign(partner: Partner): string {
    const { clock, faults } = this.#world;
    const issued = Math.ceil(clock.wallMs() / 1_000);
    const early = faults.has('a token ends a minute early') ? 60 : 0;
    const more = faults.has('a token says that it is good for an hour') ? HOUR_S - LIFETIME_S : 0;
    const times = { iat: issued, exp: issued + LIFETIME_S - early + more };
    if (faults.has('a token is no JWT')) {
      const opaque = randomUUID();
      this.#opaque.set(opaque, { partner, exp: times.exp });
      return opaque;
    }
    const open = `${base64({ alg: 'HS256', typ: 'JWT' })}.${base64({ sub: partner.username, jti: randomUUID(), ...times })}`;
    const token = `${open}.${this.#mac(open)}`;
    this.#newest.set(partner, token);
    return token;
  }

  #mac(text: string): string {
    return createHmac('sha256', this.#key).update(text, 'utf8').digest('base64url');
  }

  /** Who has got this token, if it is still good. */
  #owner(token: string): Partner | undefined {
    const { partners, clock, faults } = this.#world;
    const opaque = this.#opaque.get(token);
    if (opaque !== undefined) return clock.wallMs() < opaque.exp * 1_000 ? opaque.partner : undefined;
    const [head = '', claims = '', mac = '', ...more] = token.split('.');
    if (more.length > 0) return;
    const right = this.#mac(`${head}.${claims}`);
    const isBegun = mac.startsWith(right.slice(0, 8)) && faults.has('eight characters of a signature count');
    const isUnsigned = claimsOf(head).alg === 'none' && faults.has('a token need not be signed');
    const isAny = isUnsigned || faults.has('the signature of a token is not looked at');
    if (!isSame(mac, right) && !isBegun && !isAny) return;
    const { sub, exp } = claimsOf(claims);
    if (!(clock.wallMs() < Number(exp) * 1_000) && !faults.has('a token never ends')) return;
    const partner = partners.find((it) => it.username === sub);
    const isOld = partner !== undefined && this.#newest.get(partner) !== token;
    return isOld && faults.has('a token ends with the next login') ? undefined : partner;
  }

  /** A user who was in from here before has failures of his own. */
  #allowancesOf(username: string, address: string): Allowance[] {
    const own = `${username} ${address}`;
    const isKnown = this.#known.has(own) && !this.#world.faults.has('wrong passwords shut out who was in before');
    const wanted: [string, number, number][] = isKnown
      ? [[`known ${own}`, 30, 2_000]]
      : [
          [`address ${address}`, 30, 2_000],
          [`user ${username}`, 120, 500],
        ];
    return wanted.map(([name, most, everyMs]) => {
      const it = this.#allowances.get(name) ?? new Allowance(most, everyMs, this.#world.clock.monotonicMs());
      this.#allowances.set(name, it);
      return it;
    });
  }

  #limit(allowances: readonly Allowance[]): void {
    const { clock, faults } = this.#world;
    if (faults.has('passwords may be guessed without end')) return;
    const waitMs = Math.max(...allowances.map((it) => it.waitMs(clock.monotonicMs())));
    if (waitMs > 0) throw new Refusal('E74', 429, { 'retry-after': String(Math.ceil(waitMs / 1_000)) });
  }
}

/** Whether the password is right, or nearly right for a service that looks at it so. */
function isNear(given: string, right: string, faults: ReadonlySet<Fault>): boolean {
  if (faults.has('a password may be longer') && given.startsWith(right)) return true;
  if (faults.has('a password may be in other case') && isSame(given.toLowerCase(), right.toLowerCase())) return true;
  return isSame(given, right);
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one, 'utf8'), Buffer.from(other, 'utf8')];
  return a.length === b.length && timingSafeEqual(a, b);
}

function claimsOf(part: string): { sub?: unknown; exp?: unknown; alg?: unknown } {
  try {
    const claims: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'));
    return typeof claims === 'object' && claims !== null ? claims : {};
  } catch {
    return {};
  }
}
