import { access, constants, rename, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { BoxAt } from '../bench/box-at.ts';
import { realPace } from '../bench/pace.ts';
import { probeOf } from '../bench/probe.ts';
import { fileOf } from '../bench/record/file.ts';
import { isPassing, Recorder } from '../bench/record/recorder.ts';
import { talliedOf } from '../bench/record/tally.ts';
import { parseScenario } from '../bench/scenario.ts';
import { systemClock } from '../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf } from '../lib/errors.ts';
import { StopSignal } from './daemon.ts';
import { assertWritable } from './report-files.ts';
import { adminTokenOf, assertHidden, boxTokenOf } from './secrets.ts';

export interface RecordOptions {
  gateway: string;
  box: string[];
  out: string;
  once?: boolean;
  replace?: boolean;
  probe: string;
  adminTokenFile?: string;
  boxTokenFile?: string;
}

const LISTEN_MS = 500;
const CLEAR_LINE = '\r\u001b[2K';

/**
 * `paybox bench record`: a session at a gateway becomes a scenario file. Exit code 0 when it is written, 1 when nothing was
 * done that a scenario could do again, 2 for a gateway that cannot be recorded, 3 when it or a box is not there.
 */
export async function record(options: RecordOptions): Promise<void> {
  const { out, once = false } = options;
  const origin = originOf('--gateway', options.gateway);
  const adminToken = adminTokenOf(options);
  assertHidden(adminToken, '--gateway', origin);
  const probe = probeOf(options.probe);
  if (once && options.box.length > 0) {
    throw new ConfigError(
      '--box does not go with --once: what a screen has shown before is not known',
      'leave one out',
    );
  }
  await assertOut(options);
  const boxToken = boxTokenOf(options);
  const boxes = await Promise.all(options.box.map((url) => BoxAt.find(originOf('--box', url), boxToken)));
  const recorder = new Recorder({ origin, adminToken, boxes, probe, pace: realPace });
  await recorder.listen();
  if (!once) await untilStopped(recorder, out);
  const text = fileOf(recorder.recording(systemClock.wallMs()));
  if (text === undefined) {
    throw new PayboxError(
      'NOTHING',
      `nothing was recorded at ${origin}: no order, payment or cancellation was heard of`,
      {
        severity: 'fatal',
        fix: 'push and pay something while it records, as with "paybox push"; a gateway forgets all when it ends',
      },
    );
  }
  // What is written must be what `bench run` takes.
  const scenario = parseScenario(text, basename(out));
  await writeWhole(out, text);
  process.stdout.write(`${out}: ${scenario.steps.length} steps; replay it with: paybox bench run ${out}\n`);
}

async function untilStopped(recorder: Recorder, out: string): Promise<void> {
  const stop = new StopSignal();
  const ending = new AbortController();
  void stop.received.then(() => ending.abort());
  const { stderr } = process;
  const isLive = stderr.isTTY === true;
  const tell = (text: string) => void stderr.write(isLive ? `${CLEAR_LINE}${text}` : `${text}\n`);
  const watching = recorder.watch(ending.signal);
  stderr.write(`recording; Ctrl-C ends it and writes ${out}\n`);
  let told = '';
  let isAway = false;
  while (!ending.signal.aborted) {
    await systemClock.sleep(LISTEN_MS, ending.signal);
    isAway = await listenAgain(recorder, isAway, tell);
    const now = talliedOf(recorder.soFar());
    if (now !== told) tell(now);
    told = now;
  }
  await watching;
  if (isLive) stderr.write('\n');
}

/** Whether the gateway is away, which it may be for a while. */
async function listenAgain(recorder: Recorder, wasAway: boolean, tell: (text: string) => void): Promise<boolean> {
  try {
    await recorder.listen();
    if (wasAway) tell('the gateway is back');
    return false;
  } catch (error) {
    if (!isPassing(error)) throw error;
    if (!wasAway) tell(`${reasonOf(error)}; waiting for it`);
    return true;
  }
}

function originOf(option: string, text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol)) return url.origin;
  const example = option === '--box' ? 'http://127.0.0.1:8810' : 'http://127.0.0.1:8800';
  throw new ConfigError(`${option} ${text}: expected an origin, as ${example}`);
}

/** Throws ConfigError when the file could not be written at the end, or holds something already. */
async function assertOut({ out, replace = false }: RecordOptions): Promise<void> {
  if (!/\.ya?ml$/.test(out)) throw new ConfigError(`--out ${out}: expected a file that ends in .yaml`);
  const isThere = await access(out, constants.F_OK).then(
    () => true,
    () => false,
  );
  if (isThere && !replace)
    throw new ConfigError(`--out ${out} is there already`, 'name another file, or use --replace');
  await assertWritable('--out', out);
}

/** A reader sees all of it or what was there before. */
async function writeWhole(out: string, text: string): Promise<void> {
  const unfinished = `${out}.${process.pid}.tmp`;
  try {
    await writeFile(unfinished, text);
    await rename(unfinished, out);
  } catch (error) {
    throw new ConfigError(`--out ${out} cannot be written: ${reasonOf(error)}`, 'name a file that may be written');
  }
}
