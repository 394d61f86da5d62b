import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { z } from 'zod';
import { eventually, temporaryFolder } from './net.ts';
import { findProgram, PROGRAMS } from './programs.ts';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--no-first-run',
  '--remote-debugging-port=0',
];
const START_TIMEOUT_MS = 40_000;

const targets = z.array(z.object({ type: z.string(), webSocketDebuggerUrl: z.string() }));
const reply = z.object({
  id: z.int().optional(),
  result: z.object({ result: z.object({ value: z.unknown().optional() }).optional() }).optional(),
});

/** A page in a real browser. Page and browser close at the end of the test. */
export interface BrowserPage {
  /** Evaluates a JavaScript expression in the page; awaits a promise that it returns. */
  evaluate(expression: string): Promise<unknown>;
  /** Sends a command of the DevTools protocol, which need not answer with more than that it is done. */
  command(method: string, params: Record<string, unknown>): Promise<void>;
}

/** Opens `url` in Chromium, with more of its `flags`. */
export async function openInBrowser(url: string, flags: readonly string[] = []): Promise<BrowserPage> {
  const profile = await temporaryFolder();
  const program = findProgram(PROGRAMS.chromium) ?? PROGRAMS.chromium.command;
  const child = spawn(program, [...FLAGS, ...flags, `--user-data-dir=${profile}`, url], { stdio: 'ignore' });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const port = await eventually(
    'the browser to start',
    async () =>
      (await readFile(join(profile, 'DevToolsActivePort'), 'utf8').catch(() => '')).split('\n', 1)[0] || false,
    START_TIMEOUT_MS,
  );
  const target = await eventually('the page to open', async () => {
    const open = targets.parse(await (await fetch(`http://127.0.0.1:${port}/json`)).json());
    return open.find(({ type }) => type === 'page');
  });
  const socket = new WebSocket(target.webSocketDebuggerUrl);
  await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }));
  let last = 0;
  const send = (method: string, params: Record<string, unknown>) => {
    last += 1;
    const id = last;
    return new Promise<z.output<typeof reply>>((resolve) => {
      const onMessage = ({ data }: MessageEvent) => {
        const message = reply.parse(JSON.parse(String(data)));
        if (message.id !== id) return;
        socket.removeEventListener('message', onMessage);
        resolve(message);
      };
      socket.addEventListener('message', onMessage);
      socket.send(JSON.stringify({ id, method, params }));
    });
  };
  return {
    evaluate: async (expression) => {
      const params = { expression, awaitPromise: true, returnByValue: true };
      return (await send('Runtime.evaluate', params)).result?.result?.value;
    },
    command: async (method, params) => void (await send(method, params)),
  };
}
