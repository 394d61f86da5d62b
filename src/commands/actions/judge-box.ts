import { join } from 'node:path';
import { screenProbe } from '../../bench/engine/probes.ts';
import type { Transport } from '../../bench/engine/targets/config.ts';
import { BOX_CHECKS, BOX_NOT_JUDGED } from '../../bench/judges/box/checks/all.ts';
import { openEmulatedBox } from '../../bench/judges/box/emulated-box.ts';
import { openExternalBox } from '../../bench/judges/box/external-box.ts';
import type { JudgedIdentity } from '../../bench/judges/box/gateway/endpoint.ts';
import { type BoxNeed, type BoxSubject, boxLacks } from '../../bench/judges/box/subject.ts';
import { type IsWanted, type JudgeTarget, judgeTarget } from '../../bench/judges/suite.ts';
import { GATEWAY_TRANSPORTS } from '../../device/agent/transports/registry.ts';
import { ConfigError } from '../../lib/errors.ts';
import { seededRandom } from '../../lib/random.ts';
import { boxCode } from '../../protocol/fields.ts';
import { fileLog } from '../shared/daemon.ts';
import { secretFrom } from '../shared/secrets.ts';
import { type AwaitedBoxOptions, awaitedBox } from './awaited-box.ts';
import { emulatedStarter } from './bench-emulated.ts';
import { newAuthority, tlsIdentitiesOf } from './bench-tls.ts';
import { type RunOptions, runJudge } from './judge.ts';

interface BoxJudgeOptions extends RunOptions, AwaitedBoxOptions {
  /** The box, as terminalCode:serialNumber. */
  awaitBox?: string;
  boxSecretFile?: string;
}

const LOOPBACK = '127.0.0.1';

/** Runs `paybox judge box`. */
export async function judgeBox(options: BoxJudgeOptions): Promise<void> {
  await runJudge('box', options, (isWanted, seed) =>
    options.awaitBox === undefined
      ? [...GATEWAY_TRANSPORTS.values()].map((transport) => emulatedBox(options, transport, isWanted, seed))
      : [externalBox(options, isWanted)],
  );
}

/** Runs our agent in this process, in virtual time. */
function emulatedBox({ report }: BoxJudgeOptions, transport: Transport, isWanted: IsWanted, seed: number) {
  const elsewhere = [...GATEWAY_TRANSPORTS.keys()].filter((name) => name !== transport.name);
  const checks = BOX_CHECKS.filter(({ needs }) => !needs.some((need) => elsewhere.includes(need)));
  const judged = new Set(checks.map(({ clause }) => clause));
  const others = BOX_CHECKS.map(({ clause }) => clause).filter((clause) => !judged.has(clause));
  const otherTransport = {
    clauses: [...new Set(others)],
    why: `what a box does over ${elsewhere.join(' or ').toUpperCase()}`,
  };
  return judgeTarget(isWanted, {
    target: `our own agent over ${transport.name.toUpperCase()}`,
    checks,
    notJudged: [otherTransport, ...BOX_NOT_JUDGED],
    open: async (signal) => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ random, log: fileLog(report && join(report, 'bench.log')) });
      const tls = await tlsIdentitiesOf(await newAuthority(), LOOPBACK);
      return opened(await openEmulatedBox(starter, { transport, probe: screenProbe(), random, tls, signal }), true);
    },
  });
}

/** Judges any box that connects from outside. Throws ConfigError that names the option. */
function externalBox(given: BoxJudgeOptions, isWanted: IsWanted): JudgeTarget {
  const options = awaitedBox(given);
  const identity = identityOf(given);
  return judgeTarget(isWanted, {
    target: `box ${identity.terminalCode}`,
    checks: BOX_CHECKS,
    notJudged: BOX_NOT_JUDGED,
    open: async (signal) =>
      opened(await openExternalBox({ ...(await options(signal)), identity }), given.slow === true),
  });
}

function opened(subject: BoxSubject, isSlow: boolean) {
  const lacks = (need: BoxNeed) => boxLacks(subject, need, isSlow);
  return { subject, time: subject.time, lacks, close: () => subject.controls.close() };
}

function identityOf({ awaitBox = '', boxSecretFile }: BoxJudgeOptions): JudgedIdentity {
  const [terminalCode = '', serialNumber = '', ...more] = awaitBox.split(':');
  const isRight = [terminalCode, serialNumber].every((code) => boxCode.safeParse(code).success) && more.length === 0;
  if (!isRight) {
    throw new ConfigError(`--await-box ${awaitBox}: expected terminalCode:serialNumber, as VVB000001:VVB900001`);
  }
  if (boxSecretFile === undefined) {
    throw new ConfigError('--box-secret-file is needed with --await-box: a file with the secret of the box');
  }
  return { terminalCode, serialNumber, secret: secretFrom('--box-secret-file', boxSecretFile) };
}
