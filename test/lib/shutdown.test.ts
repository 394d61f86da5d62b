import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createLogger } from '../../src/lib/log.ts';
import { endAll, endInOrder, STOP_BUDGET_MS, STOP_PROMISE_MS } from '../../src/lib/shutdown.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';

function world() {
  const clock = new VirtualClock();
  const lines = new PassThrough();
  return { clock, log: createLogger(lines, clock, 'text'), logged: () => text(lines.end()) };
}

describe('the end of a program', () => {
  it('has a budget below the two seconds that are promised', () => {
    expect(STOP_BUDGET_MS).toBeLessThan(STOP_PROMISE_MS);
    expect(STOP_PROMISE_MS).toBeLessThan(2_000);
  });

  it('ends parts together, not one after the other', async () => {
    const { clock, log, logged } = world();
    const part = (ms: number) => () => clock.sleep(ms);
    const all = endAll({ slow: part(900), slower: part(1_000), quick: () => undefined }, 1_100, { clock, log });
    let ended = false;
    void all.then(() => {
      ended = true;
    });
    await clock.advance(999);
    expect(ended).toBe(false);
    await clock.advance(1);
    await all;
    expect(await logged()).toBe('');
  });

  it('leaves behind what hangs, and names it', async () => {
    const { clock, log, logged } = world();
    const all = endAll({ well: () => undefined, display: () => new Promise(() => {}) }, 500, { clock, log });
    await clock.advance(500);
    await all;
    expect(await logged()).toMatch(/^\S+ warn {2}end-timed-out part=display withinMs=500\n$/);
  });

  it('ends stages one after the other, each with what is left of the time, and none longer in all', async () => {
    const { clock, log, logged } = world();
    const given: number[] = [];
    const part = (ms: number) => (withinMs: number) => {
      given.push(withinMs);
      return clock.sleep(ms);
    };
    let endedMs: number | undefined;
    const stages = [{ quick: part(300) }, { parts: part(60_000) }, { store: part(60_000) }];
    void endInOrder(stages, 1_800, { clock, log }).then(() => {
      endedMs = clock.monotonicMs();
    });
    await clock.advance(3_000);
    expect([given, endedMs]).toEqual([[1_600, 1_400, 100], 1_800]);
    expect(await logged()).toMatch(
      /end-timed-out part=parts withinMs=1400\n.*end-timed-out part=store withinMs=100\n$/,
    );
  });

  it('ends the others when one fails, at once or later, and names it', async () => {
    const { clock, log, logged } = world();
    const ended: string[] = [];
    const failing = () => {
      throw new Error('cable out');
    };
    const others = { late: () => Promise.reject(new Error('gone')), well: () => void ended.push('well') };
    await endAll({ failing, ...others }, 500, { clock, log });
    expect(ended).toEqual(['well']);
    expect(await logged()).toMatch(/end-failed part=failing reason="cable out"\n.*end-failed part=late reason=gone\n$/);
  });
});

const PARENT = resolve(import.meta.dirname, '../../src/lib/shutdown.ts');

/** A program that would stay for ever, and says `ready` once it is bound to its parent, at the first byte on standard input. */
function program(stdio: 'ipc' | 'ignore'): ChildProcess {
  const code = `
    process.stdin.once('data', async () => {
      (await import(${JSON.stringify(PARENT)})).endWithParent([]);
      console.log('ready');
    });
    setInterval(() => undefined, 1000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['pipe', 'pipe', 'inherit', stdio],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

describe('a program that was started with a channel', () => {
  it('ends when its parent is gone', async () => {
    const child = program('ipc');
    child.stdin?.write('\n');
    if (child.stdout === null) throw new Error('no standard output');
    await once(child.stdout, 'data');
    const exit = once(child, 'exit');
    child.disconnect();
    expect(await exit).toEqual([null, 'SIGTERM']);
  });

  it('ends when its parent was gone before it could look', async () => {
    const child = program('ipc');
    const exit = once(child, 'exit');
    child.disconnect();
    child.stdin?.write('\n');
    expect(await exit).toEqual([null, 'SIGTERM']);
  });

  it('stays without a channel', async () => {
    const child = program('ignore');
    child.stdin?.write('\n');
    if (child.stdout === null) throw new Error('no standard output');
    expect(String((await once(child.stdout, 'data'))[0])).toBe('ready\n');
    expect(child.exitCode).toBeNull();
  });
});
