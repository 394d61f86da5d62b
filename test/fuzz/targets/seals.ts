import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { readEnrolmentCode } from '../../../src/protocol/enrolment.ts';
import { writeJws } from '../../../src/protocol/jws.ts';
import { signingKeyOf } from '../../../src/protocol/keys.ts';
import type { DownMessage, UpMessage } from '../../../src/protocol/messages.ts';
import { BoxSeal, GatewaySeal, type Opened, readUp, SEAL_REFUSALS } from '../../../src/protocol/seal.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated, ODD_TEXTS, pick } from '../bytes.ts';
import { BOX1, MESSAGES_DOWN, MESSAGES_UP } from '../corpus.ts';
import { mutatedJson } from '../json.ts';
import { hold, holdNamed, pure, type Target } from '../target.ts';

const [SESSION, CHALLENGE] = ['3b241101-e2bb-4255-8caf-4136c566a962', '9f2c6b1e-52a1-4c0e-8f3a-0d6f7c1f2a3b'];
const BOX = { terminalCode: BOX1.terminalCode, secret: BOX1.secret };
const keyOf = (byte: number) => signingKeyOf(Buffer.alloc(32, byte).toString('base64url'));
const [BOX_KEY, GATEWAY_KEY, STRANGER] = [keyOf(1), keyOf(2), keyOf(3)];

const ofSession = <T>(messages: readonly Buffer[]): T[] =>
  messages.map((it) => ({ ...JSON.parse(String(it)), sessionId: SESSION }) as T);
const HELLO = ofSession<UpMessage>(MESSAGES_UP).filter((it) => it.type === 'hello');
const SAID = [...HELLO, ...ofSession<UpMessage>(MESSAGES_UP).filter((it) => it.type !== 'hello')];
const TOLD = ofSession<DownMessage>(MESSAGES_DOWN);

const boxSeal = () => new BoxSeal({ ...BOX, sessionId: SESSION }, BOX_KEY, new VirtualClock());
const sealer = boxSeal();
/** What box and gateway say in one session, the hello and the welcome first. */
const UP = SAID.map((message) => sealer.seal(message, CHALLENGE));
const DOWN = TOLD.map(
  (
    (gateway) => (message: DownMessage) =>
      gateway.seal(message, GATEWAY_KEY)
  )(greeted()),
);

function greeted(): GatewaySeal {
  const opened = greet(UP[0] ?? '');
  if (!opened.ok) throw new Error(opened.reason);
  return opened.value.seal;
}

function greet(bytes: string) {
  const read = readUp(BOX.terminalCode, bytes);
  return read.ok ? GatewaySeal.greet(BOX, CHALLENGE, read.value, new VirtualClock()) : read;
}

/** A JWS that was changed on its way: its bytes, what its parts say, or all of it under a key of somebody else. */
function tampered(corpus: readonly string[], chance: Seeded): Buffer {
  const [head = '', body = '', signature = ''] = pick(corpus, chance).split('.');
  const [read, encode] = [
    (part: string) => Buffer.from(part, 'base64url'),
    (bytes: Uint8Array) => Buffer.from(bytes).toString('base64url'),
  ];
  switch (chance.below(6)) {
    case 0:
      return Buffer.from([encode(mutatedJson([read(head)], chance)), body, signature].join('.'));
    case 1:
      return Buffer.from([head, encode(mutatedJson([read(body)], chance)), signature].join('.'));
    case 2:
      return Buffer.from([head, body, encode(mutated([read(signature)], chance))].join('.'));
    case 3: {
      const [, otherBody = '', otherSignature = ''] = pick(corpus, chance).split('.');
      return Buffer.from([head, otherBody, chance.chance(0.5) ? signature : otherSignature].join('.'));
    }
    case 4: {
      const { alg: _alg, kid: _kid, ...rest } = JSON.parse(String(read(head)));
      const own = { ...rest, seq: 1 + chance.below(2 ** 31), ...(chance.chance(0.7) && { jwk: STRANGER.jwk }) };
      return Buffer.from(writeJws(STRANGER, own, String(read(body))));
    }
    default:
      return mutated([Buffer.from([head, body, signature].join('.'))], chance);
  }
}

