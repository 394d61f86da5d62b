import { describe, expect, it } from 'vitest';
import { SERVICE_CHECKS } from '../../src/bench/judges/service/checks/all.ts';
import type { EmulatedServiceChanges } from '../../src/bench/judges/service/emulated-service.ts';
import { PATHS } from '../../src/protocol/http-api.ts';
import { CHOICES, WRONGS } from './independent/faults.ts';
import { checksNear, keepOutcomes, MUTANT_TIMEOUT_MS } from './nearby-checks.ts';
import { clausesOf, type Exchange, judgeEmulated, type Tampering, tamperingProxy } from './service-fixture.ts';

const is = (exchange: Exchange, path: string) => exchange.path === `/vqr${path}`;

function fieldsOf({ body }: Exchange): Record<string, unknown> {
  try {
    return Object(JSON.parse(body)) as Record<string, unknown>;
  } catch {
    return {};
  }
}

function answer(exchange: Exchange, status: number, fields: object): void {
  Object.assign(exchange, { status, body: JSON.stringify(fields) });
}

const SUCCESS = { status: 'SUCCESS', message: '' };
const isShown = (it: Exchange, request: Exchange) => is(request, PATHS.sendQr) && it.status === 200;

/** A refusal with this code is told as SUCCESS. */
const hiding = (code: string) => (): Tampering => ({
  answer: (it) => {
    if (fieldsOf(it).message === code) answer(it, 200, SUCCESS);
  },
});

const without = (text: string) => (): Tampering => ({ passesEvent: (message) => !message.includes(text) });

function takingOwnQrs(): Tampering {
  const own = new Set<unknown>();
  return {
    answer: (it, request) => {
      if (is(request, PATHS.generate)) own.add(fieldsOf(it).qrCode);
      const isOwn = own.has(fieldsOf(request).qrCode);
      if (isShown(it, request) && !isOwn) answer(it, 400, { status: 'FAILED', message: 'QR_INVALID' });
    },
  };
}

/** One push for each time that a box comes. */
function refusingMore(): Tampering {
  let shown: unknown;
  return {
    passesEvent: (message) => {
      if (message.includes('"type":"welcome"')) shown = undefined;
      return true;
    },
    answer: (it, request) => {
      if (!isShown(it, request)) return;
      const { orderId } = fieldsOf(request);
      shown ??= orderId;
      if (orderId !== shown) answer(it, 400, { status: 'FAILED', message: 'REPLACED' });
    },
  };
}

function neverTheSame(): Tampering {
  const seen = new Set<string>();
  return {
    request: (it) => {
      const { qrCode, orderId, terminalCode, ...more } = fieldsOf(it);
      const name = `${qrCode} ${orderId} ${terminalCode}`;
      const isAgain = is(it, PATHS.sendQr) && typeof orderId === 'string' && seen.has(name);
      if (isAgain) it.body = JSON.stringify({ ...more, qrCode, terminalCode, orderId: `${orderId}-${seen.size}` });
      seen.add(name);
      return undefined;
    },
  };
}

type Mutant = readonly [what: string, outcome: 'failed' | 'differs', clauses: readonly string[], () => Tampering];

/**
 * Faults between our gateway and its boxes, which the independent service has not. The clauses that say so: the
 * fault's own comes first.
 */
const BEHIND_A_PROXY: readonly Mutant[] = [
  ['a push that timed out is not taken back', 'failed', ['SND-4', 'CBK-7'], without('"type":"withdraw"')],
  ['a push that timed out is SUCCESS', 'failed', ['SND-4'], hiding('BOX_TIMEOUT')],
  ['SUCCESS for a box that is off', 'failed', ['SND-5'], hiding('BOX_OFFLINE')],
  [
    'what the box refuses has a code of no table',
    'differs',
    ['SND-6', 'ERR-6'],
    () => ({
      answer: (it) => {
        it.body = it.body.replace('DISPLAY_FAULT', 'E999');
      },
    }),
  ],
  ["a partner's own QR is refused", 'differs', ['SND-7'], takingOwnQrs],
  ['a push is refused while another is on the screen', 'failed', ['SND-8', 'SND-3'], refusingMore],
  ['a repeated push is a new one', 'differs', ['SND-9'], neverTheSame],
  ['a push whose order is paid before is not taken back', 'failed', ['CBK-7'], without('"why":"paid"')],
];

