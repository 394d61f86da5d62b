import { join } from 'node:path';
import { probeOf, screenProbe } from '../../bench/engine/probes.ts';
import { progressOn } from '../../bench/engine/reports/progress.ts';
import type { Transport } from '../../bench/engine/targets/config.ts';
import { realTime } from '../../bench/engine/test-time.ts';
import { Baseline } from '../../bench/judges/baseline.ts';
import { BOX_CHECKS, BOX_NOT_JUDGED } from '../../bench/judges/box/checks/all.ts';
import { openEmulatedBox } from '../../bench/judges/box/emulated-box.ts';
import { isAnyHost, openExternalBox, ownAddress } from '../../bench/judges/box/external-box.ts';
import type { JudgedIdentity } from '../../bench/judges/box/gateway/endpoint.ts';
import { type BoxNeed, type BoxSubject, boxLacks } from '../../bench/judges/box/subject.ts';
import { groupByClause } from '../../bench/judges/check.ts';
import { conformancePage } from '../../bench/judges/page.ts';
import { startListener } from '../../bench/judges/service/callback-listener.ts';
import { SERVICE_CHECKS, SERVICE_NOT_JUDGED } from '../../bench/judges/service/checks/all.ts';
import { openEmulatedService, uniqueOrders } from '../../bench/judges/service/emulated-service.ts';
import { type ServiceOptionsGiven, serviceOptionsOf, strayServiceOption } from '../../bench/judges/service/options.ts';
import { ServiceSubject } from '../../bench/judges/service/subject.ts';
import { type JudgeTarget, judgeAll, judgeTarget, type TargetResults, toReported } from '../../bench/judges/suite.ts';
import { GATEWAY_TRANSPORTS } from '../../device/agent/transports/registry.ts';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError } from '../../lib/errors.ts';
import { seededRandom, systemRandom } from '../../lib/random.ts';
import { table } from '../../lib/text.ts';
import { boxCode } from '../../protocol/fields.ts';
import { trustAuthorityIn } from '../shared/authority.ts';
import { fileLog } from '../shared/daemon.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { remark, say } from '../shared/output.ts';
import { assertOut, assertReports, finishRun, writeOut } from '../shared/report-files.ts';
import { boxTokenOf, secretFrom } from '../shared/secrets.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { type DialectOptions, emulatedDialectBox, externalDialectBox } from './bench-conformance-dialect.ts';
import { emulatedStarter } from './bench-emulated.ts';
import { anySeed } from './bench-target.ts';
import { authorityIn, newAuthority, tlsIdentitiesOf } from './bench-tls.ts';

/** Options of `paybox bench conformance`. */
export interface ConformanceOptions extends ServiceOptionsGiven, DialectOptions {
  /** The CA of the service's certificate. */
  ca?: string;
  /** The box, as terminalCode:serialNumber. */
  awaitBox?: string;
  boxTokenFile?: string;
  listen?: string;
  mqttPort?: number;
  httpPort?: number;
  /** A folder made by `paybox provision`. */
  tls?: string;
  probe?: string;
  restartCommand?: string;
  /** Seconds. */
  within?: number;
  only?: string;
  strict?: boolean;
  /** A file of accepted deviations. */
  baseline?: string;
  updateBaseline?: boolean;
  junit?: string;
  tap?: string;
  report?: string;
  seed?: number;
  json?: boolean;
}

type IsWanted = (clause: string) => boolean;

/** Length limit of a title in the table. */
const TITLE_CHARS_MAX = 72;
const NOWHERE = { write: () => true };
const LOOPBACK = '127.0.0.1';
const MQTT_PORT = 18_840;
const HTTP_PORT = 8_840;
const WITHIN_SECONDS = 120;

/**
 * Runs `paybox bench conformance`. The exit code is 0 when every clause holds, 1 when one is broken, 3 when no peer
 * answered.
 */