/** Whether it is one of these messages, each of its parts as it was. */
function isUntouched(input: Buffer, corpus: readonly string[]): boolean {
  // The last character of a signature has bits that are not of it.
  const parts = (text: string) => [...text.split('.').slice(0, 2), text.split('.')[2]?.slice(0, -1)].join('.');
  return corpus.some((it) => parts(it) === parts(input.toString('latin1')));
}

function holdRefused(opened: Opened<unknown>): void {
  if (opened.ok) return;
  hold(SEAL_REFUSALS.includes(opened.code), () => `refused with ${opened.code}`);
  hold(!/[\n\r]/.test(opened.reason), () => `more than a line: ${opened.reason}`);
  holdNamed(opened.reason.replaceAll('received undefined', ''));
}

/**
 * What was changed on its way is refused, and leaves the session as it was: the next message is taken, and the one
 * before is not taken again.
 */
function sealed(corpus: readonly string[], begin: () => (bytes: Buffer | string) => Opened<unknown>): Target['open'] {
  return () => {
    let open = begin();
    let next = 1;
    const feed = (input: Buffer) => {
      if (next >= corpus.length) {
        open = begin();
        next = 1;
      }
      const opened = open(input);
      holdRefused(opened);
      hold(!opened.ok || isUntouched(input, corpus), () => 'a message was taken that nobody sealed');
      const again = open(opened.ok ? input : (corpus[next] ?? ''));
      hold(again.ok !== opened.ok, () => (opened.ok ? 'a message was taken twice' : 'a refusal changed the session'));
      hold(!open(corpus[next - 1] ?? '').ok, () => 'a message was taken again');
      next = opened.ok ? corpus.length : next + 1;
      return opened.ok;
    };
    return { feed };
  };
}

const toBox = sealed(DOWN, () => {
  const box = boxSeal();
  hold(box.open(DOWN[0] ?? '').ok, () => 'the welcome was refused');
  return (bytes) => box.open(bytes);
});

const fromBox = sealed(UP, () => {
  const gateway = greeted();
  return (bytes) => {
    const read = readUp(BOX.terminalCode, bytes);
    return read.ok ? gateway.open(read.value) : read;
  };
});

const hellos: Target['open'] = pure((input) => {
  const opened = greet(input.toString('latin1'));
  holdRefused(opened);
  hold(!opened.ok || isUntouched(input, UP.slice(0, 1)), () => 'a session began that nobody sealed');
  return opened.ok;
});

const CODES = ['7K2M-Q0XA-94TZ', '7k2mq0xa94tz', 'OOOO-IIII-LLLL', ' 7K2M Q0XA 94TZ\n', '0000-0000-0000', ...ODD_TEXTS];

const codes: Target['open'] = pure((input) => {
  const code = readEnrolmentCode(input.toString());
  if (code === undefined) return false;
  hold(/^([0-9A-HJKMNP-TV-Z]{4}-){2}[0-9A-HJKMNP-TV-Z]{4}$/.test(code), () => `read as ${code}`);
  hold(readEnrolmentCode(code) === code, () => `${code} is read as another`);
  return true;
});

export const SEALS: Target[] = [
  { name: 'sealed message to a box', inputs: 2_000, make: (chance) => tampered(DOWN, chance), open: toBox },
  { name: 'sealed message from a box', inputs: 2_000, make: (chance) => tampered(UP, chance), open: fromBox },
  { name: 'hello of a box', inputs: 1_000, make: (chance) => tampered(UP.slice(0, 1), chance), open: hellos },
  {
    name: 'enrolment code',
    inputs: 1_000,
    make: (chance) =>
      mutated(
        CODES.map((it) => Buffer.from(it === '' ? ' ' : it)),
        chance,
      ),
    open: codes,
  },
];
