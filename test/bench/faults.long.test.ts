// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { GatewayClient } from '../../src/bench/engine/clients/gateway.ts';
import type { Result } from '../../src/bench/engine/reports/result.ts';
import { runScenario } from '../../src/bench/engine/run/run.ts';
import { reasonToSkip, type Target, type TargetKind } from '../../src/bench/engine/target.ts';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { emulated, lyingProxy, mutant, runSteps, sharedTarget } from './setup.ts';

const verdict = ({ outcome, where, reason }: Result) => ({ outcome, where, reason });
const PASSED = { outcome: 'passed', where: undefined, reason: '' };
const lines = (...steps: string[]) => steps.map((step) => `  - ${step}\n`).join('');
const push = (more = '') => `push: { amount: 1000, content: A${more} }`;
const OFFLINE = ', answer: BOX_OFFLINE';

describe('a fault by its name', () => {
  it('a fault of a scenario is counted, and ended by its id, by its name and with all others', async () => {
    const steps = lines(
      'fault: { inject: box-offline, times: 3 }\n    as: three',
      'expect: { fault: { name: box-offline, happened: 0 } }',
      push(OFFLINE),
      'expect: { fault: { name: box-offline, happened: 1 } }',
      'fault: { end: "${three.id}" }',
      push(),
      'fault: box-offline',
      'fault: { end: box-offline }',
      push(),
      'fault: service-500',
      'fault: disk-full',
      'fault: { end: all }',
      push(),
      'fault: box-offline',
      push(OFFLINE),
      'expect: { fault: { name: box-offline, happened: 1 } }',
    );
    expect(verdict(await runSteps(steps))).toEqual(PASSED);
  });

  it('a fault that never happened fails its scenario, unless that was left open', async () => {
    const never = lines('fault: { inject: push-twice, content: SLIP }', push());
    expect(verdict(await runSteps(never))).toEqual({
      outcome: 'failed',
      where: expect.stringMatching(/:\d+$/),
      reason: expect.stringMatching(/^fault: push-twice was ordered, and has not happened: /),
    });
    const open = lines(
      'fault: { inject: push-twice, chance: 0.000001 }',
      'fault: { inject: link-slow, for: 10s }',
      'fault: { inject: push-late, content: SLIP }',
      'fault: { end: push-late }',
      push(),
    );
    expect(verdict(await runSteps(open))).toEqual(PASSED);
  });

  it('a fault is for the box that the step names, and without a name for every box', async () => {
    const steps = lines(
      'fault: box-offline\n    box: 2',
      push(),
      `${push(OFFLINE)}\n    box: 2`,
      `for each box:\n      - fault: box-offline\n      - ${push(OFFLINE)}\n      - ${push()}`,
      'fault: { inject: box-offline, times: 2 }',
      push(OFFLINE),
      `${push(OFFLINE)}\n    box: 2`,
      `fault: disk-full\n    box: 2`,
      push(),
      `${push(', answer: STORAGE_FAULT')}\n    box: 2`,
    );
    expect(verdict(await runSteps(steps, { head: 'boxes: 2\n' }))).toEqual(PASSED);
  });

  it('a fault happens again as before with the same seed, and waits are as long', async () => {
    const told = async (seed: number) => {
      const source = `name: Chance\nsteps:\n${lines(
        'wait: 100s to 900s',
        'fault: { inject: box-offline, times: 100, chance: 0.5 }',
        `repeat: { times: 12, steps: [{ ${push(', answer: [SUCCESS, BOX_OFFLINE]')} }] }`,
      )}`;
      const options = { seed, updateGoldens: false, signal: new AbortController().signal, onStep: () => undefined };
      const { outcome, entries } = await runScenario(parseScenario(source, 'chance.yaml'), emulated(), options);
      expect(outcome).toBe('passed');
      const [first] = entries.filter(({ title }) => title.startsWith('fault'));
      expect(first?.atMs).toBeGreaterThan(100_000);
      expect(first?.atMs).toBeLessThan(930_000);
      const answers = entries.filter(({ title }) => title.startsWith('send-qr')).map(({ title }) => title);
      expect(new Set(answers).size).toBe(2);
      return { answers, waitedMs: first?.atMs ?? 0 };
    };
    const [one, same, other] = [await told(3), await told(3), await told(4)];
    expect(same.answers).toEqual(one.answers);
    expect(Math.abs(same.waitedMs - one.waitedMs)).toBeLessThan(30_000);
    expect(other.answers).not.toEqual(one.answers);
  });

  it('a fault that ended with a power cut does not count as one that happened', async () => {
    const power = ['fault: { gateway: "off" }', 'fault: { gateway: "on" }'];
    const asked = (times: number) => `expect: { fault: { name: box-offline, happened: ${times} }, within: 1s }`;
    const over = lines('fault: box-offline', push(OFFLINE), ...power, asked(1));
    expect(verdict(await runSteps(over))).toEqual(PASSED);
    for (const times of [0, 1]) {
      const { reason } = await runSteps(lines('fault: box-offline', ...power, asked(times)));
      expect(reason).toBe('fault: box-offline is over, and how often it happened is not known, after 1s');
    }
  });

  it('a scenario is judged while its fault lasts', async () => {
    const kind = await sharedTarget();
    const cases: [step: string, reason: string | RegExp][] = [
      ['fault: { end: push-lost }', 'no fault push-lost was injected before'],
      ['fault: { inject: link-cut, content: A }', /answered 400: .*link-cut happens to a connection/],
      [
        'expect: { fault: { name: push-lost, happened: 1 }, within: 1s }',
        'fault: no push-lost was injected, or it was ended, after 1s',
      ],
      ['expect: { announced: 1, within: 1s }', 'VVB000001: announced: expected 1, it has announced 0, after 1s'],
      [
        'fault: { partner: { answer: 500 } }',
        'fault: no callback came after this answer of the partner was ordered: pay an order',
      ],
      [
        'if: ${1 == 2}\n    then: [{ pay: { amount: 1, content: A } }]\n  - expect: { settled: true, within: 1s }',
        'settled: nothing was paid, so there is nothing to judge; `announced: 0` beside it says that none is meant, after 1s',
      ],
      [push(', answer: [E39, E46]'), 'push: expected E39 or E46, the answer is SUCCESS'],
      [
        'fault: push-lost\n  - expect: { fault: { name: push-lost, happened: 2 }, within: 1s }',
        'fault: expected push-lost 2 times, it happened 0 times, after 1s',
      ],
      [
        'fault: { inject: link-slow, for: 1s }\n  - wait: 5s\n  - expect: { fault: { name: link-slow, happened: 0 }, within: 1s }',
        'fault: link-slow is over, and how often it happened is not known, after 1s',
      ],
    ];
    for (const [step, reason] of cases) {
      const result = await runSteps(lines(step), { kind });
      expect({ step, reason: result.reason }).toEqual({
        step,
        reason: typeof reason === 'string' ? reason : expect.stringMatching(reason),
      });
    }
  });
});

