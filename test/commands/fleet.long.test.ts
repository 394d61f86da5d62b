import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it, type TestContext } from 'vitest';
import { judge, SETTLE_TIMEOUT_MS } from '../../src/bench/fleet/judge.ts';
import { runLoad } from '../../src/bench/fleet/load.ts';
import { Measurements } from '../../src/bench/fleet/measurements.ts';
import { OrderTracker } from '../../src/bench/fleet/order-tracker.ts';
import { type FleetBox, startFleetBoxes } from '../../src/commands/actions/fleet-boxes.ts';
import { managedEnvironment } from '../../src/commands/actions/fleet-environment.ts';
import { Closers } from '../../src/commands/shared/daemon.ts';
import { transportNamed } from '../../src/device/agent/transports/registry.ts';
import type { Scene } from '../../src/device/scene.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { seededRandom, systemRandom } from '../../src/lib/random.ts';
import { eachEnds } from '../support/command-lines.ts';
import { quietLog } from '../support/kept-log.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';

const GATEWAY_FILE = resolve('device-config/gateway.yaml');

interface Figure {
  name: string;
  value: number;
  unit: string;
}

function figuresIn(output: string): Map<string, number> {
  const rows = output.split('\n').filter((line) => line.startsWith('{'));
  return new Map(rows.map((line) => JSON.parse(line) as Figure).map(({ name, value }) => [name, value]));
}

