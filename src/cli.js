#!/usr/bin/env node
// Plain JavaScript: a host may run it with any Node from 18 on, which cannot read TypeScript.
// It hands over to the Node that package-lock.json pins, with its compile cache on.
import { fileURLToPath } from 'node:url';

const REQUIRED_MAJOR = 24;
const HERE = fileURLToPath(import.meta.url);

if (/[\\/]node_modules[\\/]/.test(HERE)) {
  // Node reads no TypeScript there.
  const advice = 'make a package that does: npm run package; or a folder that needs none: npm run bundle';
  process.stderr.write(`paybox does not run as an installed package\n  ${advice}\n`);
  process.exitCode = 2;
} else if (Number.parseInt(process.versions.node, 10) >= REQUIRED_MAJOR) {
  const { saveMemory } = await import('./lib/compiler.js');
  saveMemory(process.argv[2]);
  const { keepCompiled } = await import('./lib/cache-folder.js');
  keepCompiled();
  const { endWithParent } = await import('./lib/shutdown.ts');
  // Started by the branch below, or by a bench.
  endWithParent();
  const { main } = await import('./main.ts');
  await main(process.argv.slice(2));
} else {
  const pinnedNode = fileURLToPath(new URL('../node_modules/.bin/node', import.meta.url));
  const { runWith } = await import('./lib/own-node.js');
  runWith(pinnedNode, [...process.execArgv, HERE, ...process.argv.slice(2)], (error) => {
    const advice = `run "npm ci" in the project first; elsewhere than on Linux, install Node ${REQUIRED_MAJOR} yourself`;
    process.stderr.write(`paybox needs Node ${REQUIRED_MAJOR}: ${advice} (${error.message})\n`);
    process.exitCode = 3;
  });
}
