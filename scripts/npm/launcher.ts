/** `bin/paybox.cjs` of the npm package: runs the program by this Node if it is new enough, else by the one that came along. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isNewEnough, ownNode, REQUIRED_MAJOR, runWith } from '../../src/lib/own-node.js';

const EXIT_MISSING = 3;
const PROGRAM = join(__dirname, '../lib/cli.js');

function missing(reason: string): void {
  const advice = `on Linux (x64, arm64, glibc) run "npm install --include=optional", elsewhere install Node ${REQUIRED_MAJOR}`;
  process.stderr.write(`paybox needs Node ${REQUIRED_MAJOR}, this is ${process.version}: ${reason}\n  ${advice}\n`);
  process.exitCode = EXIT_MISSING;
}

if (isNewEnough()) {
  void import(pathToFileURL(PROGRAM).href);
} else {
  const node = ownNode();
  if (node === undefined) missing(`no Node of its own is installed for ${process.platform} ${process.arch}`);
  else runWith(node, [PROGRAM, ...process.argv.slice(2)], ({ message }) => missing(message));
}
