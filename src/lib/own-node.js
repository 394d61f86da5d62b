// Plain JavaScript: a host may run it with any Node from 18 on, which cannot read TypeScript.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { constants } from 'node:os';

export const REQUIRED_MAJOR = 24;

/** Whether this program's Node can run paybox; other engines only have its version number. */
export function isNewEnough() {
  return Number.parseInt(process.versions.node, 10) >= REQUIRED_MAJOR && process.versions.bun === undefined;
}

/** The program file of the Node that npm installed beside paybox; undefined where there is none for this system. */
export function ownNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return undefined;
  }
}

/** Runs `node` with these arguments in place of this program, which relays its signals and ends as it does. */
export function runWith(node, args, whenMissing) {
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  // A terminal sends Ctrl-C to both programs, `kill` to this one only, `timeout` to this one twice. A child that counts
  // signals (commands/shared/stop-signal.ts) is told of those that came here; any other one just gets them.
  let counts = false;
  child.on('message', () => {
    counts = true;
  });
  const relay = (signal) => (counts && child.connected ? child.send({ relayed: signal }) : child.kill(signal));
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, relay);
  process.on('SIGHUP', () => child.kill('SIGHUP'));
  child.on('error', whenMissing);
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 128 + constants.signals[signal];
  });
}
