import { expect } from 'vitest';
import { BoxClient, type BoxStatus } from '../../src/bench/engine/clients/box.ts';
import { screenProbe } from '../../src/bench/engine/probes.ts';
import type { Probe } from '../../src/bench/engine/target.ts';
import type { AgentStarter } from '../../src/bench/engine/targets/managed.ts';
import { VirtualTime } from '../../src/bench/engine/test-time.ts';
import type { BoxCheck } from '../../src/bench/judges/box/box-check.ts';
import { BOX_CHECKS } from '../../src/bench/judges/box/checks/all.ts';
import { VIOLATION_CHECKS } from '../../src/bench/judges/box/checks/connections.ts';
import { PAYMENT_CHECKS } from '../../src/bench/judges/box/checks/payments.ts';
import { PUSH_CHECKS } from '../../src/bench/judges/box/checks/pushes.ts';
import { RETURN_CHECK } from '../../src/bench/judges/box/checks/sessions.ts';
import { openEmulatedBox } from '../../src/bench/judges/box/emulated-box.ts';
import type { TlsIdentities } from '../../src/bench/judges/box/gateway/endpoint.ts';
import { type BoxNeed, type BoxSubject, boxLacks } from '../../src/bench/judges/box/subject.ts';
import { type CheckResult, runChecks } from '../../src/bench/judges/check.ts';
import { newAuthority, tlsIdentitiesOf } from '../../src/commands/actions/bench-tls.ts';
import { startAgent } from '../../src/device/agent/agent.ts';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import type { InboundMessage, TransportIo } from '../../src/device/agent/contract.ts';
import { setupOf } from '../../src/device/agent/setup.ts';
import { transportNamed } from '../../src/device/agent/transports/registry.ts';
import type { AgentSetup } from '../../src/device/agent/world.ts';
import { qrTextOf } from '../../src/device/scene.ts';
import type { VoiceStatus } from '../../src/device/voice/voice.ts';
import type { Clock } from '../../src/lib/clock.ts';
import { seededRandom } from '../../src/lib/random.ts';
import type { UpMessage } from '../../src/protocol/messages.ts';
import { quietLog } from '../support/kept-log.ts';
import { checksNear } from './nearby-checks.ts';

const SEED = 7;
export const quiet = quietLog();
const never = new AbortController().signal;

/** A wrong box. Each start makes its memory anew. */
export interface Mutant {
  /** The clauses that it breaks. */
  readonly breaks: readonly string[];
  /** Where it finds its gateway over HTTP, which is at this origin. */
  through?(origin: string, clock: Clock): Promise<string>;
  /** What it is told otherwise from the start. */
  setup?(setup: AgentSetup): AgentSetup;
  /** What comes in, and what goes out, as the box and its gateway hear it. */
  wire?(io: TransportIo, panel: Panel): Wire;
  /** What it says aloud, as its /status tells. */
  voice?(voice: VoiceStatus): VoiceStatus;
  /** Which of the pictures that were drawn is on the panel now. */
  panel?(drawn: readonly Drawn[], nowMs: number): Drawn | undefined;
  /** What it takes to see it: a restart, or long. Checks that need what is not named here are left out. */
  readonly needs?: readonly BoxNeed[];
  readonly transport?: string;
}

export interface Wire {
  down?(
    message: InboundMessage,
    say: (message: UpMessage) => Promise<void>,
  ): Promise<InboundMessage[]> | InboundMessage[];
  up?(message: UpMessage): UpMessage[];
  seal?: Partial<TransportIo['seal']>;
}

/** One picture. */
export interface Drawn {
  atMs: number;
  qr: string | undefined;
}

/** What a person sees, whatever the driver says. */
export class Panel {
  readonly drawn: Drawn[] = [];
  /** Whether the last QR stays, whatever is drawn. */
  isFrozen = false;
}