describe('a target that cannot make faults', () => {
  const scenario = parseScenario(`name: x\nsteps:\n${lines('fault: push-twice', 'fault: disk-full')}`, 'x.yaml');
  const kind: TargetKind = { ...emulated(), name: 'other', capabilities: new Set() };
  const never = () => Promise.reject(new Error('asked'));

  it('a target without faults skips scenarios by name, and says what to do', async () => {
    const both = 'target other cannot order faults at the gateway, order faults at boxes';
    const advice = 'it has no /_mock/faults; set faults: true in the configuration of each box, on a test bench only';
    expect(await reasonToSkip(scenario, kind)).toBe(`${both}; ${advice}`);
  });

  it.each([
    [
      ['fault: { box: killed }'],
      emulated(),
      'target emulated cannot kill programs; programs of their own can be killed: --target process',
    ],
    [
      ['fault: { box: "off" }', 'fault: { gateway: "off" }'],
      kind,
      'target other cannot turn boxes off and on, turn the gateway off and on; boxes that the bench makes can: --target emulated or process',
    ],
  ])('skips %j, and says which target can', async (steps, other, reason) => {
    expect(await reasonToSkip(parseScenario(`name: x\nsteps:\n${lines(...steps)}`, 'x.yaml'), other)).toBe(reason);
  });

  it('a target is asked for its faults where that can change the answer', async () => {
    const gatewayOnly = { ...kind, askCapabilities: async () => new Set(['order faults at the gateway'] as const) };
    expect(await reasonToSkip(scenario, gatewayOnly)).toMatch(
      /^target other cannot order faults at boxes; set faults: true/,
    );
    const all = async () => new Set(['order faults at the gateway', 'order faults at boxes'] as const);
    expect(await reasonToSkip(scenario, { ...kind, askCapabilities: all })).toBeUndefined();
    const killing = parseScenario(`name: x\nsteps:\n${lines('fault: push-twice', 'fault: { box: killed }')}`, 'x.yaml');
    expect(await reasonToSkip(killing, { ...kind, askCapabilities: never })).toMatch(
      /^target other cannot order faults/,
    );
    const plain = parseScenario('name: x\nsteps: [{ wait: 1s }]', 'x.yaml');
    expect(await reasonToSkip(plain, { ...kind, askCapabilities: never })).toBeUndefined();
  });
});

