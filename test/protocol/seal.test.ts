import { compactVerify, decodeProtectedHeader, importJWK } from 'jose';
import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { writeJws } from '../../src/protocol/jws.ts';
import { proofOf, type SigningKey, signingKeyOf } from '../../src/protocol/keys.ts';
import type { DownBody, DownMessage, UpBody, UpMessage } from '../../src/protocol/messages.ts';
import { BoxSeal, GatewaySeal, MESSAGE_LIFETIME_MS, readUp, SEAL_REFUSALS } from '../../src/protocol/seal.ts';

const [TERMINAL, OTHER] = ['VVB000001', 'VVB000002'];
const SECRET = 'Sample-box-secret-known-to-all';
const CHALLENGE = '9f2c6b1e-52a1-4c0e-8f3a-0d6f7c1f2a3b';
const SESSION = '3b241101-e2bb-4255-8caf-4136c566a962';
const PUSH = 'c56a4180-65aa-42ec-a945-5fd21dec0538';

const head = (sessionId = SESSION) => ({ v: 1, id: crypto.randomUUID(), sentAtMs: 1, sessionId }) as const;
const down = (body: DownBody, sessionId?: string): DownMessage => ({ ...head(sessionId), ...body });
const up = (body: UpBody, sessionId?: string): UpMessage => ({ ...head(sessionId), ...body });
const WELCOME = () => down({ type: 'welcome', link: null, openPushIds: [] });
const WITHDRAW = () => down({ type: 'withdraw', pushId: PUSH, why: 'timeout' });
const SHOWN = () => up({ type: 'shown', pushId: PUSH });
const HELLO = (sessionId?: string) => {
  const names = { terminalCode: TERMINAL, serialNumber: 'VVB900001', agentVersion: '0', display: 'none' };
  return up({ type: 'hello', ...names, shownPushId: null }, sessionId);
};
const keyOf = (byte: number): SigningKey => signingKeyOf(Buffer.alloc(32, byte).toString('base64url'));
const [BOX_KEY, GATEWAY_KEY, NEXT_KEY, STRANGER_KEY] = [keyOf(1), keyOf(2), keyOf(3), keyOf(4)];

function begin({ secret = SECRET, terminalCode = TERMINAL, sessionId = SESSION } = {}) {
  const clock = new VirtualClock();
  const box = new BoxSeal({ terminalCode, sessionId, secret }, BOX_KEY, clock);
  const hello = box.seal(HELLO(sessionId), CHALLENGE);
  return { clock, box, hello };
}

function greet(bytes: string, challenge = CHALLENGE, clock = new VirtualClock(), secret = SECRET) {
  const read = readUp(TERMINAL, bytes);
  return read.ok ? GatewaySeal.greet({ terminalCode: TERMINAL, secret }, challenge, read.value, clock) : read;
}

/** A session that both sides know, and what opens at which of them. */
function session() {
  const { clock, box, hello } = begin();
  const greeted = greet(hello, CHALLENGE, clock);
  if (!greeted.ok) throw new Error(greeted.reason);
  const gateway = greeted.value.seal;
  const say = (message: DownMessage, key = GATEWAY_KEY) => gateway.seal(message, key);
  const hear = (bytes: string) => {
    const read = readUp(TERMINAL, bytes);
    return read.ok ? gateway.open(read.value) : read;
  };
  return { clock, box, gateway, say, hear };
}

const codeOf = (opened: { ok: boolean; code?: string }) => (opened.ok ? 'taken' : opened.code);

