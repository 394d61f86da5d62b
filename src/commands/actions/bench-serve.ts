import { mkdir } from 'node:fs/promises';
import { flushCompileCache } from 'node:module';
import { join } from 'node:path';
import { startBenchServer } from '../../bench/serve/server.ts';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError, reasonOf } from '../../lib/errors.ts';
import { stderrLog } from '../../lib/log.ts';
import { STOP_BUDGET_MS } from '../../lib/shutdown.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { version } from '../../lib/version.ts';
import { forgetReadyFile, writeReadyFile } from '../shared/daemon.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { secretFrom } from '../shared/secrets.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { anySeed, LIBRARY, scenariosIn, targetOf, withBoxes } from './bench-target.ts';

export interface ServeOptions {
  host: string;
  port: number;
  tokenFile?: string;
  scenarios: string[];
  probe: string[];
  report?: string;
  readyFile?: string;
  untilInputEnds?: boolean;
}

/** An attacker could guess a shorter token. */
const TOKEN_CHARS_MIN = 16;
const EXIT = { ended: 0, interrupted: 130 } as const;

/** Runs `paybox bench serve` until a signal; a second signal ends it at once. */
export async function serve(options: ServeOptions): Promise<void> {
  shareGlyphs();
  const stop = new StopSignal();
  if (options.untilInputEnds === true) process.stdin.resume().once('end', () => process.kill(process.pid, 'SIGTERM'));
  const { host, port, readyFile } = options;
  const token = tokenOf(options);
  if (readyFile !== undefined) await forgetReadyFile(readyFile);
  // An unreadable folder ends the start, not the first run.
  await scenariosOf(options.scenarios);
  const log = stderrLog();
  const starting = startBenchServer(
    { host, port, token, version: version(), log },
    {
      targetOf: async (choice, seed, id) => {
        const report = options.report === undefined ? undefined : join(options.report, id);
        if (report !== undefined) await makeFolder(report);
        return targetOf({ ...choice, report }, seed);
      },
      scenarios: () => scenariosOf(options.scenarios),
      withBoxes,
      anySeed,
      probes: options.probe,
    },
  );
  const control = await stop.started(starting);
  if (readyFile !== undefined) await writeReadyFile(readyFile, { url: control.origin, pid: process.pid });
  process.stdout.write(`PAYBOX-BENCH SERVE url=${control.origin}\n`);
  // Written now, because at the end somebody would wait for it.
  flushCompileCache();
  const signal = await stop.received;
  log.info('stopping', { signal });
  const isClosed = await withDeadline(
    systemClock,
    STOP_BUDGET_MS,
    control.close(`the server was ended by ${signal}`).then(() => true),
  );
  if (isClosed) log.info('stopped', { signal });
  else log.error('end-timed-out', { withinMs: STOP_BUDGET_MS });
  process.exit(signal === 'SIGINT' ? EXIT.interrupted : EXIT.ended);
}

function tokenOf({ host, tokenFile }: ServeOptions): string | undefined {
  const token = tokenFile === undefined ? undefined : secretFrom('--token-file', tokenFile);
  if (token === undefined && !isLoopbackHost(host)) {
    throw new ConfigError(
      `--host ${host}: others can reach it, and whoever asks may start programs`,
      'give --token-file with a secret that callers send; without TLS others can read it, so rather use a tunnel',
    );
  }
  if (token === undefined || (token.length >= TOKEN_CHARS_MIN && !/\s/.test(token))) return token;
  throw new ConfigError(
    `--token-file: expected at least ${TOKEN_CHARS_MIN} characters without blanks`,
    'openssl rand -hex 16',
  );
}

/** Scenarios by name. Later folders override earlier ones, and all override the built-in library. */
async function scenariosOf(folders: readonly string[]): Promise<Map<string, string>> {
  const found = await Promise.all(
    [LIBRARY, ...folders].map((folder) =>
      scenariosIn(folder).catch((error: unknown) => {
        throw new ConfigError(
          `--scenarios ${folder} cannot be read: ${reasonOf(error)}`,
          'name a folder of scenario files',
        );
      }),
    ),
  );
  return new Map(found.flatMap((scenarios) => [...scenarios]));
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true }).catch((error: unknown) => {
    throw new ConfigError(
      `--report: ${folder} cannot be made: ${reasonOf(error)}`,
      'start with a folder that may be written',
    );
  });
}