describe('an account that is not settled', () => {
  type Lie = (path: string, body: string) => string;
  const gateway = (lie: Lie) => async (target: Target) => {
    const { access } = target.gateway;
    const origin = await lyingProxy(access.origin, (path, body) => Buffer.from(lie(path, String(body))));
    return { ...target, gateway: new GatewayClient({ ...access, origin }) };
  };
  const box = (lie: Lie) => async (target: Target) => {
    const [real] = target.boxes;
    if (real === undefined) throw new Error('no box');
    const url = await lyingProxy(real.url, (path, body) => Buffer.from(lie(path, String(body))));
    return { ...target, boxes: [new BoxClient(url, real)] };
  };
  const rows = (list: string, change: (row: Record<string, unknown>) => unknown[]) => (path: string, body: string) =>
    path.startsWith(`/_mock/${list}`) ? JSON.stringify((JSON.parse(body) as never[]).flatMap(change)) : body;
  const attempts = (row: Record<string, unknown>) => row.attempts as unknown[];

  it('an account that is not settled is reported with what is wrong', async () => {
    const kind = await sharedTarget();
    const cases: [change: (target: Target) => Promise<Target>, reason: RegExp][] = [
      [async (target) => target, /^$/],
      [
        gateway(rows('payments', (row) => [{ ...row, boxes: [{ terminalCode: 'VVB000001', reportedAt: null }] }])),
        /^settled: payment \S+ is not reported by VVB000001, after 1s$/,
      ],
      [gateway(rows('callbacks', () => [])), /^settled: payment \S+ has no callback, /],
      [gateway(rows('callbacks', (row) => [row, row])), /^settled: payment \S+ has 2 callbacks, /],
      [
        gateway(rows('callbacks', (row) => [{ ...row, status: 'pending' }])),
        /^settled: payment \S+ has a callback that is pending, /,
      ],
      [
        gateway(rows('callbacks', (row) => [{ ...row, attempts: [...attempts(row), ...attempts(row)] }])),
        /^settled: payment \S+ was accepted by the partner 2 times, /,
      ],
      [
        async (target) => ({
          ...target,
          ...(target.partnerServer && { partnerServer: { ...target.partnerServer, received: [] } }),
        }),
        /^settled: payment \S+ reached the partner 0 times in 1 attempts, /,
      ],
      [
        box((path, body) => (path === '/metrics' ? 'paybox_box_announcements_total 99\n' : body)),
        /^settled: VVB000001 has announced 99 payments, but the gateway sent it \d, /,
      ],
      [
        box((path, body) => (path === '/metrics' ? 'paybox_box_announcements_total 0\n' : body)),
        /^settled: VVB000001 has announced 0 payments, but the gateway sent it \d, /,
      ],
    ];
    for (const [change, reason] of cases) {
      const changed = {
        ...kind,
        open: async (need: Parameters<TargetKind['open']>[0]) => change(await kind.open(need)),
      };
      const paid = ['pay: { amount: 1000, content: A }', 'expect: { report: { payment: "${pay.transactionId}" } }'];
      const truth = lines(push(), ...paid, 'expect: { callback: { payment: "${pay.transactionId}" } }');
      expect(verdict(await runSteps(truth, { kind }))).toEqual(PASSED);
      const { reason: told } = await runSteps(lines('expect: { settled: true, within: 1s }'), { kind: changed });
      expect(told).toMatch(reason);
    }
  });

  it('a settled account may lack what a box announced before it was turned off', async () => {
    const paid = [push(), 'pay: { amount: 1000, content: A }', 'expect: { announced: 1 }'];
    const power = ['fault: { box: "off" }', 'fault: { box: "on" }'];
    const result = await runSteps(lines(...paid, ...power, 'expect: { settled: true, announced: 0, within: 20s }'));
    expect(verdict(result)).toEqual(PASSED);
  });

  it('an account is not settled while it lacks a payment that the gateway has accepted', async () => {
    const kind = mutant(gateway(rows('payments', () => [])));
    const { reason } = await runSteps(
      lines('pay: { amount: 1000, content: A }', 'expect: { settled: true, within: 1s }'),
      {
        kind,
      },
    );
    expect(reason).toMatch(/^settled: payment \S+ was accepted by the gateway, which does not list it, after 1s$/);
  });

  it('an account must be settled for a payment without a step too, where others came before the scenario', async () => {
    const kind = await sharedTarget();
    const goesOn: TargetKind = { ...kind, open: async (need) => ({ ...(await kind.open(need)), isExternal: true }) };
    const before = lines(push(), 'pay: { amount: 1000, content: A }', 'expect: { announced: 1 }');
    expect(verdict(await runSteps(before, { kind }))).toEqual(PASSED);
    const paid = [
      'fault: { inject: partner-500, times: 9 }',
      'push: { amount: 1000, content: FAULT PAID BEFORE, answer: WITHDRAWN }',
    ];
    const result = await runSteps(lines(...paid, 'expect: { announced: 1 }', 'expect: { settled: true, within: 1s }'), {
      kind: goesOn,
    });
    expect(result.reason).toMatch(/^settled: payment \S+ has a callback that is pending, after 1s$/);
  });
});