type Through = (origin: string, tampering: Tampering) => Promise<string>;

/** Judges the emulated gateway behind a proxy, or with a proxy before the partner: by every check, or near some clauses. */
async function judged(
  changes: (through: Through) => EmulatedServiceChanges,
  clauses?: readonly string[],
  strict = false,
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

const behind = (tampering: Tampering) => (through: Through) => ({
  service: (origin: string) => through(origin, tampering),
});

const toPartner = (tampering: Tampering) => (through: Through) => ({
  partner: async (url: string) => `${await through(new URL(url).origin, tampering)}${new URL(url).pathname}`,
});

describe.concurrent('a service that is wrong', { timeout: MUTANT_TIMEOUT_MS }, () => {
  it('the judge finds no fault in the service that its mutants begin with', async () => {
    const both = (through: Through) => ({ ...behind({})(through), ...toPartner({})(through) });
    const results = await judged(both, undefined, true);
    expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
    expect(clausesOf(results, 'passed').length).toBeGreaterThan(40);
  });

  it.for(BEHIND_A_PROXY)(
    'the judge finds a wrong service by its clauses and no others: %s',
    async ([, outcome, clauses, tampering], { task }) => {
      const results = await judged(behind(tampering()), clauses);
      const reasons = keepOutcomes(task, results);
      expect(clausesOf(results, outcome), reasons).toEqual(clauses.toSorted());
      if (outcome === 'differs') expect(clausesOf(results, 'failed'), reasons).toEqual([]);
    },
  );

  it('the judge finds a wrong service by its clauses and no others: SUCCESS is answered before the QR is on the screen', async ({
    task,
  }) => {
    const results = await judged(() => ({ config: { confirm: 'accepted' } }), ['SND-3']);
    const reasons = keepOutcomes(task, results);
    expect(clausesOf(results, 'failed'), reasons).toEqual(['SND-3']);
  });

  it('the judge finds a wrong service by its clauses and no others: a paid order stays on the box that showed it first', async ({
    task,
  }) => {
    const changes = behind(without('"why":"paid"')());
    const results = await judged((through) => ({ isWithoutBox: false, ...changes(through) }), ['CBK-7']);
    const reasons = keepOutcomes(task, results);
    expect(clausesOf(results, 'failed'), reasons).toEqual(['CBK-7']);
  });

  it('the judge finds a wrong service by its clauses and no others: a payment is of a newer order than a box shows', async ({
    task,
  }) => {
    const newer: Tampering = {
      request: (it) => {
        it.body = it.body.replace(/"orderId":"SHOWN-/, '"orderId":"NEWER-');
        return undefined;
      },
    };
    const results = await judged(toPartner(newer), ['CBK-6']);
    const reasons = keepOutcomes(task, results);
    expect([...clausesOf(results, 'failed'), ...clausesOf(results, 'differs')], reasons).toEqual(['CBK-6']);
  });

  it('a service only differs where the specification leaves the choice: pages of HTML, its own codes and more fields', async () => {
    const other: Tampering = {
      answer: (it, request) => {
        if (it.status === 401) Object.assign(it, { status: 403, body: '<h1>Forbidden</h1>' });
        else if (fieldsOf(it).status === 'FAILED') answer(it, 422, { status: 'FAILED', message: `X${it.status}` });
        if (is(request, PATHS.generate) && it.status === 200)
          answer(it, 200, { ...fieldsOf(it), ofALaterVersion: { a: 1 } });
      },
    };
    const results = await judged((through) => ({ isWithoutBox: false, ...behind(other)(through) }));
    expect(clausesOf(results, 'failed')).toEqual([]);
    expect(clausesOf(results, 'differs')).toEqual(expect.arrayContaining(['SND-2', 'SND-5', 'TOK-4', 'TOK-5']));
  });
});

describe('every clause that is judged at a service', () => {
  it('every clause that is judged at a service has a mutant that its own checks find', () => {
    const own = [...Object.values(WRONGS), ...Object.values(CHOICES), ...BEHIND_A_PROXY.map((it) => it[2])];
    const caught = new Set<string | undefined>([...own.map(([first]) => first), 'SND-3']);
    const judgedClauses = new Set<string>(SERVICE_CHECKS.map(({ clause }) => clause));
    expect([...judgedClauses].filter((clause) => !caught.has(clause))).toEqual([]);
  });
});
