import { createHmac } from 'node:crypto';
import { SOURCE_KINDS } from '../../../src/gateway/money/sources/registry.ts';
import type { Source } from '../../../src/gateway/money/sources/source.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { seededRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { moved, PROVIDERS, type Proof, type Provider } from '../../support/providers.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated, ODD_TEXTS, pick } from '../bytes.ts';
import { openGateway, unchangedBy } from '../gateway.ts';
import { requestOf } from '../http.ts';
import { mutatedJson } from '../json.ts';
import { hold, holdNamed, type Target } from '../target.ts';

/** Proofs have a time in them, and an input must not depend on when it is made. */
const NOW_MS = Date.parse('2026-01-05T09:12:00+07:00');
const DRIFT_MS_MAX = 300_000;
/** Stands in an input for the token that the source has given. */
const TOKEN = 'the-token-of-this-run';
const TOKEN_PATH = '/api/token_generate';
const JSON_TYPE = { 'content-type': 'application/json' };

/** Each provider by the name of its source. */
const BY_NAME = new Map(Object.entries(PROVIDERS).map(([name, it]) => [name.toLowerCase().replaceAll(' ', '-'), it]));
const SOURCES = [...BY_NAME].map(([name, { options }]) => ({ name, ...options }));

interface Call {
  name: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer;
}

/** A call as the provider makes it. */
function rightCall(chance: Seeded): { call: Call; provider: Provider; proof: Proof } {
  const [name, provider] = pick([...BY_NAME], chance);
  const proof = { nowMs: NOW_MS - chance.below(60_000), token: TOKEN };
  const ids = { id: chance.below(50), reference: `FT${chance.below(50)}`, amount: 1 + chance.below(3) };
  const money = moved({ ...ids, atMs: NOW_MS - chance.below(3_600_000), out: chance.chance(0.1) });
  const asksToken = provider.askToken !== undefined && chance.chance(0.2);
  const { path, headers, body } = (asksToken ? provider.askToken?.(provider.key) : undefined) ?? {
    ...provider.call(provider.body(money), proof),
  };
  return { call: { name, path, headers, body: Buffer.from(body) }, provider, proof };
}

/** A right call, mostly with another path, header or body; every second other body has the proof of what it says. */
function anyCall(chance: Seeded): Call {
  const { call, provider, proof } = rightCall(chance);
  const part = chance.weighted([
    [1, 'none'],
    [1, 'path'],
    [2, 'header'],
    [4, 'body'],
  ]);
  if (part === 'none') return call;
  if (part === 'path') return { ...call, path: onOneLine(mutated([Buffer.from(call.path || '/')], chance)) };
  if (part === 'header') {
    return withHeader(call, chance, (it) =>
      chance.chance(0.2) ? Buffer.from(pick(ODD_TEXTS, chance)) : mutated([it], chance),
    );
  }
  const body = chance.chance(0.3) ? mutated([call.body], chance) : mutatedJson([call.body], chance);
  return chance.chance(0.5) && call.path !== TOKEN_PATH
    ? proved({ ...call, body }, provider, proof)
    : { ...call, body };
}

/** A right call, of which one byte of the body or of the proof is another. */
function callWithOtherByte(chance: Seeded): Call {
  const { call } = rightCall(chance);
  const change = (bytes: Buffer) => {
    const changed = Buffer.from(bytes);
    const at = chance.below(bytes.length);
    changed[at] = ((changed[at] ?? 0) + 1 + chance.below(255)) % 256;
    return changed;
  };
  return chance.chance(0.5) ? withHeader(call, chance, change) : { ...call, body: change(call.body) };
}

function withHeader(call: Call, chance: Seeded, change: (value: Buffer) => Buffer): Call {
  const names = Object.keys(call.headers).filter((it) => it !== 'content-type');
  const name = pick(names.length === 0 ? ['content-type'] : names, chance);
  const value = onOneLine(change(Buffer.from(call.headers[name] ?? '')));
  return { ...call, headers: { ...call.headers, [name]: value.slice(0, 3_000) } };
}