/** Starts our own box in this process, with the changes of the mutant. */
export function starterOf(mutant: Mutant, panel: Panel, isReal: boolean): AgentStarter {
  const time = new VirtualTime();
  const { clock } = time;
  let starts = 0;
  const changed = (setup: AgentSetup): AgentSetup => {
    const open: AgentSetup['link']['open'] = (io, signal) => openChanged(setup, mutant, panel, io, signal);
    const displays: AgentSetup['displays'] = isReal ? setup.displays : [panelDisplay(panel, clock)];
    const whole = { ...setup, displays, link: { ...setup.link, open } };
    return mutant.setup?.(whole) ?? whole;
  };
  return {
    time,
    agent: async (config) => {
      starts += 1;
      const deps = { clock, random: seededRandom(SEED + starts), log: quiet };
      const none = { terminal: undefined, terminalInput: undefined };
      const { link, ...rest } = config as { link: { url: string } };
      const url = (await mutant.through?.(link.url, clock)) ?? link.url;
      const setup = setupOf(parseAgentConfig({ ...rest, link: { ...link, url } }, 'test'));
      const agent = await startAgent(changed(setup), { ...deps, ...none });
      return { end: () => agent.close() };
    },
  };
}

/** The pages of a box that says something else aloud. */
class SayingOtherwise extends BoxClient {
  readonly #change: (voice: VoiceStatus) => VoiceStatus;

  constructor(pages: BoxClient, change: (voice: VoiceStatus) => VoiceStatus) {
    super(pages.url, pages);
    this.#change = change;
  }

