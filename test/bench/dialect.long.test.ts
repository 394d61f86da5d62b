import { describe, expect, it } from 'vitest';
import { screenProbe } from '../../src/bench/engine/probes.ts';
import type { TargetKind } from '../../src/bench/engine/target.ts';
import { emulatedTarget } from '../../src/commands/actions/bench-emulated.ts';
import { targetOf } from '../../src/commands/actions/bench-target.ts';
import { TRANSPORTS } from '../../src/device/agent/transports/registry.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { PASSED, scenarios, verdictOn } from './library.ts';
import { noLog, runSteps, SEED } from './setup.ts';

/** Scenarios of the library that a dialect can have. */
const POSSIBLE = [
  'box-offline.yaml',
  'box-unreachable.yaml',
  'cancelled-order.yaml',
  'keys.yaml',
  'paid-twice-and-late.yaml',
  'partner-by-name.yaml',
  'partner-errors.yaml',
  'pushed-twice.yaml',
  'refusals.yaml',
  'service-trouble.yaml',
  'silent-box.yaml',
  'token-expiry.yaml',
  'token-in-mid-push.yaml',
];

function inDialect(): TargetKind {
  const transport = TRANSPORTS.get('vietqr');
  if (transport === undefined) throw new Error('there is no such transport');
  return emulatedTarget({ transport, probe: screenProbe(), random: seededRandom(SEED), log: noLog });
}

/** The same, for what must not begin. */
function unopened(): TargetKind {
  return { ...inDialect(), open: () => Promise.reject(new Error('it has begun')) };
}

describe('boxes that speak the public dialect', () => {
  it.each(POSSIBLE)('boxes of the public dialect pass %s (VQD-5, VQD-6, DIA-5, DIA-6)', async (name) => {
    expect(await verdictOn(name, { kind: inDialect() })).toEqual(PASSED);
  });

  it.each(scenarios().filter((name) => !POSSIBLE.includes(name)))(
    'boxes of the public dialect do not begin %s, which names why',
    async (name) => {
      const { outcome, reason } = await verdictOn(name, { kind: unopened() });
      expect(outcome).toBe('skipped');
      expect(reason).toMatch(
        /^the dialect vietqr cannot have (enrol|answer|fault|report|status|screen|within) ?[^:]*: /,
      );
    },
  );

  it.each([
    ['enrol: {}', 'enrol: boxes of a dialect enrol by their MAC addresses, without a code'],
    ['push: { amount: 1000, content: A, answer: BOX_TIMEOUT }', 'answer BOX_TIMEOUT: such a box confirms and refuses'],
    ['push: { amount: 1000, content: A, answer: [SUCCESS, WITHDRAWN] }', 'answer WITHDRAWN: such a box confirms'],
    ['push: { amount: 1000, content: FAULT QR ACCOUNT }', 'fault qr-account: such a box confirms and refuses'],
    ['fault: qr-amount', 'fault qr-amount: such a box confirms and refuses nothing'],
    ['fault: half-open', "fault half-open: this fault breaks the link of the gateway's own messages"],
    ['expect: { report: { payment: x } }', 'report of a payment: such a box confirms and refuses nothing'],
    ['expect: { report: { order: x, status: shown } }', 'report of status shown: such a box confirms'],
    ['expect: { status: { lastPayment: { orderId: x } } }', 'status with orderId: such a box knows no ids'],
    ['expect: { screen: expired }', 'screen expired: such a box is told the end of a QR without its reason'],
    ['expect: { screen: payment, within: 0s }', 'within 0s: such a box confirms and refuses nothing'],
    ['repeat: { times: 2, steps: [{ expect: { report: { payment: x } } }] }', 'report of a payment: such a box'],
  ])('boxes of the public dialect do not begin a scenario with %s', async (step, why) => {
    const { outcome, reason } = await runSteps(`  - ${step}\n`, { kind: unopened() });
    expect({ outcome, reason }).toEqual({
      outcome: 'skipped',
      reason: expect.stringContaining(`the dialect vietqr cannot have ${why}`),
    });
  });

  it('boxes of the public dialect do not begin a scenario of boxes that are not enrolled', async () => {
    const { outcome, reason } = await runSteps('  - wait: 1s\n', { kind: unopened(), head: 'enrolled: false\n' });
    expect([outcome, reason]).toEqual(['skipped', expect.stringContaining('boxes that the bench makes can')]);
  });

  it('boxes of the public dialect settle no payment that was not sent to them, or that they have not announced (VQD-6)', async () => {
    const paid = '  - pay: { amount: 5000, content: A }\n';
    const settled = '  - expect: { settled: true, within: 3s }\n';
    const off = await runSteps(`  - fault: { box: "off" }\n${paid}${settled}`, { kind: inDialect() });
    expect(off.reason).toMatch(/settled: payment [0-9a-f-]+ is not reported by VVB000001/);
    const kind = inDialect();
    const deaf: TargetKind = {
      ...kind,
      open: async (need) => {
        const target = await kind.open(need);
        for (const box of target.boxes) box.announcements = async () => 0;
        return target;
      },
    };
    const unsaid = await runSteps(`${paid}${settled}`, { kind: deaf });
    expect(unsaid.reason).toContain('VVB000001 has announced 0 payments, but the gateway sent it 1');
  });

  it('boxes of the public dialect show a QR other than that of the account only where a scenario expects it', async () => {
    // A push of a dialect is answered before its QR is on the screen.
    const shown = `  - push: { amount: 5000, content: A }\n  - expect: { qr: "\${push.qrCode}" }\n`;
    const steps = `${shown}  - expect: { qr: none, within: 2s }\n`;
    const { outcome, reason } = await runSteps(steps, { kind: inDialect() });
    expect([outcome, reason]).toEqual(['failed', expect.stringContaining('qr: expected none, the screen has')]);
  });
});

it('programs of their own speak the dialect by one option', async () => {
  const dialect = ['--dialect', 'vietqr', '--target', 'process', '--report', await temporaryFolder()];
  const { output } = await payboxToEnd('bench', 'run', 'silent-box', ...dialect);
  expect(output).toMatch(/PAYBOX-BENCH END passed=1 failed=0 skipped=0 missing=0 exit=0/);
});

it.each([
  [{ dialect: 'mqtt' }, '--dialect mqtt: expected vietqr'],
  [{ dialect: 'vietqr', transport: 'http' }, '--dialect and --transport: expected one of them'],
  [{ dialect: 'vietqr', gateway: 'http://127.0.0.1:9' }, '--dialect belongs to --target emulated and process'],
])('a run with %j is told what is wrong', (options, message) => {
  expect(() => targetOf({ box: [], ...options }, SEED)).toThrow(message);
});
