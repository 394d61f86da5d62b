// Plain JavaScript: a host may run it with any Node from 18 on, which cannot read TypeScript.
import { spawn } from 'node:child_process';
import { realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { isSupportedNode, NEEDED_NODE, thisNode } from './node-version.js';
import { DETACH, onceStarterEnds } from './starter.js';

const EXIT_MISSING = 3;

/** Returns whether this program may go on: it runs on the Node of the checkout, or there is none for this system and its own will do. */
export function isOwnNode() {
  const pinned = pinnedNode();
  return pinned === undefined ? isSupportedNode() : realpathSync(process.execPath) === realpathSync(pinned);
}

/** The program file of the Node that package-lock.json pins; undefined where there is none for this system. */
function pinnedNode() {
  try {
    return createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/bin/node`);
  } catch {
    return undefined;
  }
}

/**
 * Runs a script on the Node of the checkout, as a child of this program, which relays its signals and ends as it does.
 * Without such a Node this one runs it, if it can.
 */
export function runOnOwnNode(script, args) {
  const node = pinnedNode() ?? (isSupportedNode() ? process.execPath : undefined);
  const fail = (reason) => {
    const advice = `run "npm ci" in the project first; elsewhere than on Linux, install ${NEEDED_NODE}`;
    process.stderr.write(`paybox needs ${NEEDED_NODE}, and this is ${thisNode()}${reason}\n  ${advice}\n`);
    process.exitCode = EXIT_MISSING;
  };
  if (node === undefined) fail('');
  else runWith(node, [...process.execArgv, script, ...args], ({ message }) => fail(` (${message})`));
}

function runWith(node, args, whenMissing) {
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
  if (!args.includes(DETACH)) onceStarterEnds(() => relay('SIGTERM'));
  child.on('error', whenMissing);
  child.on('exit', (code, signal) => {
    process.exitCode = signal === null ? (code ?? 1) : 128 + constants.signals[signal];
  });
}
