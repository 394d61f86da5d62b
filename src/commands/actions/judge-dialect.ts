import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { screenProbe } from '../../bench/engine/probes.ts';
import { DIALECT_BOX_NOT_JUDGED, DIALECT_CHECKS } from '../../bench/judges/dialect/checks/all.ts';
import { openEmulatedDialectBox, openExternalDialectBox } from '../../bench/judges/dialect/open.ts';
import type { DialectIdentity } from '../../bench/judges/dialect/scripted-service.ts';
import { type DialectNeed, type DialectSubject, dialectLacks } from '../../bench/judges/dialect/subject.ts';
import { type IsWanted, type JudgeTarget, judgeTarget } from '../../bench/judges/suite.ts';
import { vietqrTransport } from '../../device/agent/transports/vietqr.ts';
import { ConfigError } from '../../lib/errors.ts';
import { seededRandom } from '../../lib/random.ts';
import { macAddress } from '../../protocol/dialect.ts';
import { boxCode } from '../../protocol/fields.ts';
import { fileLog } from '../shared/daemon.ts';
import { secretFrom } from '../shared/secrets.ts';
import { type AwaitedBoxOptions, awaitedBox } from './awaited-box.ts';
import { emulatedStarter } from './bench-emulated.ts';
import { type RunOptions, runJudge } from './judge.ts';

interface DialectJudgeOptions extends RunOptions, AwaitedBoxOptions {
  /** The MAC address of the box. */
  awaitBox?: string;
  boxCode?: string;
  checkSumSaltFile?: string;
  username?: string;
  passwordFile?: string;
}

const DEFAULT_CODE = 'VVB000001';
const CHECKS = { checks: DIALECT_CHECKS, notJudged: DIALECT_BOX_NOT_JUDGED };

/** Runs `paybox judge dialect`. */
export async function judgeDialect(options: DialectJudgeOptions): Promise<void> {
  await runJudge('dialect', options, (isWanted, seed) => [
    options.awaitBox === undefined ? emulatedBox(options, isWanted, seed) : externalBox(options, isWanted),
  ]);
}

/** Runs our agent in this process, in virtual time, at the public service. */
function emulatedBox({ report }: DialectJudgeOptions, isWanted: IsWanted, seed: number): JudgeTarget {
  const transport = vietqrTransport;
  return judgeTarget(isWanted, {
    ...CHECKS,
    target: `our own agent in the dialect ${transport.name}`,
    open: async (signal) => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ random, log: fileLog(report && join(report, 'bench.log')) });
      return opened(await openEmulatedDialectBox(starter, { transport, probe: screenProbe(), random, signal }), true);
    },
  });
}

/** Judges any box of the dialect that connects from outside. Throws ConfigError that names the option. */
function externalBox(given: DialectJudgeOptions, isWanted: IsWanted): JudgeTarget {
  const options = awaitedBox(given);
  const identity = identityOf(given);
  return judgeTarget(isWanted, {
    ...CHECKS,
    target: `box ${identity.macAddr}`,
    open: async (signal) => {
      const box = { ...(await options(signal)), identity, ask: personAtTerminal() };
      return opened(await openExternalDialectBox(box), given.slow === true);
    },
  });
}

function opened(subject: DialectSubject, isSlow: boolean) {
  const lacks = (need: DialectNeed) => dialectLacks(subject, need, isSlow);
  return { subject, time: subject.time, lacks, close: () => subject.controls.close() };
}

function identityOf(given: DialectJudgeOptions): DialectIdentity {
  const { awaitBox: macAddr = '', boxCode: terminalCode = DEFAULT_CODE, username, passwordFile } = given;
  if (!macAddress.safeParse(macAddr).success) {
    throw new ConfigError(`--await-box ${macAddr}: expected the MAC address of the box, as 02:00:5E:10:00:01`);
  }
  if (!boxCode.safeParse(terminalCode).success) {
    throw new ConfigError(`--box-code ${terminalCode}: expected a box code, as ${DEFAULT_CODE}`);
  }
  if (given.checkSumSaltFile === undefined) {
    throw new ConfigError('--check-sum-salt-file is needed with --await-box: a file with the salt of the checkSum');
  }
  if ((username === undefined) !== (passwordFile === undefined)) {
    throw new ConfigError('--username and --password-file: expected both, or none for any login');
  }
  const login = username !== undefined &&
    passwordFile !== undefined && { username, password: secretFrom('--password-file', passwordFile) };
  const checkSumSalt = secretFrom('--check-sum-salt-file', given.checkSumSaltFile);
  return { terminalCode, macAddr, checkSumSalt, ...(login && { login }) };
}

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

/**
 * Asks the person at the terminal; returns undefined if there is none. An answer other than yes and no is undefined.
 */
function personAtTerminal() {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY) return undefined;
  return async (question: string, signal: AbortSignal): Promise<boolean | undefined> => {
    const lines = createInterface({ input, output });
    try {
      return ANSWERS.get((await lines.question(`\n${question} [y/n] `, { signal })).trim().toLowerCase());
    } finally {
      lines.close();
    }
  };
}
