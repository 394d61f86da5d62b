import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMap, parseDocument, stringify } from 'yaml';
import { BOX_FILE } from '../lib/config-file.ts';
import { ConfigError } from '../lib/errors.ts';
import type { BoxName } from './configs.ts';
import { namesIn, realDisk, textIn } from './disk.ts';
import type { Wifi } from './wifi.ts';

/** What the firmware of a Raspberry Pi looks for. */
const BOOT_FILES = ['bootcode.bin', 'cmdline.txt', 'config.txt', 'start4.elf'];

/** What a box is told by the file on its boot partition. */
export interface BoxFileContent {
  box: BoxName;
  gateway: string;
  enrolment?: string | undefined;
  /** Without it the box enrols. */
  secret?: string | undefined;
  /** PEM, as the next two. */
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  wifi?: Wifi | undefined;
}

/** The text of that file, for a person to go on with. */
export function boxFileText({ box, gateway, enrolment, secret, ca, cert, key, wifi }: BoxFileContent): string {
  const { terminalCode, serialNumber } = box;
  const settings = { terminalCode, serialNumber, gateway, enrolment, secret, wifi, ca, cert, key };
  return `# The set-up of the box ${terminalCode}: on the boot partition of its card, as ${BOX_FILE}.
# The box takes it over when it starts, and its secrets off the card. Display, voice and every further key:
# device-config/paybox.yaml, or paybox config schema box.
${stringify(settings)}`;
}

/** Whether a folder is the boot partition of a box, as far as that can be seen. */
export async function isBootPartition(folder: string): Promise<boolean> {
  const names = await namesIn(folder);
  return [...BOOT_FILES, BOX_FILE].some((name) => names.includes(name));
}

/** Throws ConfigError unless the file of this box may be put into the folder: it is there, and is no other box's. */
export async function checkBootFolder(folder: string, terminalCode: string, replaces: boolean): Promise<void> {
  const found = await stat(folder).catch(() => undefined);
  if (!found?.isDirectory()) {
    throw new ConfigError(`${folder}: there is no such folder`, "mount the boot partition of the box's card there");
  }
  const path = join(folder, BOX_FILE);
  const text = await textIn(path);
  if (text === undefined || replaces || terminalCodeIn(text) === terminalCode) return;
  const whose = terminalCodeIn(text);
  const what = typeof whose === 'string' ? `is that of the box ${whose}` : 'names no box';
  throw new ConfigError(`${path} ${what}`, 'take the right card, or say --replace');
}

function terminalCodeIn(text: string): unknown {
  const { contents } = parseDocument(text);
  return isMap(contents) ? contents.get('terminalCode') : undefined;
}

/** Puts the file into the folder; its path. It is on the card when this settles. */
export async function writeBootFile(folder: string, text: string): Promise<string> {
  const path = join(folder, BOX_FILE);
  await realDisk.replace(path, text);
  return path;
}
