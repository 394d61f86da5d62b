import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readBoxFile } from '../../src/device/agent/setup/box-file.ts';
import { temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';

export const BOX1 = 'VVB000001:VVB900001';
export const BOX2 = 'VVB000002:VVB900002';
export const GATEWAY = 'https://gateway.example:8443';

/** A card's boot partition, as a Raspberry Pi has it, and a folder beside it. */
export async function card() {
  const root = await temporaryFolder();
  const [boot, out] = [join(root, 'boot'), join(root, 'made')];
  await mkdir(boot);
  await writeFile(join(boot, 'cmdline.txt'), 'quiet\n');
  const file = join(boot, 'paybox.yaml');
  const run = (...args: string[]) => payboxToEnd('provision', ...args);
  return { boot, out, file, run, read: async () => readBoxFile(await readFile(file), undefined).settings };
}
