/** The first code of a bundle: what `src/cli.js` is in a checkout, without its search for the right Node. */
import { keepCompiled } from '../src/compile-cache.js';
import { endWithParent } from '../src/lib/shutdown.ts';

// Node does not tell of deprecated calls inside node_modules, where those of a bundle come from.
process.noDeprecation = true;
keepCompiled();
endWithParent();
const { main } = await import('../src/main.ts');
await main(process.argv.slice(2));
