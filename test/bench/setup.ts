import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { screenProbe } from '../../src/bench/engine/probes.ts';
import type { Result } from '../../src/bench/engine/reports/result.ts';
import { runScenario } from '../../src/bench/engine/run/run.ts';
import type { Target, TargetKind } from '../../src/bench/engine/target.ts';
import type { TestTime } from '../../src/bench/engine/test-time.ts';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { emulatedTarget } from '../../src/commands/actions/bench-emulated.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { quietLog } from '../support/kept-log.ts';

export const SEED = 7;

export const noLog = quietLog();

/** Gateway and boxes in this process, on a clock that skips. */
export function emulated(): TargetKind {
  return emulatedTarget({ transport: mqttTransport, probe: screenProbe(), random: seededRandom(SEED), log: noLog });
}

/** The same, with something about it changed. */
export function mutant(change: (target: Target) => Target | Promise<Target>): TargetKind {
  const kind = emulated();
  return { ...kind, open: async (need) => change(await kind.open(need)) };
}

/** One emulated box that is opened again and again without ending, for what is not about boxes. */
export async function sharedTarget(): Promise<TargetKind> {
  const kind = emulated();
  const target = await kind.open({ boxes: 1, enrolled: true });
  onTestFinished(() => target.close().then(() => target.time.close()));
  return withoutClose(kind, target);
}

/** The target for one run of several, none of which ends it. */
export function withoutClose(kind: TargetKind, target: Target): TargetKind {
  const { time } = target;
  const shared: TestTime = {
    clock: time.clock,
    wait: (ms, signal) => time.wait(ms, signal),
    inRealTime: (work) => time.inRealTime(work),
    untilAnswered: (work) => time.untilAnswered(work),
    pollDelay: (options) => time.pollDelay(options),
    overtime: (check, problem) => time.overtime(check, problem),
    close: () => undefined,
  };
  return { ...kind, open: async () => ({ ...target, time: shared, close: async () => undefined }) };
}

/** Runs the steps, which are YAML, on emulated boxes unless another target is given. */
export async function runSteps(
  steps: string,
  {
    kind = emulated(),
    head = '',
    folder = '.',
    updateGoldens = false,
  }: { kind?: TargetKind; head?: string; folder?: string; updateGoldens?: boolean } = {},
): Promise<Result> {
  const source = `name: a test\n${head}steps:\n${steps}`;
  return runScenario(parseScenario(source, 'test.yaml', folder), kind, {
    seed: SEED,
    updateGoldens,
    signal: new AbortController().signal,
    onStep: () => undefined,
  });
}

/** A server that answers what another one does, but for what `change` makes of it. */
export async function lyingProxy(
  origin: string,
  change: (path: string, body: Buffer) => Buffer | Promise<Buffer>,
): Promise<string> {
  const server = createServer(async (request, response) => {
    try {
      const answer = await fetch(`${origin}${request.url}`, { method: request.method ?? 'GET' });
      const body = Buffer.from(await answer.arrayBuffer());
      response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? 'text/plain' });
      response.end(await change(request.url ?? '', body));
    } catch {
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
