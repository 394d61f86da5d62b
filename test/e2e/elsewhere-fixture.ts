import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const ROOT = resolve(import.meta.dirname, '../..');
export const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
