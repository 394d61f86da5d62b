import { createHash, createHmac } from 'node:crypto';

/** Money as a bank moves it. */
export interface Moved {
  /** The provider's own number of the movement; 0 tries a hook. */
  id: number;
  reference: string;
  bankAccount: string;
  virtualAccount: string;
  amount: number;
  text: string;
  atMs: number;
  /** The payOS order that it pays. */
  orderCode: number;
  out: boolean;
}

export const moved = (change: Partial<Moved> = {}): Moved => ({
  id: 92_704,
  reference: 'FT26005123456789',
  bankAccount: '0123456789',
  virtualAccount: '',
  amount: 50_000,
  text: 'MBVCB.3278907687 DH001 thanh toán/Nguyễn Á',
  atMs: Date.parse('2026-01-05T09:10:11+07:00'),
  orderCode: 4711,
  out: false,
  ...change,
});

type Json = Record<string, unknown>;

/** A request to a hook: the path after `/hooks/{name}`. */
export interface HookCall {
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** How a provider proves a request: another key, another clock, a token that it has got. */
export interface Proof {
  nowMs: number;
  key?: string;
  token?: string;
}

/**
 * A provider's side of its webhook, written anew from the facts about it: it shares no code with the gateway.
 */
export interface Provider {
  /** The source in a gateway's file, without its name. */
  options: { kind: string } & Json;
  /** A provider's key is in a header, over the body, or a token for some time. */
  proof: 'key' | 'signature' | 'token';
  /** Whether a proof is too old after a while. */
  expires: boolean;
  /** The key that it has in `options`. */
  key: string;
  /** Waits before its retries (milliseconds); those of Casso and payOS are not published. */
  retryWaitsMs: readonly number[];
  /** What the body says of this money. */
  body(money: Moved): Json;
  /** Where the body has these fields. */
  at: Record<'amount' | 'account' | 'time' | 'text' | 'reference', readonly string[]> & {
    virtualAccount?: readonly string[];
  };
  call(body: Json, proof: Proof): HookCall;
  /** How the provider proves bytes that are no such body; its own call where it signs them. */
  sign(bytes: string, proof: Proof): Record<string, string>;
  /** The call for a token, by the key. */
  askToken?(key: string): HookCall;
}

const MINUTE_MS = 60_000;
const minutes = (...waits: number[]) => waits.map((it) => it * MINUTE_MS);

/** As banks write it, in Vietnam's time. */
export const bankTime = (atMs: number) => new Date(atMs + 7 * 3_600_000).toISOString().slice(0, 19).replace('T', ' ');
const mac = (algorithm: string, key: string, text: string) => createHmac(algorithm, key).update(text).digest('hex');
const isObject = (it: unknown): it is Json => typeof it === 'object' && it !== null && !Array.isArray(it);

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`).join(',')}}`;
}

const sepayBody = (money: Moved): Json => ({
  id: money.id,
  gateway: 'Vietcombank',
  transactionDate: bankTime(money.atMs),
  accountNumber: money.bankAccount,
  subAccount: money.virtualAccount || null,
  code: null,
  content: money.text,
  transferType: money.out ? 'out' : 'in',
  transferAmount: money.amount,
  accumulated: 0,
  referenceCode: money.reference,
  description: '',
});
const SEPAY = {
  expires: false,
  key: 'Key-Of-SePay-In-Tests-0123',
  retryWaitsMs: minutes(1, 1, 2, 3, 5, 8, 13),
  body: sepayBody,
  at: {
    amount: ['transferAmount'],
    account: ['accountNumber'],
    time: ['transactionDate'],
    text: ['content'],
    reference: ['referenceCode'],
    virtualAccount: ['subAccount'],
  },
} as const;

const sepayByKey: Provider = {
  ...SEPAY,
  options: { kind: 'sepay', auth: { kind: 'apikey', key: SEPAY.key } },
  proof: 'key',
  sign: (_bytes, { key = SEPAY.key }) => ({ authorization: `Apikey ${key}` }),
  call: (body, proof) => jsonCall(sepayByKey, body, proof),
};

const sepaySigned: Provider = {
  ...SEPAY,
  options: { kind: 'sepay', auth: { kind: 'hmac', secret: SEPAY.key } },
  proof: 'signature',
  expires: true,
  sign: (bytes, { nowMs, key = SEPAY.key }) => {
    const stamp = String(Math.floor(nowMs / 1000));
    return { 'x-sepay-timestamp': stamp, 'x-sepay-signature': `sha256=${mac('sha256', key, `${stamp}.${bytes}`)}` };
  },
  call: (body, proof) => jsonCall(sepaySigned, body, proof),
};

