/** This is the entry of a bundle: `src/cli.js` of a checkout, without its search for the right Node. */
import { keepCompiled } from '../src/lib/cache-folder.js';
import { saveMemory } from '../src/lib/compiler.js';
import { acceptSqlite } from '../src/lib/node-version.js';
import { endWithParent } from '../src/lib/shutdown.ts';

// Node hides deprecation warnings of code in node_modules, but bundled packages are not there any more.
process.noDeprecation = true;
acceptSqlite();
saveMemory(process.argv[2]);
keepCompiled();
endWithParent(process.argv.slice(2));
const { main } = await import('../src/main.ts');
await main(process.argv.slice(2));