export async function conformance(options: ConformanceOptions): Promise<void> {
  shareGlyphs();
  trustAuthorityIn(options);
  const seed = options.seed ?? anySeed();
  const targets = targetsOf(options, seed);
  await assertReports(options);
  const baseline = await baselineFrom(options);
  const signal = new StopSignal().aborting();
  const startedAtMs = systemClock.wallMs();
  const target = targets.map((it) => it.target).join(', ');
  const out = options.json === true ? NOWHERE : process.stdout;
  const progress = progressOn({ out, err: process.stderr }, { target, seed, what: 'checks' });
  const all = await judgeAll(targets, {
    strict: options.strict === true,
    accepted: (judged, finding) => baseline?.accepted(judged, finding),
    signal,
    onBegin: (title, number, of) => progress.begin(title, number, of),
    onStep: (title) => progress.step(title),
    onEnd: (result, judged) => progress.end(toReported(result, { target: judged, seed })),
  });
  const results = all.flatMap((it) => it.results.map((result) => toReported(result, { target: it.target, seed })));
  if (baseline !== undefined && options.updateBaseline === true && !signal.aborted) {
    await writeOut('--baseline', baseline.file, baseline.text());
  }
  for (const { target: judged, clause, title } of baseline?.outdated(all) ?? []) {
    remark(`${baseline?.file} accepts what ${judged} does right by now: ${clause} ${title}`);
  }
  const page = () => conformancePage(all, { startedAtMs });
  const print = () => all.forEach(options.json === true ? printJson : printTable);
  await finishRun(results, options, { startedAtMs, progress, isInterrupted: signal.aborted, page, print });
}

/**
 * Returns the baseline of a run: read, or recorded for `--update-baseline`. Throws ConfigError that names the option.
 */
async function baselineFrom({ baseline, updateBaseline = false }: ConformanceOptions): Promise<Baseline | undefined> {
  if (baseline === undefined && updateBaseline) {
    throw new ConfigError('--update-baseline: expected --baseline FILE beside it, the file to write');
  }
  if (baseline === undefined) return undefined;
  if (!updateBaseline) return Baseline.read(baseline);
  await assertOut('--baseline', baseline);
  return Baseline.recording(baseline);
}

function targetsOf(options: ConformanceOptions, seed: number): JudgeTarget[] {
  const { only, service, awaitBox, dialect } = options;
  const wanted = only?.split(',').map((it) => it.trim());
  const isWanted = (clause: string) => wanted?.some((it) => clause === it || clause.startsWith(`${it}-`)) ?? true;
  if (service !== undefined && awaitBox !== undefined) {
    throw new ConfigError('--await-box and --service: expected one of them, a run judges a box or a service');
  }
  if (service !== undefined && dialect !== undefined) {
    throw new ConfigError('--dialect: a dialect is judged at boxes', 'leave out --service');
  }
  if (options.checkSumSaltFile !== undefined && dialect === undefined) {
    throw new ConfigError('--check-sum-salt-file: expected --dialect beside it');
  }
  const targets = () => {
    if (awaitBox !== undefined) return [externalBox(options, isWanted)];
    if (service !== undefined) return [externalService(options, isWanted)];
    if (dialect !== undefined) return [emulatedDialectBox(options, { probe: screenProbe(), seed, isWanted })];
    const stray = strayServiceOption(options);
    if (stray !== undefined) throw new ConfigError(stray, 'give the address of the service to judge');
    const boxes = [...GATEWAY_TRANSPORTS.values()].map((transport) => emulatedBox(options, transport, seed, isWanted));
    return [emulatedService(options, seed, isWanted), ...boxes];
  };
  const chosen = targets().filter(({ size }) => size > 0);
  if (chosen.length > 0) return chosen;
  throw new ConfigError(`--only ${only}: expected clauses that are judged, as TOK-4, or groups of them, as TOK,SND`);
}

/** Our gateway in this process, in virtual time. */
function emulatedService({ report }: ConformanceOptions, seed: number, isWanted: IsWanted): JudgeTarget {
  return judgeTarget(isWanted, {
    target: 'our own gateway',
    checks: SERVICE_CHECKS,
    notJudged: SERVICE_NOT_JUDGED,
    open: async () => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ random, log: fileLog(report && join(report, 'bench.log')) });
      const { subject, close } = await openEmulatedService(starter, random);
      return openService(subject, close);
    },
  });
}

function externalService(given: ConformanceOptions, isWanted: IsWanted): JudgeTarget {
  const { listen, ...options } = serviceOptionsOf(given, {
    secretFrom,
    boxToken: given.boxPage === undefined ? undefined : boxTokenOf(given),
  });
  return judgeTarget(isWanted, {
    target: options.access.baseUrl,
    checks: SERVICE_CHECKS,
    notJudged: SERVICE_NOT_JUDGED,
    open: async () => {
      const listener = listen && (await startListener(listen, systemClock, options.callbackAuth));
      const subject = new ServiceSubject({ ...options, ...uniqueOrders(systemRandom), time: realTime, listener });
      if (listener !== undefined) {
        remark(`The partner's endpoint is ${listener.url}, its token endpoint ${listener.tokenUrl}`);
      }
      return openService(subject, async () => listener?.close());
    },
  });
}