const CASSO = {
  expires: false,
  key: 'KeyOfCassoInTests0123'.padEnd(64, 'KeyOfCasso'),
  retryWaitsMs: minutes(1, 1, 1, 1, 1),
} as const;

const cassoV2: Provider = {
  ...CASSO,
  options: {
    kind: 'casso',
    auth: { kind: 'signature', key: CASSO.key, previousKey: 'KeyOfCassoBefore'.padEnd(64, 'Before0123') },
  },
  proof: 'signature',
  expires: true,
  body: (money) => ({
    error: 0,
    data: {
      id: money.id,
      reference: money.reference,
      description: money.text,
      amount: money.out ? -money.amount : money.amount,
      runningBalance: 16_775_000,
      transactionDateTime: bankTime(money.atMs),
      accountNumber: money.bankAccount,
      bankName: 'MBBank',
      bankAbbreviation: 'MBB',
      virtualAccountNumber: money.virtualAccount,
      virtualAccountName: '',
      counterAccountName: null,
    },
  }),
  at: {
    amount: ['data', 'amount'],
    account: ['data', 'accountNumber'],
    time: ['data', 'transactionDateTime'],
    text: ['data', 'description'],
    reference: ['data', 'reference'],
    virtualAccount: ['data', 'virtualAccountNumber'],
  },
  sign: (bytes, { nowMs, key = CASSO.key }) => ({
    'x-casso-signature': `t=${nowMs},v1=${mac('sha512', key, `${nowMs}.${canonical(parsed(bytes))}`)}`,
  }),
  call: (body, proof) => jsonCall(cassoV2, body, proof),
};

const cassoV1: Provider = {
  ...CASSO,
  options: { kind: 'casso', auth: { kind: 'secure-token', token: CASSO.key } },
  proof: 'key',
  body: (money) => ({
    error: 0,
    data: [
      {
        id: money.id,
        tid: money.reference,
        description: money.text,
        amount: money.out ? -money.amount : money.amount,
        cusum_balance: 16_775_000,
        when: bankTime(money.atMs),
        bank_sub_acc_id: money.bankAccount,
        subAccId: money.bankAccount,
        virtualAccount: money.virtualAccount,
      },
    ],
  }),
  at: {
    amount: ['data', '0', 'amount'],
    account: ['data', '0', 'bank_sub_acc_id'],
    time: ['data', '0', 'when'],
    text: ['data', '0', 'description'],
    reference: ['data', '0', 'tid'],
    virtualAccount: ['data', '0', 'virtualAccount'],
  },
  sign: (_bytes, { key = CASSO.key }) => ({ 'secure-token': key }),
  call: (body, proof) => jsonCall(cassoV1, body, proof),
};

const PAYOS_KEY = 'c0ffee5ca1ab1e0ddba11f00dfeed123'.repeat(2);
const payosSignature = (data: Json, key: string) => {
  const text = Object.keys(data)
    .filter((name) => data[name] !== undefined)
    .sort()
    .map((name) => {
      const value = data[name];
      if (Array.isArray(value)) return `${name}=[${value.map(canonical).join(',')}]`;
      return `${name}=${[null, 'null', 'undefined'].includes(value as string | null) ? '' : value}`;
    });
  return mac('sha256', key, text.join('&'));
};

const payos: Provider = {
  options: { kind: 'payos', checksumKey: PAYOS_KEY },
  proof: 'signature',
  expires: false,
  key: PAYOS_KEY,
  retryWaitsMs: minutes(1, 1, 1, 1, 1),
  // The order by which payOS tries a hook; a debit is never told.
  body: (money) => ({
    code: '00',
    desc: 'success',
    success: true,
    data: {
      orderCode: money.id === 0 ? 123 : money.orderCode,
      amount: money.amount,
      description: money.id === 0 ? 'VQRIO123' : money.text,
      accountNumber: money.bankAccount,
      reference: money.reference,
      transactionDateTime: bankTime(money.atMs),
      currency: 'VND',
      paymentLinkId: linkOf(money.orderCode),
      code: money.out ? '01' : '00',
      desc: 'Thành công',
      counterAccountBankId: null,
      counterAccountName: 'NGUYEN VAN A',
      virtualAccountName: '',
      virtualAccountNumber: money.virtualAccount,
    },
  }),
  at: {
    amount: ['data', 'amount'],
    account: ['data', 'accountNumber'],
    time: ['data', 'transactionDateTime'],
    text: ['data', 'description'],
    reference: ['data', 'reference'],
    virtualAccount: ['data', 'virtualAccountNumber'],
  },
  sign: () => ({}),
  call: (body, { key = PAYOS_KEY }) => ({
    path: '',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, signature: payosSignature(isObject(body.data) ? body.data : {}, key) }),
  }),
};
/** payOS names the link of an order. */
export const linkOf = (orderCode: number) => createHash('md5').update(String(orderCode)).digest('hex');

