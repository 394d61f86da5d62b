/**
 * This is `bin/paybox.cjs` of the npm package, which any Node can read. It runs the program, or says which Node that
 * needs.
 */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isSupportedNode, NEEDED_NODE, otherEngine, thisNode } from '../../src/lib/node-version.js';

const EXIT_MISSING = 3;
const PROGRAM = join(__dirname, '../lib/cli.js');

if (isSupportedNode()) {
  void import(pathToFileURL(PROGRAM).href);
} else {
  const advice = otherEngine() === undefined ? 'install one: https://nodejs.org' : 'run it by Node: npx --no -- paybox';
  process.stderr.write(`paybox needs ${NEEDED_NODE}, and this is ${thisNode()}\n  ${advice}\n`);
  process.exitCode = EXIT_MISSING;
}