function openService(subject: ServiceSubject, close: () => Promise<void>) {
  const { time, redactor } = subject;
  return { subject, time, lacks: subject.lacks.bind(subject), redact: (text: string) => redactor.text(text), close };
}

/** Our agent in this process, in virtual time. */
function emulatedBox({ report }: ConformanceOptions, transport: Transport, seed: number, isWanted: IsWanted) {
  const elsewhere = [...GATEWAY_TRANSPORTS.keys()].filter((name) => name !== transport.name);
  const checks = BOX_CHECKS.filter(({ needs = [] }) => !needs.some((need) => elsewhere.includes(need)));
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
      return openBox(await openEmulatedBox(starter, { transport, probe: screenProbe(), random, tls, signal }), true);
    },
  });
}

/** Any box that connects from outside. Throws ConfigError that names the option. */
function externalBox(given: ConformanceOptions, isWanted: IsWanted): JudgeTarget {
  const options = externalOptions(given);
  if (given.dialect !== undefined) return externalDialectBox(given, isWanted, options);
  const identity = identityOf(given);
  return judgeTarget(isWanted, {
    target: `box ${identity.terminalCode}`,
    checks: BOX_CHECKS,
    notJudged: BOX_NOT_JUDGED,
    open: async (signal) =>
      openBox(await openExternalBox({ ...(await options(signal)), identity }), given.slow === true),
  });
}

/**
 * Returns how a box from outside connects and is seen, whatever it speaks. Throws ConfigError that names the option.
 */
function externalOptions(given: ConformanceOptions) {
  const { boxPage: url, probe, listen: host = LOOPBACK, restartCommand } = given;
  if (url !== undefined && !/^https?:\/\/[^@]+$/.test(url)) {
    throw new ConfigError(`--box-page ${url}: expected the origin of the box's pages, as http://192.168.1.20:8810`);
  }
  const token = boxTokenOf(given);
  const pages = url === undefined ? undefined : screenProbe();
  const authority = given.tls === undefined ? undefined : authorityIn(given.tls);
  return async (signal: AbortSignal) => ({
    tls: authority && (await tlsIdentitiesOf(authority, isAnyHost(host) ? ownAddress() : host)),
    place: { host, mqttPort: given.mqttPort ?? MQTT_PORT, httpPort: given.httpPort ?? HTTP_PORT },
    url,
    token,
    probe: probe === undefined ? pages : probeOf(probe),
    restartCommand,
    withinMs: (given.within ?? WITHIN_SECONDS) * 1000,
    random: systemRandom,
    signal,
    onListening: (lines: string[]) => void remark(lines.join('\n')),
    onProgress: (text: string) => void remark(`… ${text}`),
  });
}

function openBox(subject: BoxSubject, isSlow: boolean) {
  const lacks = (need: BoxNeed) => boxLacks(subject, need, isSlow);
  return { subject, time: subject.time, lacks, close: () => subject.controls.close() };
}

function identityOf({ awaitBox = '', boxSecretFile }: ConformanceOptions): JudgedIdentity {
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

function printJson({ target, results }: TargetResults): void {
  for (const { evidence: _evidence, ...result } of results) {
    say(JSON.stringify({ target, ...result }));
  }
}

function printTable({ target, results, notJudged = [] }: TargetResults): void {
  const rows = groupByClause(results).flatMap(({ clause, checks }) =>
    checks.map(({ title, outcome, level, reason }, index) => {
      const shortTitle = title.length > TITLE_CHARS_MAX ? `${title.slice(0, TITLE_CHARS_MAX - 1)}…` : title;
      return [index === 0 ? clause : '', shortTitle, level === 'gap' ? `${outcome} (gap)` : outcome, reason];
    }),
  );
  say(`\n${target}\n${table(rows)}`);
  if (notJudged.length === 0) return;
  say(`not judged\n${table(notJudged.map(({ clauses, why }) => [clauses.join(', '), why]))}`);
}
