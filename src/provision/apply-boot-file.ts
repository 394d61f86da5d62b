import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { reasonOf } from '../lib/errors.ts';
import type { Logger } from '../lib/log.ts';
import type { Random } from '../lib/random.ts';
import { bytesIn, type Disk, namesIn, textIn } from './disk.ts';

/** A file that a box is set up by, for root and the group of its folder, or with `isSecret` for root only. */
export interface SetupFile {
  /** An absolute path. */
  path: string;
  text: string;
  isSecret?: boolean;
}

/** How a file on the boot partition is understood; `Settings` is JSON. */
export interface BoxFileKind<Settings> {
  /** Its name. */
  name: string;
  bytesMax: number;
  /** Throws what a person has to be told. `before` is what was taken over last. */
  read(bytes: Uint8Array, before: Settings | undefined): Promise<{ settings: Settings; withoutSecrets: string }>;
  /** What to write for it, the configuration last; `folder` is the name of a folder of its own. */
  filesOf(settings: Settings, folder: string): Promise<SetupFile[]>;
}

export interface ApplyBootFileDeps<Settings> {
  kind: BoxFileKind<Settings>;
  disk: Disk;
  random: Random;
  log: Logger;
  /** Does `work` while the boot partition can be written. */
  whileWritable(work: () => Promise<void>): Promise<void>;
}

export interface Folders {
  boot: string;
  config: string;
}

const record = z.object({
  id: z.string().regex(/^[\w-]{8}$/),
  /** SHA-256 of the file on the boot partition. */
  source: z.string(),
  /** What that file is replaced by. */
  withoutSecrets: z.string(),
  settings: z.unknown(),
  /** Whether what was there before it was made by a person. */
  isFirst: z.boolean(),
  isApplied: z.boolean(),
  /** Whether nothing secret of it is on the boot partition. */
  isCleared: z.boolean(),
});
type Taken = z.infer<typeof record>;

const RECORD_FILE = 'taken-over.json';
/** Where the old file of the boot partition is while it is written over. */
const SPENT_SUFFIX = '.old';
const FOLDER_PREFIX = 'box-';
const FOLDER_MODE = 0o750;
const GROUP_MODE = 0o640;
const SECRET_MODE = 0o600;

/**
 * Takes over the file on the boot partition if it is another one than last time. What it says is on the disk as a whole
 * before anything is made of it or taken from the boot partition, and one that a power cut ended goes on with the
 * next call. `problem` is what the file's reader has thrown; the box then keeps what it had. Throws what the disk
 * throws.
 */
export async function applyBootFile<Settings>(
  folders: Folders,
  deps: ApplyBootFileDeps<Settings>,
): Promise<{ taken: boolean; problem: unknown }> {
  const { kind, log } = deps;
  const before = await readRecord(folders.config, log);
  let current = before;
  let problem: unknown;
  try {
    current = (await newRecord(folders, before, deps)) ?? before;
  } catch (error) {
    problem = error;
  }
  if (current === undefined) return { taken: false, problem };
  if (current !== before) await writeRecord(folders.config, current, deps);
  if (!current.isApplied) {
    await apply(folders.config, current, deps);
    current = { ...current, isApplied: true };
    await writeRecord(folders.config, current, deps);
    log.info('taken-over', { file: kind.name, id: current.id });
  }
  await clear(folders, current, deps);
  return { taken: current.id !== before?.id, problem };
}

/** Undefined when the file is not there, or what was taken over already. */
async function newRecord<Settings>(
  { boot }: Folders,
  before: Taken | undefined,
  { kind, random }: ApplyBootFileDeps<Settings>,
): Promise<Taken | undefined> {
  const bytes = await bytesIn(boot, kind.name, kind.bytesMax).catch((error: unknown) => {
    throw new Error(`${kind.name}: cannot be read: ${reasonOf(error)}`);
  });
  if (bytes === undefined) return undefined;
  const source = hashOf(bytes);
  if (before !== undefined && (source === before.source || source === hashOf(before.withoutSecrets))) return undefined;
  const { settings, withoutSecrets } = await kind.read(bytes, before?.settings as Settings | undefined);
  const isCleared = hashOf(withoutSecrets) === source;
  return {
    id: random.secret(6),
    source,
    withoutSecrets,
    settings,
    isFirst: before === undefined,
    isApplied: false,
    isCleared,
  };
}

/** Once more from its start after a power cut. */
async function apply<Settings>(
  config: string,
  taken: Taken,
  { kind, disk }: ApplyBootFileDeps<Settings>,
): Promise<void> {
  const folder = `${FOLDER_PREFIX}${taken.id}`;
  const files = await kind.filesOf(taken.settings as Settings, folder);
  await disk.makeFolder(join(config, folder), FOLDER_MODE);
  for (const { path, text, isSecret } of files) {
    if (taken.isFirst && dirname(path) === config) await keepOld(path, text, disk);
    await disk.replace(path, text, isSecret ? SECRET_MODE : GROUP_MODE);
  }
  const spent = (await namesIn(config)).filter((name) => name.startsWith(FOLDER_PREFIX) && name !== folder);
  for (const name of spent) await disk.remove(join(config, name));
}

/** What stood there was written by a person. */
async function keepOld(path: string, text: string, disk: Disk): Promise<void> {
  const old = await textIn(path);
  if (old !== undefined && old !== text) await disk.replace(`${path}${SPENT_SUFFIX}`, old, GROUP_MODE);
}

/** Takes every secret off the boot partition. */
async function clear<Settings>(
  { boot, config }: Folders,
  taken: Taken,
  deps: ApplyBootFileDeps<Settings>,
): Promise<void> {
  const { kind, disk, whileWritable } = deps;
  const path = join(boot, kind.name);
  const spent = `${path}${SPENT_SUFFIX}`;
  const isSpent = async () => (await namesIn(boot)).includes(`${kind.name}${SPENT_SUFFIX}`);
  const there = await bytesIn(boot, kind.name, kind.bytesMax);
  const holdsSecrets = there !== undefined && hashOf(there) === taken.source && !isClean(taken);
  if (taken.isCleared && !holdsSecrets && !(await isSpent())) return;
  await whileWritable(async () => {
    if (holdsSecrets) await disk.rename(path, spent);
    if (await isSpent()) await disk.wipe(spent);
    // A person may have put another file there in the meantime.
    if (holdsSecrets || there === undefined) await disk.replace(path, taken.withoutSecrets);
  });
  if (!taken.isCleared) await writeRecord(config, { ...taken, isCleared: true }, deps);
}

function isClean({ source, withoutSecrets }: Taken): boolean {
  return hashOf(withoutSecrets) === source;
}

async function readRecord(config: string, log: Logger): Promise<Taken | undefined> {
  const text = await textIn(join(config, RECORD_FILE));
  if (text === undefined) return undefined;
  try {
    return record.parse(JSON.parse(text));
  } catch (error) {
    log.error('taken-over-unreadable', {
      reason: `${reasonOf(error)}; the file on the boot partition is taken over anew`,
    });
    return undefined;
  }
}

async function writeRecord(config: string, taken: Taken, { disk }: { disk: Disk }): Promise<void> {
  await disk.replace(join(config, RECORD_FILE), `${JSON.stringify(taken)}\n`, SECRET_MODE);
}

function hashOf(content: Uint8Array | string): string {
  return createHash('sha256').update(content).digest('hex');
}