describe('paybox fleet', () => {
  it('paybox fleet sells and pays at complete boxes of each transport and at light ones, and finds the money right', async () => {
    const kinds = {
      '5 boxes, mqtt': ['--transport', 'mqtt'],
      '5 boxes, http': ['--transport', 'http'],
      '5 light boxes, mqtt': ['--light'],
      '5 light boxes, http': ['--light', '--transport', 'http'],
    };
    const load = ['--boxes', '5', '--pushes', '20', '--rate', '10', '--seed', '3', '--json'];
    const runs = Object.entries(kinds).map(async ([name, options]) => {
      const { code, output } = await payboxToEnd('fleet', ...load, ...options);
      expect(output).toContain(`${name}, seed 3: the money is right`);
      expect(code).toBe(0);
      const figures = figuresIn(output);
      const shown = ['boxes', 'pushes', 'answers SUCCESS', 'problems'].map((it) => figures.get(it));
      expect(shown, name).toEqual([5, 20, 20, 0]);
      expect(figures.get('payments'), name).toBe(figures.get('orders paid'));
      expect(figures.get('payments'), name).toBeGreaterThan(5);
      for (const of of ['registration', 'send-qr to confirmed', 'payment to on screen', 'payment to reported']) {
        expect(figures.get(`${of} p50`), name).toBeGreaterThan(0);
        expect(figures.get(`${of} p99`), name).toBeGreaterThanOrEqual(figures.get(`${of} p50`) ?? Number.NaN);
      }
    });
    await Promise.all(runs);
  });

  it('paybox fleet loads a gateway that runs, with boxes of its own file', async () => {
    const folder = await temporaryFolder();
    const [http, mqtt] = [await freePort(), await freePort()];
    const file = join(folder, 'gateway.yaml');
    const codes = ['000001', '000002', '000003'];
    const config = {
      http: { port: http },
      mqtt: { embedded: { port: mqtt } },
      dataDir: 'data',
      partners: [
        { username: 'demo', password: 'demo-secret', accounts: ['0123'], callback: { url: 'http://127.0.0.1:9/' } },
      ],
      accounts: [{ bankAccount: '0123', bankCode: 'MB', userBankName: 'A' }],
      boxes: codes.map((it) => ({
        terminalCode: `VVB${it}`,
        serialNumber: `VVB9${it.slice(1)}`,
        secret: 'A-secret-of-it-in-this-test',
        account: '0123',
      })),
    };
    await writeFile(file, JSON.stringify(config));
    const ready = join(folder, 'ready.json');
    await readyFile(ready, paybox('gateway', '--config', file, '--ready-file', ready));
    const at = ['--gateway', `http://127.0.0.1:${http}`, '--broker', `mqtt://127.0.0.1:${mqtt}`, '--identities', file];
    const { code, output } = await payboxToEnd('fleet', '--boxes', '3', '--pushes', '6', '--rate', '6', ...at);
    expect(output).toMatch(/answers SUCCESS +6$/m);
    expect(output).toContain('the money is right');
    expect(code).toBe(0);
    const share = (k: number) => [
      '--boxes',
      '3',
      '--light',
      '--share',
      `${k}/2`,
      '--pushes',
      '4',
      '--rate',
      '4',
      ...at,
    ];
    const shares = await Promise.all([1, 2].map((k) => payboxToEnd('fleet', ...share(k))));
    expect(shares.map((it) => /(\d) light boxes, mqtt, seed \d+: the money is right/.exec(it.output)?.[1])).toEqual([
      '2',
      '1',
    ]);
    const few = await payboxToEnd('fleet', '--boxes', '4', ...at);
    expect(few.output).toContain('--boxes 4: ');
    expect(few.output).toContain('has 3 with a secret and this account');
    expect(few.code).toBe(2);
  });

  it('paybox fleet ends on Ctrl-C with 130 and what was measured so far', async () => {
    const running = paybox('fleet', '--boxes', '3', '--rate', '20', '--seconds', '600');
    await eventually('a push', () => /[1-9]\d* SUCCESS/.test(running.output()), 40_000);
    expect(await running.stop('SIGINT')).toBe(130);
    expect(running.output()).toMatch(/^send-qr to confirmed +\d+ +\d/m);
    expect(running.output()).toMatch(/^answers SUCCESS +[1-9]/m);
    expect(running.output()).toContain('interrupted, not judged');
  });

  eachEnds(
    [
      [2, 'no boxes', 'fleet', '--boxes <n> is missing'],
      [2, 'boxes in words', 'fleet --boxes many', 'expected a whole number from 1 to 100000'],
      [2, 'too many boxes', 'fleet --boxes 5001', '--boxes 5001: expected at most 5000, or --light'],
      [2, 'a share of nothing', 'fleet --boxes 4 --share 1/2', '--share needs --gateway'],
      [
        2,
        'a share too many',
        'fleet --boxes 4 --share 3/2 --gateway http://127.0.0.1:1 --identities .',
        '--share 3/2: expected as 1/4',
      ],
      [2, 'another transport', 'fleet --boxes 1 --transport mail', '--transport mail: expected mqtt or http'],
      [2, 'a gateway without boxes', 'fleet --boxes 1 --gateway http://127.0.0.1:1', '--gateway needs --identities'],
      [2, 'boxes without a gateway', 'fleet --boxes 1 --identities x.yaml', 'belong to --gateway'],
      [2, 'a gateway that is no address', 'fleet --boxes 1 --gateway here', '--gateway here: expected http:'],
      [
        2,
        'an admin token on an open way',
        'fleet --boxes 1 --gateway http://192.0.2.1 --identities . --admin-token-file token',
        'would be sent where others can read it',
      ],
      [
        2,
        'an admin token of several lines',
        'fleet --boxes 1 --gateway http://192.0.2.1 --identities . --admin-token-file lines',
        '--admin-token-file lines: expected one line',
      ],
      [
        3,
        'a gateway that does not answer',
        ['fleet', '--boxes', '1', '--gateway', 'http://127.0.0.1:9', '--identities', GATEWAY_FILE],
        'nothing answers at http://127.0.0.1:9',
      ],
    ],
    { token: 'a-token-of-this-test\n', lines: 'one\ntwo\n' },
  );
});

interface Lie {
  /** What the displays are said to show. */
  drawn?(tracker: OrderTracker, terminalCode: string, qrCode: string | null, scene: Scene): void;
  announcements?(count: number): number;
  callbacksReceived?(transactionId: string): number;
}