describe('a message to a box', () => {
  it('SIG-1 is a JWS that any library reads', async () => {
    const { say } = session();
    const welcome = WELCOME();
    const sealed = say(welcome);
    const { payload, protectedHeader } = await compactVerify(sealed, await importJWK(GATEWAY_KEY.jwk, 'EdDSA'));
    expect(JSON.parse(Buffer.from(payload).toString('utf8'))).toEqual(welcome);
    expect(protectedHeader).toEqual({
      ...{ alg: 'EdDSA', kid: GATEWAY_KEY.kid, terminalCode: TERMINAL, seq: 1, sessionMs: 0 },
      ...{ expiresMs: MESSAGE_LIFETIME_MS, jwk: GATEWAY_KEY.jwk, proof: expect.any(String) },
    });
    expect(decodeProtectedHeader(say(WITHDRAW()))).not.toHaveProperty('jwk');
  });

  it('SIG-1 SIG-2 is taken in the order in which it was sealed, gaps included', () => {
    const { box, say } = session();
    const [welcome, , third] = [say(WELCOME()), say(WITHDRAW()), say(WITHDRAW())];
    expect([welcome, third].map((it) => codeOf(box.open(it)))).toEqual(['taken', 'taken']);
  });

  it('SIG-3 is refused when it comes again, or after a later one, by name', () => {
    const { box, say } = session();
    const [first, second, third] = [say(WELCOME()), say(WITHDRAW()), say(WITHDRAW())];
    const came = [first, first, third, second, second, third];
    expect(came.map((it) => codeOf(box.open(it)))).toEqual([
      ...['taken', 'MESSAGE_REPLAYED', 'taken', 'MESSAGE_REORDERED', 'MESSAGE_REORDERED', 'MESSAGE_REPLAYED'],
    ]);
  });

  it('SIG-3 is refused by a box that it is not for, and in a session that it is not of', () => {
    const { say } = session();
    const sealed = say(WELCOME());
    expect(codeOf(begin({ terminalCode: OTHER }).box.open(sealed))).toBe('WRONG_BOX');
    expect(codeOf(begin({ sessionId: crypto.randomUUID() }).box.open(sealed))).toBe('WRONG_SESSION');
  });

  it('SIG-2 SIG-3 is refused by a key that nobody introduced, or introduced under another secret', () => {
    const { box, say } = session();
    box.open(say(WELCOME()));
    const head = { terminalCode: TERMINAL, seq: 9, sessionMs: 0, expiresMs: 60_000 };
    const forged = writeJws(STRANGER_KEY, head, JSON.stringify(WITHDRAW()));
    expect(codeOf(box.open(forged))).toBe('KEY_UNKNOWN');
    const other = begin({ secret: 'another-box-secret' });
    const greeted = greet(other.hello, CHALLENGE, other.clock, 'another-box-secret');
    if (!greeted.ok) throw new Error(greeted.reason);
    expect(codeOf(box.open(greeted.value.seal.seal(WITHDRAW(), STRANGER_KEY)))).toBe('KEY_UNKNOWN');
  });

  it('SIG-3 is refused with any changed byte', () => {
    const { box, say } = session();
    const sealed = say(WELCOME());
    let places = 0;
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = `${sealed.slice(0, at)}${sealed[at] === 'B' ? 'C' : 'B'}${sealed.slice(at + 1)}`;
      // The last character of each part has bits that are not of it.
      if (Buffer.from(changed, 'base64url').equals(Buffer.from(sealed, 'base64url'))) continue;
      expect(box.open(changed).ok, `at ${at}`).toBe(false);
      places += 1;
    }
    expect(places).toBeGreaterThan(500);
    expect(codeOf(box.open(sealed))).toBe('taken');
  });

  it('SIG-4 is refused once it has expired, and ends nothing before', async () => {
    const { box, say, clock } = session();
    const [first, second] = [say(WELCOME()), say(WITHDRAW())];
    await clock.advance(MESSAGE_LIFETIME_MS);
    expect(codeOf(box.open(first))).toBe('taken');
    await clock.advance(1);
    expect(codeOf(box.open(second))).toBe('MESSAGE_EXPIRED');
    expect(codeOf(box.open(say(WITHDRAW())))).toBe('taken');
  });

  it('SIG-5 brings a new key in the middle of a session, after which the old one is refused by name', () => {
    const { box, say } = session();
    const kept = [say(WELCOME()), say(WITHDRAW()), say(WITHDRAW())];
    expect(codeOf(box.open(kept[0] ?? ''))).toBe('taken');
    const late = kept[1] ?? '';
    expect(codeOf(box.open(say(WITHDRAW(), NEXT_KEY)))).toBe('taken');
    expect(codeOf(box.open(say(WITHDRAW(), NEXT_KEY)))).toBe('taken');
    expect(codeOf(box.open(late))).toBe('KEY_RETIRED');
    expect(codeOf(box.open(say(WITHDRAW(), GATEWAY_KEY)))).toBe('KEY_RETIRED');
  });

  it('SIG-5 SIG-3 is refused by a retired key that calls itself by another name', () => {
    const { box, say } = session();
    expect(codeOf(box.open(say(WELCOME())))).toBe('taken');
    expect(codeOf(box.open(say(WITHDRAW(), NEXT_KEY)))).toBe('taken');
    const { kid, jwk } = GATEWAY_KEY;
    const where = { from: 'gateway', terminalCode: TERMINAL, sessionId: SESSION, kid } as const;
    const introduced = { jwk, proof: proofOf(SECRET, where) };
    const times = { seq: 9, sessionMs: 0, expiresMs: MESSAGE_LIFETIME_MS };
    const named = (name: string) => {
      const key = { ...GATEWAY_KEY, kid: name };
      return writeJws(key, { terminalCode: TERMINAL, ...times, ...introduced }, JSON.stringify(WITHDRAW()));
    };
    expect(codeOf(box.open(named(kid)))).toBe('KEY_RETIRED');
    expect(codeOf(box.open(named(STRANGER_KEY.kid)))).toBe('KEY_UNKNOWN');
  });

  it('SIG-5 by a new key is taken although the first of them was lost on its way', () => {
    const { box, say } = session();
    expect(codeOf(box.open(say(WELCOME())))).toBe('taken');
    const [, second, third] = [1, 2, 3].map(() => say(WITHDRAW(), NEXT_KEY));
    expect([second, third].map((it) => codeOf(box.open(it ?? '')))).toEqual(['taken', 'taken']);
  });

  it.each([
    ['nothing', ''],
    ['no JWS', '{"v":1}'],
    ['two parts', 'eyJhIjoxfQ.eyJhIjoxfQ'],
    ['a signature of another length', 'eyJhIjoxfQ.eyJhIjoxfQ.AAAA'],
    ['no header', `x.eyJhIjoxfQ.${'A'.repeat(86)}`],
    ['more than a message may have', 'A'.repeat(16_385)],
  ])('MSG-3 SIG-1 is refused when it is %s', (_name, bytes) => {
    expect(codeOf(begin().box.open(bytes))).toBe('MESSAGE_ILLEGAL');
    expect(codeOf(begin().box.open(Buffer.from(bytes)))).toBe('MESSAGE_ILLEGAL');
  });

  it('SIG-1 is refused with another algorithm, none at all, or an extension that must be understood', () => {
    const { box, say } = session();
    const [, payload = '', signature = ''] = say(WELCOME()).split('.');
    const head = { kid: GATEWAY_KEY.kid, terminalCode: TERMINAL, seq: 1, sessionMs: 0, expiresMs: 60_000 };
    for (const more of [{ alg: 'none' }, { alg: 'HS256' }, { alg: 'EdDSA', crit: ['exp'] }, {}]) {
      const encoded = Buffer.from(JSON.stringify({ ...head, ...more })).toString('base64url');
      expect(codeOf(box.open(`${encoded}.${payload}.${signature}`)), JSON.stringify(more)).toBe('MESSAGE_ILLEGAL');
    }
  });
});

