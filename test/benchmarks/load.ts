import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { LightClients } from '../../src/device/agent/transports/light-client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { DEMO, type Fixture, withFixture } from './fixture.ts';
import { identitiesOf, lightFleet, post } from './light-fleet.ts';
import { took } from './loop.ts';
import { type Benchmark, percentile, type Row, rowUnder } from './row.ts';

const BOXES = 200;
const AT_ONCE = 64;
const PUSHES = 4_000;
const STEADY_PUSHES = 2_000;
const SINGLE_PUSHES = 300;
const WARM_UP = 500;

/** Sends one push to the box with this number, and settles when it is confirmed. */
type Push = (box: number) => Promise<void>;

/**
 * Pushes to light boxes, closed loop and at half that rate, compared with a server that only does what no gateway can leave out:
 * one durable commit and one QoS 1 round trip to the box.
 */
export const load: Benchmark = {
  name: 'load',
  run: (progress) =>
    withFixture(async (fixture) => {
      const boxes = await prepareLightBoxes(fixture, BOXES);
      await boxes.start(BOXES);
      const floor = await startFloor(fixture);
      const rows: Row[] = [];
      try {
        const push = await shopOf(boxes.origin, boxes.terminalCodes);
        progress('warming up');
        await atOnce(push, WARM_UP);
        await atOnce(floor.push(1), WARM_UP);
        progress(`${PUSHES} pushes, ${AT_ONCE} at once`);
        const [ours, theirs] = [await atOnce(push, PUSHES), await atOnce(floor.push(1), PUSHES)];
        progress(`${STEADY_PUSHES} pushes at half that rate`);
        await longestStopMs(boxes.origin);
        const steady = await atRate(push, ours / 2);
        const stopMs = await longestStopMs(boxes.origin);
        const steadyFloor = await atRate(floor.push(1), ours / 2);
        progress(`${SINGLE_PUSHES} pushes one after the other`);
        const [single, singleFloor] = await inTurns(push, floor.push(2));
        const against = { name: 'no-op with a commit and a round trip', value: theirs };
        const ratio = ours / theirs;
        rows.push(
          {
            ...{ name: `pushes confirmed by ${BOXES} light boxes`, value: ours, unit: '/s' },
            ...{ against: against.name, againstValue: theirs, ratio },
            aim: 'over 600 /s and 0.4 of theirs',
            met: ours >= 600 && ratio >= 0.4,
          },
          rowUnder('a push at half that rate, p99', 'ms', percentile(steady, 0.99), of(steadyFloor, 0.99), 60),
          rowUnder(
            "the gateway's longest stop meanwhile",
            'ms',
            stopMs,
            { ...of(steady, 0.5), name: 'p50 of a push' },
            50,
          ),
          {
            ...rowUnder(
              'a push to a light box, p50',
              'ms',
              percentile(single, 0.5),
              { ...of(singleFloor, 0.5), name: 'no-op with 2 commits' },
              0,
            ),
            aim: 'under 1.5 of theirs',
            met: percentile(single, 0.5) < 1.5 * percentile(singleFloor, 0.5),
          },
        );
      } finally {
        await boxes.close();
        floor.close();
      }
      return rows;
    }),
};

function of(samples: readonly number[], share: number) {
  return { name: 'no-op with a commit and a round trip', value: percentile(samples, share) };
}

/** The longest time for which the gateway's event loop did one thing, since the last call. */
async function longestStopMs(origin: string): Promise<number> {
  const metrics = await (await fetch(`${origin}/metrics`)).text();
  return Number(/^paybox_gateway_event_loop_delay_max_seconds (.*)$/m.exec(metrics)?.[1]) * 1_000;
}

/** A gateway as a program, and light boxes for this process, which `start` switches on. */
export async function prepareLightBoxes(fixture: Fixture, count: number, transport = 'mqtt') {
  const folder = await fixture.folder();
  const [httpPort = 0, mqttPort = 0] = await freePorts(2);
  const identities = identitiesOf(count);
  const { bankAccount } = DEMO.account;
  const config = {
    http: { port: httpPort },
    mqtt: { embedded: { port: mqttPort } },
    dataDir: 'gateway',
    partners: [{ ...DEMO.partner, accounts: [bankAccount], callback: { url: 'http://127.0.0.1:9/' } }],
    accounts: [DEMO.account],
    boxes: identities.map((it) => ({ ...it, account: bankAccount })),
  };
  const file = join(folder, 'gateway.yaml');
  await writeFile(file, JSON.stringify(config));
  const { child } = await fixture.paybox(folder, ['gateway', '--config', file]);
  const origin = `http://127.0.0.1:${httpPort}`;
  const url = transport === 'http' ? origin : `mqtt://127.0.0.1:${mqttPort}`;
  const fleet = await lightFleet(identities, { transport, url });
  return { origin, terminalCodes: identities.map((it) => it.terminalCode), gateway: child, ...fleet };
}