function proved(call: Call, provider: Provider, proof: Proof): Call {
  try {
    const text = call.body.toString();
    // payOS has its proof in the body.
    if (provider.options.kind !== 'payos') {
      return { ...call, headers: { ...JSON_TYPE, ...provider.sign(text, proof) } };
    }
    return { ...call, body: Buffer.from(provider.call(JSON.parse(text) as Record<string, unknown>, proof).body) };
  } catch {
    // No JSON, or too deep for the provider.
    return call;
  }
}

/** What a line of HTTP can carry. */
function onOneLine(bytes: Buffer): string {
  return bytes.toString('latin1').replaceAll(/[^\x20-\x7e\x80-\xff]/g, '');
}

function asInput({ name, path, headers, body }: Call): Buffer {
  const target = `/hooks/${name}${path.replaceAll(' ', '%20')}`;
  return requestOf(`POST ${target}`, latin1(headers), body);
}

function latin1(headers: Record<string, string>): Record<string, Buffer> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Buffer.from(value, 'latin1')]));
}

/** The input as a server reads it. */
function callIn(input: Buffer): Call {
  const end = input.indexOf('\r\n\r\n');
  const [line = '', ...lines] = input.toString('latin1', 0, end).split('\r\n');
  const [, name = '', path = ''] = /^POST \/hooks\/([a-z0-9-]+)(.*) HTTP\/1\.1$/.exec(line) ?? [];
  const headers = lines.map((it): [string, string] => {
    const colon = it.indexOf(':');
    return [it.slice(0, colon).toLowerCase(), it.slice(colon + 1).trim()];
  });
  return { name, path, headers: Object.fromEntries(headers), body: input.subarray(end + 4) };
}

const mac = (algorithm: string, key: string, ...parts: (string | Buffer)[]) =>
  parts.reduce((hmac, part) => hmac.update(part), createHmac(algorithm, key)).digest('hex');

/** Whether the provider could have sent it: reckoned without the gateway's code. */
function isProved({ headers, body }: Call, provider: Provider, token: string): boolean {
  const { key, proof, options } = provider;
  const authorization = (headers.authorization ?? '').replace(
    /^(\w+) +/,
    (_, word: string) => `${word.toLowerCase()} `,
  );
  if (proof === 'token') return authorization === `bearer ${token}`;
  if (proof === 'key') return authorization === `apikey ${key}` || headers['secure-token'] === key;
  if (options.kind === 'sepay') {
    const stamp = headers['x-sepay-timestamp'] ?? '';
    const signature = `sha256=${mac('sha256', key, `${stamp}.`, body)}`;
    return isNow(Number(stamp) * 1000) && headers['x-sepay-signature']?.toLowerCase() === signature;
  }
  try {
    const text = body.toString();
    const nowMs = Number(/^t=(\d+),/.exec(headers['x-casso-signature'] ?? '')?.[1]);
    if (options.kind === 'casso') {
      return (
        isNow(nowMs) &&
        headers['x-casso-signature']?.toLowerCase() === provider.sign(text, { nowMs })['x-casso-signature']
      );
    }
    const { data, signature } = JSON.parse(text) as Record<string, unknown>;
    return (
      String(signature).toLowerCase() ===
      (JSON.parse(provider.call({ data }, { nowMs }).body) as { signature: unknown }).signature
    );
  } catch {
    return false;
  }
}

const isNow = (atMs: number) => Math.abs(NOW_MS - atMs) <= DRIFT_MS_MAX;

/** Holds that a source had a reason to take a call. */
function holdTaken(call: Call, token: string, what: () => string): void {
  const provider = BY_NAME.get(call.name);
  if (provider === undefined) throw new Error(`no source ${call.name}`);
  if (provider.askToken !== undefined && call.path.replaceAll(/\/+/g, '/').startsWith(TOKEN_PATH)) {
    const given = (text = '') => Buffer.from(text.replace(/^basic +/i, ''), 'base64').toString();
    const right = provider.askToken(provider.key).headers.authorization;
    hold(given(call.headers.authorization) === given(right), () => `a token for ${call.headers.authorization}`);
  } else {
    hold(isProved(call, provider, token), () => `taken without a proof: ${what()}`);
  }
}

