import { fileURLToPath } from 'node:url';

/** The file that starts paybox. It stands one folder above this code, in the source as in the package. */
export const PROGRAM = fileURLToPath(new URL('../cli.js', import.meta.url));
