import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';

const PARENT = resolve(import.meta.dirname, '../../src/lib/parent.ts');

/** A program that would stay for ever, and says `ready` once it is bound to its parent, at the first byte on standard input. */
function program(stdio: 'ipc' | 'ignore'): ChildProcess {
  const code = `
    process.stdin.once('data', async () => {
      (await import(${JSON.stringify(PARENT)})).endWithParent();
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
