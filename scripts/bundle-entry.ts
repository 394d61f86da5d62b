/** The first code of a bundle: what `src/cli.js` is in a checkout, without its search for the right Node. */
import { enableCompileCache } from 'node:module';

enableCompileCache();
const { main } = await import('../src/main.ts');
await main(process.argv.slice(2));
