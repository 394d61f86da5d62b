import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import type { Socket } from 'node:net';
import { isSupportedNode, NEEDED_NODE, otherEngine, thisNode } from '../../lib/node-version.js';
import { PROGRAM } from '../../lib/program.ts';
import { PayboxRefusal } from './errors.ts';

/** The error about the program's end quotes this many of its last characters. */
const SAID_CHARS_MAX = 4_000;
/**
 * These variables are for the host's tests: a debugger's port, a loader, a folder of coverage. The program does not get
 * them.
 */
const NOT_PASSED_ON = ['NODE_OPTIONS', 'NODE_V8_COVERAGE', 'NODE_CHANNEL_FD', 'NODE_CHANNEL_SERIALIZATION_MODE'];

/** The program's answer to a request (src/bench/serve/channel.ts). */
interface Answer {
  id: number;
  result?: unknown;
  refused?: { message: string; fix: string };
  failed?: Failure;
}

/** A step that failed, with both values and the screen as a picture in base64. */
export interface Failure {
  message: string;
  expected?: string;
  actual?: string;
  screen?: string;
}

export interface Request {
  ask: 'open' | 'step' | 'screen' | 'text' | 'status' | 'callbacks' | 'report' | 'reset' | 'close';
  rig?: string;
  box?: number;
  body?: unknown;
}

type Settle = (answer: Omit<Answer, 'id'>) => void;

let shared: Program | undefined;

/**
 * Returns the program of this process, and starts it if there is none. It has all gateways and boxes of this process's
 * tests.
 */
export function program(): Program {
  if (shared === undefined || shared.isOver) shared = new Program();
  return shared;
}

/**
 * Runs `paybox bench serve --channel` as a child of this process. It ends when its channel closes, however this process
 * ends. The channel carries requests instead of HTTP. So it needs no port, and a test that mocks HTTP or timers does
 * not affect it. It keeps this process alive only while it waits for an answer.
 */
export class Program {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Settle>();
  #count = 0;
  #said = '';
  #over: string | undefined;

  constructor() {
    const passedOn = Object.entries(process.env).filter(([name]) => !NOT_PASSED_ON.includes(name));
    const env = { ...Object.fromEntries(passedOn), ...plugAndPlay() };
    this.#child = spawn(nodeForPaybox(), [PROGRAM, 'bench', 'serve', '--channel'], {
      env,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
    this.#child.on('message', (message) => this.#take(message as Answer));
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.#said = `${this.#said}${chunk}`.slice(-SAID_CHARS_MAX);
    });
    this.#child.on('error', (error) => this.#end(`paybox did not start: ${error.message}`));
    this.#child.on('close', (code, signal) => {
      const said = this.#said.trim();
      this.#end(`paybox ended with ${signal ?? code}${said === '' ? '' : `: ${said}`}`);
    });
    this.#letGo();
  }

  get isOver(): boolean {
    return this.#over !== undefined;
  }

  /** Sends a request. Throws PayboxRefusal if it cannot be done. Returns a failed step as `failed`. */
  async ask(request: Request): Promise<{ result?: unknown; failed?: Failure }> {
    const problem = noJson(request);
    if (problem !== undefined) throw new PayboxRefusal(problem, 'give texts, numbers, lists and plain objects');
    const answer = await new Promise<Omit<Answer, 'id'>>((settle) => {
      if (this.#over !== undefined) {
        settle({ refused: { message: this.#over, fix: 'open another with openPaybox' } });
        return;
      }
      this.#count += 1;
      this.#waiting.set(this.#count, settle);
      this.#child.ref();
      this.#child.channel?.ref?.();
      // If the send fails, the program ends, and its end is reported.
      this.#child.send({ id: this.#count, ...request }, () => undefined);
    });
    if (answer.refused === undefined) return answer;
    const { message, fix } = answer.refused;
    throw new PayboxRefusal(message, fix);
  }

  #take({ id, ...answer }: Answer): void {
    const settle = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#letGo();
    settle?.(answer);
  }

  /** Allows this process to end. */
  #letGo(): void {
    this.#child.unref();
    // Bun's channel has no such method, and does not keep a process alive.
    this.#child.channel?.unref?.();
    (this.#child.stderr as Socket | null)?.unref();
  }

  #end(reason: string): void {
    this.#over ??= reason;
    const refused = { message: this.#over, fix: '' };
    for (const settle of this.#waiting.values()) settle({ refused });
    this.#waiting.clear();
  }
}

/** Returns why the request cannot be sent; undefined if it can. */
function noJson(request: Request): string | undefined {
  try {
    JSON.stringify(request);
    return undefined;
  } catch (error) {
    return `${request.ask}: not a value of JSON: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** Returns the Node that runs paybox: that of this process. Under Bun and Deno it is the user's Node on the PATH. */
function nodeForPaybox(): string {
  if (isSupportedNode()) return process.execPath;
  const isOther = otherEngine() !== undefined;
  const found = isOther ? versionsOf('node') : undefined;
  if (found !== undefined && isSupportedNode(found)) return 'node';
  const there = found === undefined ? '' : `, whose node is ${thisNode(found)}`;
  const needed = isOther
    ? `${NEEDED_NODE} on the PATH beside ${thisNode()}${there}`
    : `${NEEDED_NODE}, and this is ${thisNode()}`;
  throw new PayboxRefusal(`paybox needs ${needed}`, 'install one: https://nodejs.org');
}

/** Returns the `process.versions` of the engine with this name; undefined if there is none. */
function versionsOf(command: string): Record<string, string> | undefined {
  const { status, stdout } = spawnSync(command, ['-p', 'JSON.stringify(process.versions)'], { encoding: 'utf8' });
  return status === 0 ? (JSON.parse(stdout) as Record<string, string>) : undefined;
}

/**
 * Returns the variables by which Node finds packages under Yarn's Plug'n'Play. The program and its children need them
 * too.
 */
function plugAndPlay(): NodeJS.ProcessEnv {
  if (process.versions.pnp === undefined) return {};
  // A path with a blank is in quotes.
  const given = [...process.execArgv, ...(process.env.NODE_OPTIONS?.match(/"[^"]*"|[^\s"]+/g) ?? [])];
  const files = given.map((word) => word.replace(/^--[\w-]+=/, '').replaceAll('"', ''));
  const [hook, loader] = [/\.pnp\.cjs$/, /\.pnp\.loader\.mjs$/].map((name) => files.find((file) => name.test(file)));
  const options = [hook && `--require "${hook}"`, loader && `--experimental-loader "${loader}"`];
  return { NODE_OPTIONS: options.filter((option) => option !== undefined).join(' ') };
}
