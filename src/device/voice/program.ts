import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { type Clock, withAbortAfter, withDeadline } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { voiceFault } from './fault.ts';

/** A program to run, without a shell, so that no shell interprets arguments. */
export interface Program {
  command: string;
  args: readonly string[];
  /** The Debian package of the program, for the advice when it is missing. */
  debianPackage: string;
  /** The advice for a failure. */
  advice: string;
  /** The standard input; empty if absent. */
  input?: Uint8Array;
}

/** This is more than a minute of speech. A program that writes more is broken. */
const OUTPUT_BYTES_MAX = 8 * 1024 * 1024;
const COMPLAINT_CHARS_MAX = 2_000;
/** A killed program has this time to end. One that is stuck in the kernel must not delay the box. */
const KILL_WAIT_MS = 1_000;

interface Running {
  /** Settles when the program has ended and its output was read. Rejects when it did not start or wrote too much. */
  ended: Promise<Ended>;
  /** Kills the program by its id, and waits for its end, but not forever. */
  kill(clock: Clock): Promise<void>;
}

interface Ended {
  /** The failure; undefined after a success. */
  failure: string | undefined;
  output: Buffer;
}

/**
 * Runs a program and returns its output. Kills it after `timeoutMs`, or when `signal` aborts. Throws a PayboxError that
 * names the program when it is missing, fails or takes too long.
 */
export function runProgram(program: Program, clock: Clock, timeoutMs: number, signal: AbortSignal): Promise<Buffer> {
  return withAbortAfter(clock, timeoutMs, signal, async (limited) => {
    const running = start(program);
    const ended = await Promise.race([running.ended, aborted(limited)]);
    if (ended === undefined) {
      await running.kill(clock);
      throw signal.aborted
        ? voiceFault(`${program.command} was stopped`, '')
        : voiceFault(`${program.command} hung and was killed`, program.advice);
    }
    if (ended.failure !== undefined) throw voiceFault(`${program.command} ${ended.failure}`, program.advice);
    return ended.output;
  });
}

/**
 * Keeps a program running for `ms` milliseconds, or until `signal` aborts, then kills it. Throws a PayboxError when it
 * is missing or ends by itself.
 */
export async function holdProgram(program: Program, clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const done = new AbortController();
  const running = start(program);
  try {
    const ended = await Promise.race([
      running.ended,
      clock.sleep(ms, AbortSignal.any([signal, done.signal])).then(() => undefined),
    ]);
    if (ended !== undefined)
      throw voiceFault(`${program.command} ${ended.failure ?? 'ended too soon'}`, program.advice);
  } finally {
    done.abort();
    await running.kill(clock);
  }
}

function start(program: Program): Running {
  const { command, args, input } = program;
  const child = spawn(command, args, { stdio: 'pipe', env: { ...process.env, LC_ALL: 'C.UTF-8' } });
  // A program that ends before it has read everything reports the reason with its exit code.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input ?? '');
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const ended = endOf(child, program);
  ended.catch(() => undefined);
  return {
    ended,
    kill: async (clock) => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await withDeadline(clock, KILL_WAIT_MS, gone);
      // The program's children may still hold the pipes open.
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
      child.unref();
    },
  };
}

function endOf(child: ChildProcessWithoutNullStreams, { command, debianPackage, advice }: Program): Promise<Ended> {
  const output: Buffer[] = [];
  let outputBytes = 0;
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(-COMPLAINT_CHARS_MAX);
  });
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      outputBytes += chunk.length;
      if (outputBytes <= OUTPUT_BYTES_MAX) {
        output.push(chunk);
        return;
      }
      child.kill('SIGKILL');
      reject(voiceFault(`${command} wrote more than ${OUTPUT_BYTES_MAX} bytes`, advice));
    });
    child.once('error', (error) => {
      const missing = systemCodeOf(error) === 'ENOENT';
      reject(
        missing
          ? voiceFault(`${command} is not installed`, `sudo apt-get install ${debianPackage}`, error)
          : voiceFault(`${command} cannot be started: ${reasonOf(error)}`, 'check that it may be run', error),
      );
    });
    child.once('close', (code, killedBy) => {
      const how = killedBy === null ? `failed with exit code ${code}` : `was ended by ${killedBy}`;
      // The last line usually has the reason.
      const last = complaint.trim().split('\n').at(-1)?.trim() ?? '';
      const failure = code === 0 ? undefined : `${how}${last === '' ? '' : `: ${last}`}`;
      resolve({ failure, output: Buffer.concat(output) });
    });
  });
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