const VIETQR = { username: 'sample-vietqr', password: 'Password-Of-VietQR-In-Tests-01' };
const vietqr: Provider = {
  options: { kind: 'vietqr', ...VIETQR },
  proof: 'token',
  expires: true,
  key: VIETQR.password,
  retryWaitsMs: [1000, 2000, 3000, 4000, ...minutes(1, 1, 1, 1, 1)],
  body: (money) => ({
    transactionid: `t${money.id}`,
    transactiontime: money.atMs,
    referencenumber: money.reference,
    amount: money.amount,
    content: money.text,
    bankaccount: money.bankAccount,
    transType: money.out ? 'D' : 'C',
    orderId: '',
    sign: '',
    terminalCode: '',
    urlLink: '',
    serviceCode: '',
    subTerminalCode: '',
  }),
  at: {
    amount: ['amount'],
    account: ['bankaccount'],
    time: ['transactiontime'],
    text: ['content'],
    reference: ['referencenumber'],
  },
  sign: (_bytes, { token = 'none' }) => ({ authorization: `Bearer ${token}` }),
  call: (body, proof) => ({ ...jsonCall(vietqr, body, proof), path: '/bank/api/transaction-sync' }),
  askToken: (key) => ({
    path: '/api/token_generate',
    headers: {
      'content-type': 'application/json',
      authorization: `Basic ${Buffer.from(`${VIETQR.username}:${key}`).toString('base64')}`,
    },
    body: '{}',
  }),
};

function jsonCall(provider: Provider, body: Json, proof: Proof): HookCall {
  const text = JSON.stringify(body);
  return {
    path: '',
    headers: { 'content-type': 'application/json', ...provider.sign(text, proof) },
    body: text,
  };
}

function parsed(bytes: string): unknown {
  try {
    return JSON.parse(bytes);
  } catch {
    return null;
  }
}

/** Every provider, in each of its ways to prove who it is. */
export const PROVIDERS: Readonly<Record<string, Provider>> = {
  'sepay by key': sepayByKey,
  'sepay signed': sepaySigned,
  'casso V2': cassoV2,
  'casso V1': cassoV1,
  payos,
  vietqr,
};

/** How a provider reaches a hook; rejects when there is no answer. */
export type Post = (call: HookCall) => Promise<{ status: number; body: unknown }>;

/**
 * Tells of this money as the provider does: again after each of its waits, until it is answered 2xx, or 400 at the public
 * service, which takes that for an answer. Returns the waits, and the last status; undefined without any answer.
 */
export async function deliver(
  provider: Provider,
  money: Moved,
  post: Post,
  now: () => number,
): Promise<{ waitsMs: number[]; status: number | undefined }> {
  const waitsMs: number[] = [];
  const { askToken, key, retryWaitsMs } = provider;
  const tell = async () => {
    const given = askToken === undefined ? undefined : (await post(askToken(key))).body;
    const token = isObject(given) ? { token: String(given.access_token) } : {};
    return post(provider.call(provider.body(money), { nowMs: now(), ...token }));
  };
  for (const waitMs of [...retryWaitsMs, undefined]) {
    const status = await tell().then(
      (answer) => answer.status,
      () => undefined,
    );
    const isAnswered = status !== undefined && (status < 300 || (askToken !== undefined && status === 400));
    if (isAnswered || waitMs === undefined) return { waitsMs, status };
    waitsMs.push(waitMs);
  }
  return { waitsMs, status: undefined };
}

/** The same body with another value at a place; `undefined` takes the field out. */
export function bodyWith(body: unknown, [key = '', ...deeper]: readonly string[], value: unknown): Json {
  const copy = (Array.isArray(body) ? [...body] : { ...(body as Json) }) as Json;
  copy[key] = deeper.length === 0 ? value : bodyWith(copy[key], deeper, value);
  return copy;
}