describe('a message of a box', () => {
  it('SIG-1 SIG-2 is taken in the session that its hello began', () => {
    const { box, hear } = session();
    expect(codeOf(hear(box.seal(SHOWN(), CHALLENGE)))).toBe('taken');
  });

  it('SIG-2 SIG-3 begins no session with a hello to another challenge, under another secret, or of another box', () => {
    const { hello } = begin();
    expect(codeOf(greet(hello, crypto.randomUUID()))).toBe('MESSAGE_REPLAYED');
    expect(codeOf(greet(hello, CHALLENGE, new VirtualClock(), 'another-box-secret'))).toBe('KEY_UNKNOWN');
    expect(codeOf(readUp(OTHER, hello))).toBe('WRONG_BOX');
  });

  it('SIG-3 begins no session with anything but a hello', () => {
    const { box } = begin();
    expect(codeOf(greet(box.seal(SHOWN(), CHALLENGE)))).toBe('WRONG_SESSION');
  });

  it('SIG-3 is refused when it comes again, late, or by another key', () => {
    const { box, hear } = session();
    const [first, second] = [box.seal(SHOWN(), CHALLENGE), box.seal(SHOWN(), CHALLENGE)];
    expect([second, first, second].map((it) => codeOf(hear(it)))).toEqual([
      ...['taken', 'MESSAGE_REORDERED', 'MESSAGE_REPLAYED'],
    ]);
    const head = { terminalCode: TERMINAL, seq: 9, sessionMs: 0 };
    expect(codeOf(hear(writeJws(STRANGER_KEY, head, JSON.stringify(SHOWN()))))).toBe('KEY_UNKNOWN');
    const [header = '', , signature = ''] = box.seal(SHOWN(), CHALLENGE).split('.');
    const payload = Buffer.from(JSON.stringify(up({ type: 'shown', pushId: SESSION }))).toString('base64url');
    expect(codeOf(hear(`${header}.${payload}.${signature}`))).toBe('SIGNATURE_INVALID');
  });
});

it('SIG-3 every name is given by a test of this file', async () => {
  const text = await import('node:fs/promises').then(({ readFile }) => readFile(new URL(import.meta.url), 'utf8'));
  for (const name of SEAL_REFUSALS) expect(text).toContain(`'${name}'`);
});
