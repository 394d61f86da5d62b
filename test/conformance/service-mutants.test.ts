import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SERVICE_CHECKS } from '../../src/conformance/service/checks/all.ts';
import type { EmulatedServiceChanges } from '../../src/conformance/service/emulated-service.ts';
import { crc16 } from '../../src/protocol/crc16.ts';
import { PATHS } from '../../src/protocol/http-api.ts';
import { checksNear, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';
import { clausesOf, type Exchange, judgeEmulated, type Tampering, tamperingProxy } from './service-fixture.ts';

const SERVICE = (path: string) => `/vqr${path}`;

/** The JSON of an answer or a request, changed. */
function changed(exchange: Exchange, change: (json: Record<string, unknown>) => object): void {
  exchange.body = JSON.stringify(change(JSON.parse(exchange.body) as Record<string, unknown>));
}

function isJson({ body }: Exchange): boolean {
  try {
    return typeof JSON.parse(body) === 'object' && JSON.parse(body) !== null;
  } catch {
    return false;
  }
}

const same = (qr: string) => qr;
const is = (exchange: Exchange, path: string) => exchange.path === SERVICE(path);
const failed = (message: string) => ({ status: 400, body: JSON.stringify({ status: 'FAILED', message }) });

/** Another QR in what is generated, with a right CRC unless it has to be wrong. */
function otherQr(change: (qr: string) => string, crc = crc16): Tampering {
  return {
    answer: (answer) => {
      if (!is(answer, PATHS.generate) || answer.status !== 200) return;
      changed(answer, (json) => {
        const open = change(String(json.qrCode).slice(0, -4));
        return { ...json, qrCode: `${open}${crc(open)}` };
      });
    },
  };
}

/** Another qrLink in what is generated. */
function otherLink(change: (link: string) => string): Tampering {
  return {
    answer: (answer) => {
      if (!is(answer, PATHS.generate) || answer.status !== 200) return;
      changed(answer, (json) => ({ ...json, qrLink: change(String(json.qrLink)) }));
    },
  };
}

/** The password and the bearers of each partner, as somebody on the way learns them. */
function learned() {
  const passwords = new Map<string, string>();
  return {
    /** Of whoever owns the bearer; undefined for one that was not given. */
    passwordOf: ({ headers }: Exchange) => passwords.get(headers.authorization ?? ''),
    answer: (answer: Exchange, request: Exchange) => {
      if (!is(request, PATHS.token) || answer.status !== 200) return;
      const basic = Buffer.from((request.headers.authorization ?? '').slice('Basic '.length), 'base64').toString(
        'utf8',
      );
      const { access_token } = JSON.parse(answer.body) as { access_token: string };
      passwords.set(`Bearer ${access_token}`, basic.slice(basic.indexOf(':') + 1));
    },
  };
}

function withoutCheckSum(): Tampering {
  const { passwordOf, answer } = learned();
  const request = (exchange: Exchange) => {
    if (!is(exchange, PATHS.sendQr) || !isJson(exchange)) return undefined;
    changed(exchange, (json) => {
      const text = `${passwordOf(exchange)}${json.bankAccount}${json.amount}${json.bankCode}`;
      const checkSum = createHash('md5').update(text, 'utf8').digest('hex');
      return typeof json.checkSum === 'string' ? { ...json, checkSum } : json;
    });
    return undefined;
  };
  return { request, answer };
}

/** A token that was ever given opens every door. */
function withoutExpiry(): Tampering {
  const { passwordOf, answer } = learned();
  return {
    answer: (exchange, request) => {
      answer(exchange, request);
      if (exchange.status === 401 && passwordOf(request) !== undefined)
        Object.assign(exchange, { status: 200, body: '{}' });
    },
  };
}

/** Every bearer is as good as the one that was given last. */
function anyBearer(): Tampering {
  let given = '';
  return {
    request: (exchange) => {
      if (!is(exchange, PATHS.token)) exchange.headers.authorization = given;
      return undefined;
    },
    answer: (answer, request) => {
      if (is(request, PATHS.token) && answer.status === 200) {
        given = `Bearer ${(JSON.parse(answer.body) as { access_token: string }).access_token}`;
      }
    },
  };
}

/** A test callback that names no transaction. */
function noTransactionId(): Tampering {
  return {
    answer: (answer) => {
      if (is(answer, PATHS.testCallback) && answer.status === 200)
        changed(answer, (json) => ({ ...json, message: '' }));
    },
  };
}

function oneTransactionId(): Tampering {
  let first: unknown;
  return {
    answer: (answer) => {
      if (!is(answer, PATHS.testCallback) || answer.status !== 200) return;
      changed(answer, (json) => {
        first ??= json.message;
        return { ...json, message: first };
      });
    },
  };
}

const PURPOSE_AT_END = /62(\d\d)08(\d\d)([0-9A-Z]{8})6304$/;

/** `P ` before the content of a QR. */
function prefixed(qr: string): string {
  const longer = (length: string) => String(Number(length) + 2).padStart(2, '0');
  return qr.replace(PURPOSE_AT_END, (_, all, own, content) => `62${longer(all)}08${longer(own)}P ${content}6304`);
}

/** Another last digit of the amount. */
function otherAmount(qr: string): string {
  return qr.replace(/(?<=530370454\d\d\d*)\d(?=5802VN)/, (last) => (last === '1' ? '2' : '1'));
}

/** What is wrong with the service, and the clauses that say so. */
const BEHIND_A_PROXY: readonly (readonly [what: string, clauses: readonly string[], tampering: () => Tampering])[] = [
  ['checkSum is not looked at', ['SND-2', 'SUM-1'], withoutCheckSum],
  [
    'checkSum is looked at before the amount',
    ['SND-2'],
    () => ({
      request: (it) =>
        is(it, PATHS.sendQr) && it.body.includes('"amount":"0"') && it.body.includes(`"${'0'.repeat(32)}"`)
          ? failed('E39')
          : undefined,
    }),
  ],
  [
    'malformed JSON has another code',
    ['ERR-3'],
    () => ({
      answer: (it, request) => {
        if (is(request, PATHS.generate) && !isJson(request)) it.body = it.body.replace('E46', 'E05');
      },
    }),
  ],
  [
    'the CRC of a QR is wrong',
    ['GEN-4', 'QRP-3'],
    () => otherQr(same, (qr) => (crc16(qr) === '0000' ? '0001' : '0000')),
  ],
  ['a QR has another amount', ['GEN-4', 'GEN-5'], () => otherQr(otherAmount)],
  ['content is prefixed', ['GEN-4', 'GEN-6'], () => otherQr(prefixed)],
  [
    'content with a # is refused',
    ['GEN-2'],
    () => ({ request: (it) => (is(it, PATHS.generate) && it.body.includes('h#9') ? failed('E34') : undefined) }),
  ],
  [
    'an amount may have a zero before it',
    ['SND-2'],
    () => ({
      answer: (it, request) => {
        if (is(request, PATHS.sendQr) && request.body.includes('"amount":"05000"'))
          Object.assign(it, { status: 200, body: '{"status":"SUCCESS","message":""}' });
      },
    }),
  ],
  ['any bearer is taken', ['TOK-5'], anyBearer],
  ['qrLink leads nowhere', ['GEN-4'], () => otherLink((link) => `${link}x`)],
  [
    'qrLink leads to the QR of another order',
    ['GEN-4'],
    () => {
      let first: string | undefined;
      return otherLink((link) => {
        first ??= link;
        return first;
      });
    },
  ],
  [
    'every account exists',
    ['GEN-4'],
    () => ({
      answer: (it) => {
        it.body = it.body.replace('"existing":0', '"existing":1');
      },
    }),
  ],
  [
    'a push whose order was paid before it was on the screen is not taken back',
    ['CBK-7'],
    () => ({ passesEvent: (message) => !message.includes('"why":"paid"') }),
  ],
  ['every payment has one transaction id', ['CBK-5', 'CBK-7', 'SYN-2'], oneTransactionId],
  [
    'a refusal is 200',
    ['ERR-2'],
    () => ({
      answer: (it) => {
        if (it.status === 400) it.status = 200;
      },
    }),
  ],
  [
    'an unknown path is 200',
    ['ERR-2'],
    () => ({
      answer: (it) => {
        if (it.status === 404) Object.assign(it, { status: 200, body: '{}' });
      },
    }),
  ],
  [
    'a test callback takes content of 20',
    ['CBK-2', 'LIM-3'],
    () => ({
      request: (it) => {
        if (is(it, PATHS.testCallback) && isJson(it)) {
          changed(it, (json) => ({
            ...json,
            ...(typeof json.content === 'string' && { content: json.content.slice(0, 19) }),
          }));
        }
        return undefined;
      },
    }),
  ],
  [
    'a 401 has no WWW-Authenticate',
    ['TOK-4', 'TOK-5'],
    () => ({
      answer: (it) => {
        delete it.headers['www-authenticate'];
      },
    }),
  ],
  [
    "a partner pays into another's account",
    ['CBK-2'],
    () => ({
      answer: (it, request) => {
        if (is(request, PATHS.testCallback) && request.body.includes('0123456789') && it.body.includes('E77'))
          Object.assign(it, { status: 200, body: '{"status":"SUCCESS","message":"T1"}' });
      },
    }),
  ],
  [
    'a box shows the QR of an account that it is not linked to',
    ['SND-2'],
    () => ({
      answer: (it, request) => {
        if (is(request, PATHS.sendQr) && request.body.includes('"bankAccount":"SHOP2ACC"'))
          Object.assign(it, { status: 200, body: '{"status":"SUCCESS","message":""}' });
      },
    }),
  ],
  [
    'a push that timed out is not taken back',
    ['CBK-7', 'SND-4'],
    () => ({ passesEvent: (message) => !message.includes('"type":"withdraw"') }),
  ],
  [
    'a push that timed out is SUCCESS',
    ['SND-4'],
    () => ({
      answer: (it) => {
        if (it.body.includes('BOX_TIMEOUT'))
          Object.assign(it, { status: 200, body: '{"status":"SUCCESS","message":""}' });
      },
    }),
  ],
  [
    'what the box refuses has a code of no table',
    ['ERR-6', 'SND-6'],
    () => ({
      answer: (it) => {
        it.body = it.body.replace('DISPLAY_FAULT', 'E999');
      },
    }),
  ],
  [
    'a token is said to be good for an hour',
    ['TOK-1'],
    () => ({
      answer: (it) => {
        it.body = it.body.replace('"expires_in":300', '"expires_in":3600');
      },
    }),
  ],
];

/** Judges the emulated gateway behind a proxy, or with a proxy before the partner: by every check, or near some clauses. */
async function judged(
  changes: (through: (origin: string, tampering: Tampering) => Promise<string>) => EmulatedServiceChanges,
  clauses?: readonly string[],
  strict = true,
) {
  const closers: (() => void)[] = [];
  const through = async (origin: string, tampering: Tampering) => {
    const server = await tamperingProxy(origin, tampering);
    closers.push(server.close);
    return server.origin;
  };
  try {
    const checks = clauses === undefined ? SERVICE_CHECKS : checksNear(SERVICE_CHECKS, clauses);
    return await judgeEmulated({ isWithoutBox: true, isQuick: true, ...changes(through) }, { strict, checks });
  } finally {
    for (const close of closers) close();
  }
}

const without =
  (...fields: string[]) =>
  (json: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(json).filter(([field]) => !fields.includes(field)));

function otherCallback(from: RegExp, to: string): Tampering {
  return {
    request: (it) => {
      it.body = it.body.replace(from, to);
      return undefined;
    },
  };
}

const CALLBACK_CHANGES: readonly (readonly [what: string, clauses: readonly string[], tampering: () => Tampering])[] = [
  [
    'a callback has another amount',
    ['SYN-2', 'SYN-8'],
    () => ({
      request: (it) => {
        it.body = it.body.replace(/"amount":\d+/, '"amount":1');
        return undefined;
      },
    }),
  ],
  [
    'a callback lacks a field',
    ['SYN-2', 'SYN-8'],
    () => ({
      request: (it) => {
        if (isJson(it)) changed(it, without('urlLink'));
        return undefined;
      },
    }),
  ],
  ['the oldest of orders alike is paid', ['CBK-6'], () => otherCallback(/"orderId":"SECOND-/, '"orderId":"FIRST-')],
  [
    'a payment is of a newer order than a box shows',
    ['CBK-6'],
    () => otherCallback(/"orderId":"SHOWN-/, '"orderId":"NEWER-'),
  ],
  ['a debit is told as a credit', ['SYN-2'], () => otherCallback(/"transType":"D"/, '"transType":"C"')],
  ['a callback names no box', ['SYN-2'], () => otherCallback(/"terminalCode":"\w+"/, '"terminalCode":""')],
  [
    'a callback has its time in seconds',
    ['SYN-2', 'SYN-8'],
    () => otherCallback(/("transactiontime":\d+)\d{3}\b/, '$1'),
  ],
  [
    'every callback has one reference number',
    ['SYN-2', 'SYN-8'],
    () => otherCallback(/"referencenumber":"[^"]+"/, '"referencenumber":"R1"'),
  ],
  [
    'a callback is sent again after 400',
    ['SYN-4'],
    () => ({
      answer: (it) => {
        if (it.status === 400) it.status = 500;
      },
    }),
  ],
  [
    'a callback goes to another address',
    ['SYN-1'],
    () => ({
      request: (it) => {
        it.path += '/';
        return undefined;
      },
    }),
  ],
  [
    'a callback has no authorization',
    ['SYN-1'],
    () => ({
      request: (it) => {
        delete it.headers.authorization;
        return undefined;
      },
    }),
  ],
];

describe.concurrent('a service that is wrong', { timeout: MUTANT_TIMEOUT_MS }, () => {
  it('is not what these tests begin with', async () => {
    const results = await judged((through) => ({
      service: (origin) => through(origin, {}),
      partner: async (url) => `${await through(new URL(url).origin, {})}${new URL(url).pathname}`,
    }));
    expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    expect(clausesOf(results, 'passed').length).toBeGreaterThan(40);
  });

  it.each(BEHIND_A_PROXY)('is caught by its clauses and no others: %s', async (_what, clauses, tampering) => {
    const results = await judged((through) => ({ service: (origin) => through(origin, tampering()) }), clauses);
    expect(clausesOf(results, 'failed')).toEqual(clauses);
  });

  it.each(CALLBACK_CHANGES)('is caught by its clauses and no others: %s', async (_what, clauses, tampering) => {
    const results = await judged(
      (through) => ({
        partner: async (url) => `${await through(new URL(url).origin, tampering())}${new URL(url).pathname}`,
      }),
      clauses,
    );
    expect(clausesOf(results, 'failed')).toEqual(clauses);
  });

  it.each([
    ['SUCCESS is answered before the QR is on the screen', ['SND-3'], { confirm: 'accepted' }],
    ['a callback is never sent again', ['SYN-4'], { callbackRetryWaitsMs: [] }],
  ])('is caught by its clauses and no others: %s', async (_what, clauses, config) => {
    expect(clausesOf(await judged(() => ({ config }), clauses), 'failed')).toEqual(clauses);
  });

  it('is caught by its clauses and no others: a paid order stays on the box that showed it first', async () => {
    const tampering: Tampering = { passesEvent: (message) => !message.includes('"why":"paid"') };
    const results = await judged(
      (through) => ({
        isWithoutBox: false,
        service: (origin) => through(origin, tampering),
      }),
      ['CBK-7'],
    );
    expect(clausesOf(results, 'failed')).toEqual(['CBK-7']);
  });

  it('is skipped, and not failed, where it is off and so cannot tell of a wrong checkSum', async () => {
    const off: Tampering = {
      answer: (it, request) => {
        if (is(request, PATHS.sendQr) && it.body.includes('E39')) it.body = it.body.replace('E39', 'BOX_OFFLINE');
      },
    };
    const results = await judged(
      (through) => ({ service: (origin) => through(origin, off) }),
      ['SUM-1', 'SND-5'],
      false,
    );
    expect(clausesOf(results, 'failed')).toEqual([]);
    expect(results.find(({ clause, level }) => clause === 'SUM-1' && level === 'spec')?.outcome).toBe('skipped');
  });

  it('is caught by its clauses and no others: an expired token is taken', async () => {
    const results = await judged(
      (through) => ({
        isQuick: false,
        service: (origin) => through(origin, withoutExpiry()),
      }),
      ['TOK-2'],
    );
    expect(clausesOf(results, 'failed')).toEqual(['TOK-2']);
  });

  it('only differs where the specification leaves the choice: statuses, codes, a prefix and more fields', async () => {
    const other: Tampering = {
      answer: (it, request) => {
        if (it.status === 401) Object.assign(it, { status: 403, body: '<h1>Forbidden</h1>' });
        else if (it.status >= 400 && isJson(it)) changed(it, () => ({ status: 'FAILED', message: `X${it.status}` }));
        if (it.status === 400) it.status = 422;
        if (is(request, PATHS.generate) && it.body.includes('qrCode')) {
          otherQr(prefixed).answer?.(it, request);
          changed(it, (json) => ({ ...json, ofALaterVersion: { a: 1 } }));
        }
      },
    };
    const results = await judged(
      (through) => ({ isWithoutBox: false, service: (origin) => through(origin, other) }),
      undefined,
      false,
    );
    expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    expect(clausesOf(results, 'differs')).toEqual(expect.arrayContaining(['GEN-6', 'SND-2', 'SND-5', 'TOK-4']));
  });

  it('is not said to send callbacks again because it names no transaction', async () => {
    const results = await judged(
      (through) => ({ service: (origin) => through(origin, noTransactionId()) }),
      ['CBK-4', 'SYN-3'],
      false,
    );
    expect(clausesOf(results, 'failed')).toEqual(['CBK-4', 'CBK-5']);
  });

  it('only differs where the specification leaves the choice: 403 for a wrong bearer', async () => {
    const forbidden: Tampering = {
      answer: (it, request) => {
        if (it.status === 401 && !is(request, PATHS.token)) Object.assign(it, { status: 403, body: 'Forbidden' });
      },
    };
    const results = await judged((through) => ({ service: (origin) => through(origin, forbidden) }), ['TOK-5'], false);
    expect(clausesOf(results, 'failed')).toEqual([]);
    expect(clausesOf(results, 'differs')).toEqual(['TOK-5']);
  });
});
