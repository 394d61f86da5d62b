import { judge, SETTLE_TIMEOUT_MS } from '../../bench/fleet/judge.ts';
import { type LoadPlan, runLoad } from '../../bench/fleet/load.ts';
import {
  type Figure,
  figuresOf,
  Measurements,
  progressLine,
  showProgress,
  summaryOf,
} from '../../bench/fleet/measurements.ts';
import { OrderTracker } from '../../bench/fleet/order-tracker.ts';
import { type BoxTransport, transportNamed } from '../../device/agent/transports/registry.ts';
import { systemClock, untilAborted, withDeadline } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { seededRandom, systemRandom } from '../../lib/random.ts';
import { table } from '../../lib/text.ts';
import { trustAuthorityIn } from '../shared/authority.ts';
import { Closers, fileLog } from '../shared/daemon.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { remark, say } from '../shared/output.ts';
import { adminTokenOf, assertHidden, secretFrom } from '../shared/secrets.ts';
import { exitNow, StopSignal } from '../shared/stop-signal.ts';
import { anySeed } from './bench-target.ts';
import { type FleetBox, startFleetBoxes } from './fleet-boxes.ts';
import { externalEnvironment, type FleetEnvironment, type FleetSize, managedEnvironment } from './fleet-environment.ts';

export interface FleetOptions {
  boxes: number;
  light?: boolean;
  share?: string;
  seconds?: number;
  pushes?: number;
  rate?: number;
  transport?: string | undefined;
  seed?: number;
  json?: boolean;
  log?: string;
  gateway?: string;
  ca?: string;
  identities?: string;
  broker?: string;
  username?: string;
  passwordFile?: string;
  account?: string;
  bank?: string;
  holder?: string;
  adminTokenFile?: string;
}

/** After a signal: time for the goodbyes of the boxes, and for all that the fleet has opened to close. */
const BOXES_END_MS = 600;
const END_MS = 1_400;
const EXIT = { right: 0, wrong: 1, interrupted: 130 } as const;
/** Default rate: one order for each box in this time. */
const SECONDS_PER_PUSH = 10;
const SECONDS = 30;
/** At most this many boxes have a journal, pages and a display. */
const FULL_BOXES_MAX = 5_000;
const KIBIBYTE = 1_024;
/** Part of a random UUID, long enough to separate runs. The content of a test callback has room for 19 characters. */
const RUN_ID_CHARS = 7;

/** Data of a run for its report, however the run ended. */
interface Run {
  tracker: OrderTracker;
  measured: Measurements;
  log: Logger;
  /** How many boxes this process is to have, and those that have registered. */
  asked: number;
  boxes: FleetBox[];
  seed: number;
  signal: AbortSignal;
}

/**
 * Runs `paybox fleet`: many boxes in this process. The exit code is 0 when every payment was right, 1 when one was not.
 */
export async function fleet(options: FleetOptions): Promise<void> {
  shareGlyphs();
  const transport = transportNamed('--transport', options.transport);
  const signal = new StopSignal().aborting();
  const closers = new Closers();
  const run: Run = {
    tracker: new OrderTracker(systemClock),
    measured: new Measurements(),
    log: fileLog(options.log),
    asked: options.boxes,
    boxes: [],
    seed: options.seed ?? anySeed(),
    signal,
  };
  const done = new AbortController();
  const line = () => progressLine(run.boxes.filter((box) => box.isOnline()).length, run.asked, run.measured);
  const telling = showProgress(process.stderr, { line, clock: systemClock, signal: done.signal });
  try {
    const deps = { clock: systemClock, random: systemRandom, log: run.log, closers, signal };
    const environment = await environmentOf({ ...options, transport }, deps);
    run.asked = environment.setups.length;
    const figures = await measure(environment, options, run, closers);
    done.abort();
    await telling;
    tell(figures, options, run);
  } catch (error) {
    if (error !== signal.reason) throw error;
    tell([], options, run);
  } finally {
    done.abort();
    await telling;
    await (signal.aborted ? withDeadline(systemClock, END_MS, closers.close()) : closers.close());
  }
  // A request to a gateway that hangs would keep the program running.
  if (signal.aborted) exitNow(EXIT.interrupted);
}

function environmentOf(
  options: Omit<FleetOptions, 'transport'> & { transport: BoxTransport },
  deps: Parameters<typeof managedEnvironment>[2],
): Promise<FleetEnvironment> {
  const { transport, gateway, identities, broker, passwordFile } = options;
  const size = sizeOf(options);
  if (gateway === undefined) {
    if (identities !== undefined || broker !== undefined) {
      throw new ConfigError('--identities and --broker belong to --gateway: alone the fleet makes its own');
    }
    return managedEnvironment(size, transport, deps);
  }
  if (!URL.canParse(gateway)) throw new ConfigError(`--gateway ${gateway}: expected http://127.0.0.1:8800 or the like`);
  if (identities === undefined) {
    const what = 'a folder of `paybox provision`, or a YAML file that lists boxes with their secrets';
    throw new ConfigError(`--gateway needs --identities: ${what}`);
  }
  trustAuthorityIn(options);
  const adminToken = adminTokenOf(options);
  assertHidden(adminToken, '--gateway', gateway);
  const password = passwordFile === undefined ? undefined : secretFrom('--password-file', passwordFile);
  return externalEnvironment(size, { ...options, gateway, identities, broker, password, adminToken }, deps);
}

