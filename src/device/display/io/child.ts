import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { type Clock, withDeadline } from '../../../lib/clock.ts';
import { reasonOf } from '../../../lib/errors.ts';

/** A message to a child: its length in 4 bytes, low byte first, then its bytes. */
export const LENGTH_BYTES = 4;
const ANSWER_CHARS_MAX = 10_000;
const COMPLAINT_CHARS_MAX = 2_000;
const CLOSE_TIMEOUT_MS = 1_000;

/** A program that may crash or hang, in its own process. It cannot be restarted. */
export interface Child {
  /**
   * Sends a message and waits for its answer, a line on file descriptor 3. Throws an Error when the child ends, or does
   * not answer within `timeoutMs`, and then kills it. The caller sends one message at a time.
   */
  ask(message: Uint8Array, timeoutMs: number): Promise<string>;
  /** Settles with a description of its end. */
  readonly ended: Promise<string>;
  /** Lets the child end by itself, and kills it if it does not. Safe to call twice. */
  close(): Promise<void>;
}

/** Starts `file` with the current Node. Does not throw: a child that cannot start counts as ended. */
export function startChild(file: string, clock: Clock): Child {
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'ignore', 'pipe', 'pipe'] });
  const [input, , errors, answers] = child.stdio as unknown as [Writable, null, Readable, Readable];
  // A child that ends early breaks the pipe. The program reports its exit instead.
  input.on('error', () => {});
  const complaint = lastOf(errors);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(`could not be started: ${reasonOf(error)}`));
    child.once('close', (code, signal) => {
      const how = signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
      const said = complaint();
      resolve(said === '' ? how : `${how}: ${said}`);
    });
  });
  const nextLine = linesOf(answers);
  let endedHow: string | undefined;
  // One reaction serves all questions, because one per question would pile up over days.
  let giveUp: ((how: string) => void) | undefined;
  void ended.then((how) => {
    endedHow = how;
    giveUp?.(how);
  });
  return {
    ended,
    ask: async (message, timeoutMs) => {
      if (endedHow !== undefined) throw new Error(endedHow);
      const head = Buffer.alloc(LENGTH_BYTES);
      head.writeUInt32LE(message.length);
      input.write(head);
      input.write(message);
      const failed = Promise.withResolvers<never>();
      giveUp = (how) => failed.reject(new Error(how));
      const answer = await withDeadline(clock, timeoutMs, Promise.race([nextLine(), failed.promise])).finally(() => {
        giveUp = undefined;
      });
      if (answer !== undefined) return answer;
      child.kill('SIGKILL');
      throw new Error(`gave no answer within ${timeoutMs} ms and was killed`);
    },
    close: () => close(child, input, ended, clock),
  };
}

async function close(child: ChildProcess, input: Writable, ended: Promise<string>, clock: Clock): Promise<void> {
  input.end();
  if ((await withDeadline(clock, CLOSE_TIMEOUT_MS, ended)) !== undefined) return;
  child.kill('SIGKILL');
  await withDeadline(clock, CLOSE_TIMEOUT_MS, ended);
}

/** Returns the last lines of a program's errors, in one line. */
function lastOf(stream: Readable): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text = (text + chunk).slice(-COMPLAINT_CHARS_MAX);
  });
  return () => text.replaceAll(/\s+/g, ' ').trim();
}

/** Returns a function that gives the first line after each call. It drops lines without a call. */
function linesOf(stream: Readable): () => Promise<string> {
  let rest = '';
  let answer: ((line: string) => void) | undefined;
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    if (answer === undefined) return;
    rest = (rest + chunk).slice(-ANSWER_CHARS_MAX);
    const end = rest.indexOf('\n');
    if (end < 0) return;
    answer(rest.slice(0, end));
    answer = undefined;
  });
  return () => {
    rest = '';
    return new Promise((resolve) => {
      answer = resolve;
    });
  };
}