  override async status(): Promise<BoxStatus> {
    const status = await super.status();
    const { voice } = status as BoxStatus & { voice: VoiceStatus };
    return { ...status, voice: this.#change(voice) };
  }
}

/** A panel that draws its QR itself, so that nothing has to be painted and decoded again. */
function panelDisplay(panel: Panel, clock: Clock): AgentSetup['displays'][0] {
  return {
    driver: 'panel',
    open: async () => ({
      surface: { kind: 'panel', qr: { sidePixels: 400, charsMax: 512 }, accents: true },
      draw: async (_frame, scene) => {
        panel.drawn.push({ atMs: clock.monotonicMs(), qr: qrTextOf(scene) });
      },
      close: async () => undefined,
    }),
  };
}

async function openChanged(setup: AgentSetup, mutant: Mutant, panel: Panel, io: TransportIo, signal: AbortSignal) {
  const wire = mutant.wire?.(io, panel) ?? {};
  const { seal } = io;
  const through = {
    seal: (message: UpMessage, challenge: string) =>
      wire.seal?.seal?.(message, challenge) ?? seal.seal(message, challenge),
    open: (bytes: Uint8Array | string) => wire.seal?.open?.(bytes) ?? seal.open(bytes),
  };
  const session = await setup.link.open({ ...io, seal: through }, signal);
  async function* incoming() {
    for await (const message of session.incoming) {
      yield* (await wire.down?.(message, (said) => session.send(said))) ?? [message];
    }
  }
  return {
    incoming: incoming(),
    send: async (message: UpMessage) => {
      for (const said of wire.up?.(message) ?? [message]) await session.send(said);
    },
    close: () => session.close(),
  };
}

export interface Judging {
  transport?: string;
  probe?: Probe;
  /** With them, box and gateway speak TLS. */
  tls?: TlsIdentities;
  /** What is not there; everything is unless told otherwise. */
  without?: readonly BoxNeed[];
  checks?: readonly BoxCheck[];
}

/** Every verdict on a box that is right but for what the mutant says. */
export async function judge(mutant: Mutant, { transport = 'mqtt', probe, tls, without = [], checks }: Judging = {}) {
  const panel = new Panel();
  const starter = starterOf(mutant, panel, probe?.name === 'screen');
  const { time } = starter;
  const options = {
    transport: transportNamed('judge', transport),
    probe: probe ?? probeOf(mutant, panel, time.clock),
    random: seededRandom(SEED),
    tls,
    signal: never,
  };
  const subject = await openEmulatedBox(starter, options);
  const { pages } = subject.controls;
  if (mutant.voice !== undefined && pages !== undefined)
    subject.controls.pages = new SayingOtherwise(pages, mutant.voice);
  try {
    return await verdictsOn(subject, without, checks);
  } finally {
    await subject.controls.close();
  }
}

/** Sees what is on the panel. */
export function probeOf(mutant: Mutant, panel: Panel, clock: Clock): Probe {
  return {
    name: 'panel',
    capture: async () => {
      const { qr } = mutant.panel?.(panel.drawn, clock.monotonicMs()) ?? frozen(panel) ?? panel.drawn.at(-1) ?? {};
      return { file: Buffer.from(qr ?? ''), picture: { width: 1, height: 1, data: new Uint8Array(4) }, qr };
    },
  };
}

/** The checks of a mutant; a push and a payment are in every run, as most violations need one. */
export function boxChecksNear(breaks: readonly string[]): readonly BoxCheck[] {
  const [push] = PUSH_CHECKS;
  const [payment] = PAYMENT_CHECKS;
  const always = [RETURN_CHECK, push, payment, ...VIOLATION_CHECKS].filter((it) => it !== undefined);
  return checksNear(BOX_CHECKS, breaks, always);
}

/** The verdicts where two boxes have one name and one secret. */
export async function judgeTwo(): Promise<CheckResult[]> {
  const { time, agent } = starterOf({ breaks: [] }, new Panel(), false);
  const both: AgentStarter = {
    time,
    agent: async (config, terminalCode) => {
      const twin = { ...config, dataDir: `${(config as { dataDir: string }).dataDir}-twin`, http: { port: 0 } };
      const parts = await Promise.all([agent(config, terminalCode), agent(twin, terminalCode)]);
      return { end: async (how) => void (await Promise.all(parts.map((part) => part.end(how)))) };
    },
  };
  const options = {
    transport: transportNamed('judge', 'mqtt'),
    probe: screenProbe(),
    random: seededRandom(SEED),
    signal: never,
  } as const;
  const subject = await openEmulatedBox(both, options);
  try {
    return await verdictsOn(subject, ['screen', 'pages', 'faults', 'restart', 'slow']);
  } finally {
    await subject.controls.close();
  }
}

function frozen({ drawn, isFrozen }: Panel): Drawn | undefined {
  return isFrozen ? drawn.findLast(({ qr }) => qr !== undefined) : undefined;
}

export function verdictsOn(
  subject: BoxSubject,
  without: readonly BoxNeed[] = [],
  checks: readonly BoxCheck[] = BOX_CHECKS,
): Promise<CheckResult[]> {
  return runChecks(checks, subject, {
    lacks: (need) => (without.includes(need) ? `without ${need}` : boxLacks(subject, need, true)),
    strict: false,
    time: subject.time,
    signal: never,
  });
}

/** What did not pass, in words, but for what the transport does not have. */
export function troubles(results: readonly CheckResult[]): string[] {
  return results
    .filter(({ outcome, reason }) => outcome !== 'passed' && !/^the box speaks|^without/.test(reason))
    .map(({ clause, title, outcome, reason }) => `${clause} ${title}: ${outcome}: ${reason}`);
}

export function brokenClauses(results: readonly CheckResult[]): string[] {
  const broken = results.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'skipped');
  return [...new Set(broken.map(({ clause }) => clause))].sort();
}

/** Judges our own box over TLS, and expects it to hold every clause. */
export async function expectEveryClause(over: { transport: string; probe?: Probe }): Promise<void> {
  const tls = await tlsIdentitiesOf(await newAuthority(), '127.0.0.1');
  const results = await judge({ breaks: [] }, { ...over, tls });
  expect(troubles(results)).toEqual([]);
  expect(results).toHaveLength(BOX_CHECKS.length);
  expect(results.filter(({ outcome }) => outcome === 'passed').length).toBeGreaterThan(115);
}
