// Plain JavaScript: a host may run it with any Node from 18 on, which cannot read the TypeScript of the script that it runs.
import { isNewEnough, ownNode, REQUIRED_MAJOR, runWith } from '../src/lib/own-node.js';

const [script, ...args] = process.argv.slice(2);
const node = isNewEnough() ? process.execPath : ownNode();
const fail = () => {
  const fix = `run "npm ci" in the project first; elsewhere than on Linux, install Node ${REQUIRED_MAJOR} yourself`;
  process.stderr.write(`${script} needs Node ${REQUIRED_MAJOR}, and this is ${process.version}\n  ${fix}\n`);
  process.exitCode = 3;
};
if (node === undefined) fail();
else runWith(node, [...process.execArgv, script, ...args], fail);