/** A partner that has one QR, and pushes it as a new order each time. */
async function shopOf(origin: string, terminalCodes: readonly string[]): Promise<Push> {
  const { username, password } = DEMO.partner;
  const { bankAccount, bankCode } = DEMO.account;
  const base = `${origin}/vqr`;
  const basic = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const token = await post(`${base}/api/token_generate`, {}, basic);
  const bearer = `Bearer ${String(token.access_token)}`;
  const order = { ...DEMO.account, amount: 50_000, content: 'DH', orderId: 'DH', transType: 'C', qrType: 0 };
  const { qrCode } = await post(`${base}/api/qr/generate-customer`, order, bearer);
  const checkSum = createHash('md5').update(`${password}${bankAccount}50000${bankCode}`).digest('hex');
  let orders = 0;
  return async (box) => {
    orders += 1;
    const sale = {
      content: `DH${orders}`,
      orderId: `O${orders}`,
      terminalCode: terminalCodes[box],
    };
    const body = { bankAccount, bankCode, amount: '50000', qrCode, checkSum, ...sale };
    const { status, message } = await post(`${base}/api/tid/send-qr`, body, bearer);
    if (status !== 'SUCCESS') throw new Error(`send-qr: ${String(message)}`);
  };
}

/** The floor, with boxes that only answer. */
async function startFloor(fixture: Fixture) {
  const { origin, mqttUrl } = JSON.parse(await fixture.server(join(import.meta.dirname, 'floor-server.ts'))) as Record<
    'origin' | 'mqttUrl',
    string
  >;
  const clients = new LightClients(systemClock);
  const connected = Array.from({ length: BOXES }, async (_, box) => {
    const client = clients.connect({ url: mqttUrl }, { clientId: `floor-${box}`, keepalive: 60 });
    await new Promise<void>((resolve) => client.once('connect', resolve));
    client.on('message', () => void client.publishAsync(`${box}/up`, '{}', { qos: 1, retain: false }));
    await client.subscribeAsync([`${box}/down`], { qos: 1 });
    return client;
  });
  const boxes = await Promise.all(connected);
  // As long as the body of a push.
  const padding = 'x'.repeat(300);
  const push =
    (commits: number): Push =>
    async (box) => {
      await post(`${origin}/push?commits=${commits}`, { terminalCode: String(box), padding }, '');
    };
  return {
    push,
    close: () => {
      for (const box of boxes) box.end(true);
      clients.close();
    },
  };
}

/** Pushes to the box that has been free the longest: a newer push would replace one that is not confirmed yet. */
function freeBoxes(push: Push): () => Promise<void> {
  const free = Array.from({ length: BOXES }, (_, box) => box);
  return async () => {
    const box = free.shift();
    if (box === undefined) throw new Error(`no box of ${BOXES} is free`);
    await push(box);
    free.push(box);
  };
}

/** Pushes as many as possible, so many at a time. Returns how many a second. */
async function atOnce(push: Push, pushes: number): Promise<number> {
  let begun = 0;
  const toFree = freeBoxes(push);
  const work = async () => {
    for (; begun < pushes; await toFree()) begun += 1;
  };
  return (pushes * 1_000) / (await took(() => Promise.all(Array.from({ length: AT_ONCE }, work))));
}

/** Pushes at a steady rate, whether or not the ones before are answered. Returns how long each took. */
export async function atRate(push: Push, perSecond: number): Promise<number[]> {
  const samples: number[] = [];
  const underWay: Promise<unknown>[] = [];
  const toFree = freeBoxes(push);
  const startedMs = performance.now();
  for (let begun = 0; begun < STEADY_PUSHES; begun += 1) {
    const waitMs = startedMs + (begun * 1_000) / perSecond - performance.now();
    if (waitMs > 1) await systemClock.sleep(waitMs);
    const pushed = took(toFree).then((ms) => samples.push(ms));
    // One that fails before the last has begun is reported below, and must not end the whole run meanwhile.
    pushed.catch(() => undefined);
    underWay.push(pushed);
  }
  await Promise.all(underWay);
  return samples;
}

async function inTurns(ours: Push, theirs: Push): Promise<[number[], number[]]> {
  const samples: [number[], number[]] = [[], []];
  for (let box = 0; box < SINGLE_PUSHES; box += 1) {
    samples[0].push(await took(() => ours(box % BOXES)));
    samples[1].push(await took(() => theirs(box % BOXES)));
  }
  return samples;
}
