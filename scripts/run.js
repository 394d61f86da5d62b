// `node scripts/run.js SCRIPT …` runs a script on the Node that package-lock.json pins, whatever Node the host has. It
// is plain JavaScript, because a host may run it with any Node from 18 on.
import { runOnOwnNode } from '../src/lib/own-node.js';

const [script, ...args] = process.argv.slice(2);
runOnOwnNode(script, args);