/** The problems that the verdict finds about two real boxes, when one of those who tell it of them lies. */
async function problemsWith(lie: Lie, { onTestFinished }: TestContext): Promise<readonly string[]> {
  const closers = new Closers();
  onTestFinished(() => closers.close());
  const quiet = quietLog();
  const { signal } = new AbortController();
  const deps = { clock: systemClock, random: systemRandom, log: quiet, signal };
  const environment = await managedEnvironment({ boxes: 2, isLight: false }, transportNamed('--transport'), {
    ...deps,
    closers,
  });
  const tracker = new OrderTracker(systemClock);
  const measured = new Measurements();
  const boxes: FleetBox[] = [];
  closers.add(async () => void (await Promise.all(boxes.map((box) => box.close()))));
  const drawn = (terminalCode: string, qrCode: string | null, scene: Scene) =>
    (lie.drawn ?? ((to, ...seen) => to.drawn(...seen)))(tracker, terminalCode, qrCode, scene);
  await startFleetBoxes(environment.setups, boxes, { ...deps, tracker: { drawn } });
  const { gateway, callbacksReceived } = environment;
  const plan = { pushesPerSecond: 10, pushes: 6, seconds: undefined, confirmsDisplayed: true };
  const random = seededRandom(3);
  await runLoad(boxes, plan, { gateway, tracker, measured, clock: systemClock, random, runId: 'F1', signal });
  const liars = boxes.map((box) => ({
    terminalCode: box.terminalCode,
    announcements: () => (lie.announcements ?? Number)(box.announcements()),
  }));
  const told = lie.callbacksReceived ?? callbacksReceived;
  const asked = { gateway, boxes: liars, tracker, measured, clock: systemClock, callbacksReceived: told };
  await judge({ ...asked, settleTimeoutMs: isLate(lie) ? LATE_MS : SETTLE_TIMEOUT_MS, signal });
  // A busy machine draws late.
  const { SUCCESS = 0, BOX_TIMEOUT = 0 } = Object.fromEntries(measured.answers);
  expect(SUCCESS + BOX_TIMEOUT).toBe(6);
  expect(SUCCESS).toBeGreaterThan(3);
  expect(measured.payments).toBeGreaterThan(0);
  return tracker.problems.listed;
}

/** Whether the lie keeps something from coming at all, which need not be waited for. */
function isLate({ drawn, callbacksReceived }: Lie): boolean {
  return drawn !== undefined || callbacksReceived !== undefined;
}

const LATE_MS = 4_000;
const OTHER: Record<string, string> = { VVB000001: 'VVB000002', VVB000002: 'VVB000001' };

describe.concurrent('the verdict of a fleet', () => {
  it('paybox fleet finds boxes right that do as they should', async (context) => {
    expect(await problemsWith({}, context)).toEqual([]);
  });

  it.for<[string, Lie, RegExp]>([
    [
      "a display that shows the other box's screen",
      { drawn: (tracker, code, qrCode, scene) => tracker.drawn(OTHER[code] ?? '', qrCode, scene) },
      /VVB00000\d shows the QR of order F1-\d, which is for VVB00000\d/,
    ],
    [
      'a display that shows no QR',
      { drawn: (tracker, code, qrCode, scene) => scene.kind !== 'payment' && tracker.drawn(code, qrCode, scene) },
      /order F1-\d was answered SUCCESS before its QR was on the screen of VVB00000\d/,
    ],
    [
      'a display that shows no payment',
      { drawn: (tracker, code, qrCode, scene) => scene.kind !== 'paid' && tracker.drawn(code, qrCode, scene) },
      /the payment .{36} of order F1-\d was not shown on VVB00000\d/,
    ],
    [
      'a display that shows each payment twice',
      {
        drawn: (tracker, code, qrCode, scene) => {
          tracker.drawn(code, qrCode, scene);
          if (scene.kind !== 'paid') return;
          tracker.drawn(code, qrCode, { kind: 'blank' });
          tracker.drawn(code, qrCode, scene);
        },
      },
      /the payment .{36} of order F1-\d was shown 2 times/,
    ],
    [
      'a display that shows another amount',
      {
        drawn: (tracker, code, qrCode, scene) =>
          tracker.drawn(code, qrCode, scene.kind === 'paid' ? { ...scene, amount: 1 } : scene),
      },
      /the payment .{36} of order F1-\d of \d+ was shown as 1, F1 \d/,
    ],
    [
      'a box that announces twice',
      { announcements: (count) => 2 * count },
      /VVB00000\d announced \d+ payments, \d were paid/,
    ],
    ['a box that announces nothing', { announcements: () => 0 }, /VVB00000\d announced 0 payments, \d were paid/],
    [
      'a partner that hears of nothing',
      { callbacksReceived: () => 0 },
      /the partner received no callback for the payment .{36}/,
    ],
  ])('is wrong about %s', async ([_what, lie, problem], context) => {
    expect((await problemsWith(lie, context)).join('\n')).toMatch(problem);
  });
});
