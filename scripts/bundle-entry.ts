/** The first code of a bundle: what `src/cli.js` is in a checkout, without its search for the right Node. */
import { enableCompileCache } from 'node:module';
import { endWithParent } from '../src/lib/parent.ts';

// Node does not tell of deprecated calls inside node_modules, where those of a bundle come from.
process.noDeprecation = true;
// Into NODE_COMPILE_CACHE, which a service sets to a folder that it keeps: the second start needs no compiler.
enableCompileCache();
endWithParent();
const { main } = await import('../src/main.ts');
await main(process.argv.slice(2));
