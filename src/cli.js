#!/usr/bin/env node
// Plain JavaScript: a host may run it with any Node from 18 on, which cannot read TypeScript.
// It hands over to the Node that package-lock.json pins, with its compile cache on.
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(import.meta.url);

if (/[\\/]node_modules[\\/]/.test(HERE)) {
  // Node reads no TypeScript there.
  const advice = 'make a package that does: npm run package; or a folder that needs none: npm run bundle';
  process.stderr.write(`paybox does not run as an installed package\n  ${advice}\n`);
  process.exitCode = 2;
} else {
  const { isOwnNode, runOnOwnNode } = await import('./lib/own-node.js');
  if (isOwnNode()) {
    const { acceptSqlite } = await import('./lib/node-version.js');
    acceptSqlite();
    const { saveMemory } = await import('./lib/compiler.js');
    saveMemory(process.argv[2]);
    const { keepCompiled } = await import('./lib/cache-folder.js');
    keepCompiled();
    const { endWithParent } = await import('./lib/shutdown.ts');
    endWithParent(process.argv.slice(2));
    const { main } = await import('./main.ts');
    await main(process.argv.slice(2));
  } else {
    runOnOwnNode(HERE, process.argv.slice(2));
  }
}
