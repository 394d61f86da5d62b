import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isMap, parseDocument, stringify } from 'yaml';
import { BOX_FILE } from '../../lib/config-file.ts';
import { ConfigError } from '../../lib/errors.ts';
import type { BoxName } from '../../protocol/fields.ts';
import { namesIn, realDisk, textIn } from './disk.ts';
import type { Wifi } from './wifi.ts';

/** Files that the firmware of a Raspberry Pi reads. */
const BOOT_FILES = ['bootcode.bin', 'cmdline.txt', 'config.txt', 'start4.elf'];

/** Holds the content of a box's boot file. */
export interface BoxFileContent {
  box: BoxName;
  gateway: string;
  enrolment?: string | undefined;
  /** Without a secret the box enrols. */
  secret?: string | undefined;
  /** The certificate of the authority. This and the next two are PEM. */
  ca?: string | undefined;
  cert?: string | undefined;
  key?: string | undefined;
  wifi?: Wifi | undefined;
  /** The display with its options. Without it the box uses a framebuffer. */
  display?: object | undefined;
}

/** Returns the text of that file, with hints for editing it. */
export function boxFileText({ box, gateway, enrolment, secret, ca, cert, key, wifi, display }: BoxFileContent): string {
  const { terminalCode, serialNumber } = box;
  const settings = { terminalCode, serialNumber, gateway, enrolment, secret, display, wifi, ca, cert, key };
  return `# The set-up of the box ${terminalCode}: on the boot partition of its card, as ${BOX_FILE}.
# The box takes it over when it starts, and its secrets off the card. Display, voice and every further key:
# device-config/paybox.yaml, or paybox config schema box.
${stringify(settings)}`;
}

/** Returns whether a folder looks like the boot partition of a box. */
export async function isBootPartition(folder: string): Promise<boolean> {
  const names = await namesIn(folder);
  return [...BOOT_FILES, BOX_FILE].some((name) => names.includes(name));
}

/** Checks a folder for a boot file. Throws ConfigError unless the folder exists and has no file of another box. */
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

/** Writes the file into the folder, synced to the card. Returns its path. */
export async function writeBootFile(folder: string, text: string): Promise<string> {
  const path = join(folder, BOX_FILE);
  await realDisk.replace(path, text);
  return path;
}
