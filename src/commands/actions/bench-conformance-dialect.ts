import { join } from 'node:path';
import type { Probe } from '../../bench/engine/target.ts';
import { DIALECT_BOX_NOT_JUDGED, DIALECT_CHECKS } from '../../bench/judges/dialect/checks/all.ts';
import {
  type ExternalDialectBoxOptions,
  openEmulatedDialectBox,
  openExternalDialectBox,
} from '../../bench/judges/dialect/open.ts';
import type { DialectIdentity } from '../../bench/judges/dialect/scripted-service.ts';
import { type DialectNeed, type DialectSubject, dialectLacks } from '../../bench/judges/dialect/subject.ts';
import { type JudgeTarget, judgeTarget } from '../../bench/judges/suite.ts';
import { dialectNamed } from '../../device/agent/transports/registry.ts';
import { ConfigError } from '../../lib/errors.ts';
import { seededRandom } from '../../lib/random.ts';
import { macAddress } from '../../protocol/dialect.ts';
import { boxCode } from '../../protocol/fields.ts';
import { fileLog } from '../shared/daemon.ts';
import { personAtTerminal } from '../shared/person.ts';
import { secretFrom } from '../shared/secrets.ts';
import { emulatedStarter } from './bench-emulated.ts';

/** Options of `paybox bench conformance --dialect`. */
export interface DialectOptions {
  dialect?: string;
  /** The MAC address of the box. */
  awaitBox?: string;
  boxCode?: string;
  checkSumSaltFile?: string;
  username?: string;
  passwordFile?: string;
  report?: string;
  slow?: boolean;
}

type IsWanted = (clause: string) => boolean;

const DEFAULT_CODE = 'VVB000001';
const CHECKS = { checks: DIALECT_CHECKS, notJudged: DIALECT_BOX_NOT_JUDGED };

/** Opens our agent in this process, in virtual time, at the public service. */
export function emulatedDialectBox(
  { dialect = '', report }: DialectOptions,
  { probe, seed, isWanted }: { probe: Probe; seed: number; isWanted: IsWanted },
): JudgeTarget {
  const transport = dialectNamed('--dialect', dialect);
  return judgeTarget(isWanted, {
    ...CHECKS,
    target: `our own agent in the dialect ${transport.name}`,
    open: async (signal) => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ random, log: fileLog(report && join(report, 'bench.log')) });
      return opened(await openEmulatedDialectBox(starter, { transport, probe, random, signal }), true);
    },
  });
}

/** Opens any box of the dialect that connects from outside. Throws ConfigError that names the option. */
export function externalDialectBox(
  given: DialectOptions,
  isWanted: IsWanted,
  open: (signal: AbortSignal) => Promise<Omit<ExternalDialectBoxOptions, 'identity' | 'ask'>>,
): JudgeTarget {
  dialectNamed('--dialect', given.dialect ?? '');
  const identity = identityOf(given);
  return judgeTarget(isWanted, {
    ...CHECKS,
    target: `box ${identity.macAddr}`,
    open: async (signal) => {
      const options = { ...(await open(signal)), identity, ask: personAtTerminal() };
      return opened(await openExternalDialectBox(options), given.slow === true);
    },
  });
}

function opened(subject: DialectSubject, isSlow: boolean) {
  const lacks = (need: DialectNeed) => dialectLacks(subject, need, isSlow);
  return { subject, time: subject.time, lacks, close: () => subject.controls.close() };
}

function identityOf(given: DialectOptions): DialectIdentity {
  const { awaitBox: macAddr = '', boxCode: terminalCode = DEFAULT_CODE, username, passwordFile } = given;
  if (!macAddress.safeParse(macAddr).success) {
    throw new ConfigError(
      `--await-box ${macAddr}: with --dialect expected the MAC address of the box, as 02:00:5E:10:00:01`,
    );
  }
  if (!boxCode.safeParse(terminalCode).success) {
    throw new ConfigError(`--box-code ${terminalCode}: expected a box code, as ${DEFAULT_CODE}`);
  }
  if (given.checkSumSaltFile === undefined) {
    throw new ConfigError('--check-sum-salt-file is needed with --dialect: a file with the salt of the checkSum');
  }
  if ((username === undefined) !== (passwordFile === undefined)) {
    throw new ConfigError('--username and --password-file: with --dialect expected both, or none for any login');
  }
  const login = username !== undefined &&
    passwordFile !== undefined && { username, password: secretFrom('--password-file', passwordFile) };
  const checkSumSalt = secretFrom('--check-sum-salt-file', given.checkSumSaltFile);
  return { terminalCode, macAddr, checkSumSalt, ...(login && { login }) };
}