function withToken(input: Buffer, token: string): Buffer {
  const [before, ...rest] = input.toString('latin1').split(TOKEN);
  return rest.length === 0 ? input : Buffer.from([before, ...rest].join(token), 'latin1');
}

const VIETQR = 'vietqr';
const askToken = (): Omit<Call, 'name'> => {
  const { askToken: ask, key = '' } = PROVIDERS[VIETQR] ?? {};
  const { path, headers, body } = ask?.(key) ?? { path: '', headers: {}, body: '' };
  return { path, headers, body: Buffer.from(body) };
};

/** Every source by itself: what it hears is proved and is money; a refusal has its reason and no secret. */
const hear: Target['open'] = () => {
  const deps = { clock: new VirtualClock(NOW_MS), random: seededRandom(1) };
  const sources = new Map<string, Source>();
  for (const options of SOURCES) {
    const source = SOURCE_KINDS.get(options.kind)?.open(options, deps);
    if (source !== undefined) sources.set(options.name, source);
  }
  const given = sources.get(VIETQR)?.hear(askToken());
  const token = given?.kind === 'answered' ? tokenIn(given.body) : '';
  return {
    feed: (input) => {
      const call = callIn(withToken(input, token));
      const heard = sources.get(call.name)?.hear(call);
      // Another path may name no source.
      if (heard === undefined) return false;
      if (heard.kind === 'refused') {
        hold(heard.status === 400 || heard.status === 401, () => `refused with ${heard.status}`);
        holdNamed(heard.reason.replaceAll('received undefined', ''));
        const key = BY_NAME.get(call.name)?.key ?? '';
        hold(!JSON.stringify(heard).includes(key), () => `it says its key: ${heard.reason}`);
        return false;
      }
      holdTaken(call, token, () => JSON.stringify(heard));
      for (const { amount, bankAccount, sourceId, bankTimeMs } of heard.kind === 'told' ? heard.credits : []) {
        const isMoney = Number.isSafeInteger(amount) && amount > 0 && (bankTimeMs ?? 0) >= 0;
        hold(isMoney && bankAccount !== '' && sourceId !== '', () => `no money: ${JSON.stringify(heard)}`);
      }
      return true;
    },
  };
};

/** The hooks of a gateway: no fault, and without a proof nothing is stored. */
const hooks: Target['open'] = async (world) => {
  const startedMs = systemClock.monotonicMs();
  const clock = { ...systemClock, wallMs: () => NOW_MS + Math.floor(systemClock.monotonicMs() - startedMs) };
  const gateway = await openGateway(world, { clock, sources: SOURCES });
  const { path, headers, body } = askToken();
  const given = await gateway.send(asInput({ name: VIETQR, path, headers, body }));
  const token = tokenIn(JSON.parse(given.body));
  return unchangedBy(gateway, async (input) => {
    const bytes = withToken(input, token);
    const answer = await gateway.send(bytes);
    hold(answer.status >= 200 && answer.status < 500, () => `answered ${answer.text.slice(0, 1_000)}`);
    hold(!/\n\s+at .*:\d+:\d+/.test(answer.text), () => `a stack trace: ${answer.text.slice(0, 1_000)}`);
    if (answer.status !== 200) return false;
    holdTaken(callIn(bytes), token, () => answer.text);
    return true;
  });
};

const tokenIn = (body: object) => ('access_token' in body ? String(body.access_token) : '');

export const HOOKS: Target[] = [
  { name: 'source', inputs: 2_500, make: (chance) => asInput(anyCall(chance)), open: hear },
  { name: 'one byte of a hook', inputs: 2_500, make: (chance) => asInput(callWithOtherByte(chance)), open: hear },
  { name: 'hook', inputs: 1_000, make: (chance) => asInput(anyCall(chance)), open: hooks },
];
