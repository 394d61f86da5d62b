import type { Probe } from '../../src/bench/engine/target.ts';
import { type CheckResult, runChecks } from '../../src/bench/judges/check.ts';
import { DIALECT_CHECKS } from '../../src/bench/judges/dialect/checks/all.ts';
import type { DialectCheck } from '../../src/bench/judges/dialect/dialect-check.ts';
import { openEmulatedDialectBox } from '../../src/bench/judges/dialect/open.ts';
import { type DialectSubject, dialectLacks } from '../../src/bench/judges/dialect/subject.ts';
import { TRANSPORTS } from '../../src/device/agent/transports/registry.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { Panel, probeOf, starterOf } from './box-fixture.ts';
import type { DialectMutant } from './mutants/dialect-habits.ts';

const SEED = 7;
const never = new AbortController().signal;

export interface DialectJudging {
  panel?: Panel;
  probe?: Probe;
  checks?: readonly DialectCheck[];
}

/** Every verdict on our own box in the dialect, right but for what the mutant says. */
export async function judgeDialect(
  mutant: DialectMutant,
  { panel = new Panel(), probe, checks = DIALECT_CHECKS }: DialectJudging = {},
): Promise<CheckResult[]> {
  const { time, agent } = starterOf(mutant, panel, probe !== undefined);
  const starter: Parameters<typeof openEmulatedDialectBox>[0] = {
    time,
    agent: (config, terminalCode) => {
      const { link, ...rest } = config as { link: object };
      return agent({ ...rest, link: { ...link, ...mutant.link } }, terminalCode);
    },
  };
  const transport = TRANSPORTS.get('vietqr');
  if (transport === undefined) throw new Error('there is no such transport');
  const subject = await openEmulatedDialectBox(starter, {
    transport,
    probe: probe ?? probeOf(mutant, panel, time.clock),
    random: seededRandom(SEED),
    signal: never,
  });
  try {
    return await dialectVerdicts(subject, checks);
  } finally {
    await subject.controls.close();
  }
}

export function dialectVerdicts(subject: DialectSubject, checks = DIALECT_CHECKS, isSlow = true) {
  const lacks = (need: Parameters<typeof dialectLacks>[1]) => dialectLacks(subject, need, isSlow);
  return runChecks(checks, subject, { lacks, strict: false, time: subject.time, signal: never });
}