/** Throws ConfigError for what cannot go together. */
function sizeOf({
  boxes,
  light: isLight = false,
  share,
  gateway,
  transport,
}: Parameters<typeof environmentOf>[0]): FleetSize {
  if (!isLight && boxes > FULL_BOXES_MAX) {
    throw new ConfigError(`--boxes ${boxes}: expected at most ${FULL_BOXES_MAX}, or --light`);
  }
  if (isLight && transport.openLight === undefined) {
    throw new ConfigError(`--light: there are no light boxes with --transport ${transport.name}`);
  }
  if (share === undefined) return { boxes, isLight };
  if (gateway === undefined) throw new ConfigError('--share needs --gateway: the shares meet at one that runs');
  const [part = 0, of = 0] = /^\d{1,3}\/\d{1,3}$/.test(share) ? share.split('/').map(Number) : [];
  if (part < 1 || part > of) throw new ConfigError(`--share ${share}: expected as 1/4, the first of four shares`);
  return { boxes, isLight, share: { part, of } };
}

/** Starts the boxes, runs the load and judges. A signal ends this early. */
async function measure(
  environment: FleetEnvironment,
  options: FleetOptions,
  run: Run,
  closers: Closers,
): Promise<Figure[]> {
  const { tracker, measured, log, boxes, signal, seed } = run;
  const { gateway, callbacksReceived, confirmsDisplayed } = environment;
  const clock = systemClock;
  const beforeBytes = process.memoryUsage.rss();
  closers.add(async () => {
    const closed = Promise.all(boxes.map((box) => box.close()));
    await (signal.aborted ? withDeadline(clock, BOXES_END_MS, closed) : closed);
  });
  const beganMs = clock.monotonicMs();
  await startFleetBoxes(environment.setups, boxes, { clock, random: systemRandom, log, tracker, signal });
  measured.allRegisteredMs = clock.monotonicMs() - beganMs;
  for (const { registeredMs } of boxes) measured.registeredMs.push(registeredMs);
  const withBoxesBytes = process.memoryUsage.rss();
  const runId = `F${systemRandom.uuid().slice(0, RUN_ID_CHARS).toUpperCase()}`;
  const plan: LoadPlan = {
    pushesPerSecond: options.rate ?? Math.max(1, boxes.length / SECONDS_PER_PUSH),
    pushes: options.pushes ?? Number.POSITIVE_INFINITY,
    seconds: options.seconds ?? (options.pushes === undefined ? SECONDS : undefined),
    confirmsDisplayed,
  };
  const shops = { gateway, tracker, measured, clock, random: seededRandom(seed), runId, signal };
  if (!signal.aborted) await runLoad(boxes, plan, shops);
  const evidence = {
    gateway,
    boxes,
    tracker,
    measured,
    clock,
    callbacksReceived,
    settleTimeoutMs: SETTLE_TIMEOUT_MS,
    signal,
  };
  await untilAborted(signal, judge(evidence)).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const mostBytes = process.resourceUsage().maxRSS * KIBIBYTE;
  return figuresOf(boxes.length, measured, tracker, { beforeBytes, withBoxesBytes, mostBytes });
}

function tell(figures: readonly Figure[], options: FleetOptions, run: Run): void {
  const { tracker, measured, signal, seed } = run;
  const { listed, omitted } = tracker.problems;
  if (options.json === true) {
    for (const figure of figures) say(JSON.stringify(figure));
  } else {
    say(table(summaryOf(figures, measured)));
  }
  for (const problem of listed) remark(`WRONG: ${problem}`);
  if (omitted > 0) remark(`WRONG: ${omitted} more`);
  const confirmed = measured.confirmedMs.length;
  if (!signal.aborted && confirmed === 0) remark('WRONG: no push was confirmed');
  const isRight = listed.length === 0 && confirmed > 0;
  const verdict = signal.aborted
    ? 'interrupted, not judged'
    : isRight
      ? 'the money is right'
      : 'the money is NOT right';
  remark(
    `${run.asked} ${options.light === true ? 'light ' : ''}boxes, ${transportNamed('--transport', options.transport).name}, seed ${seed}: ${verdict}`,
  );
  process.exitCode = signal.aborted ? EXIT.interrupted : isRight ? EXIT.right : EXIT.wrong;
}
