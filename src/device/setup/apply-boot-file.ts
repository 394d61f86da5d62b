import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import type { Random } from '../../lib/random.ts';
import { bytesIn, type Disk, namesIn, textIn } from './disk.ts';

/** A file of a box's setup. Root and the group of its folder can read it, or with `isSecret` root only. */
export interface SetupFile {
  /** An absolute path. */
  path: string;
  text: string;
  isSecret?: boolean;
}

/** The way to read a kind of boot file. `Settings` is JSON. */
export interface BoxFileKind<Settings> {
  /** The name of the file. */
  name: string;
  bytesMax: number;
  /** Parses the file. `before` has the last applied settings. Throws errors for people. */
  read(bytes: Uint8Array, before: Settings | undefined): Promise<{ settings: Settings; withoutSecrets: string }>;
  /**
   * Returns the files to write for these settings, the configuration last. `folder` is the name of their own folder.
   */
  filesOf(settings: Settings, folder: string): Promise<SetupFile[]>;
  /**
   * Returns files for other programs of the machine. With `problem` the machine has no program for a part of the
   * settings yet.
   */
  machineFilesOf(settings: Settings): Promise<{ files: SetupFile[]; problem?: string }>;
}

export interface ApplyBootFileDeps<Settings> {
  kind: BoxFileKind<Settings>;
  disk: Disk;
  random: Random;
  log: Logger;
  /** Runs `work` while the boot partition is writable. */
  whileWritable(work: () => Promise<void>): Promise<void>;
}

export interface Folders {
  boot: string;
  config: string;
}

const record = z.object({
  id: z.string().regex(/^[\w-]{8}$/),
  /** The SHA-256 of the file on the boot partition. */
  source: z.string(),
  /** The text that replaces that file. */
  withoutSecrets: z.string(),
  settings: z.unknown(),
  /** True if a person made the earlier configuration. */
  isFirst: z.boolean(),
  isApplied: z.boolean(),
  /** True once the machine has applied its part. Until then each boot tries that part again, and nothing else. */
  isComplete: z.boolean().default(true),
  /** True if the boot partition contains none of its secrets. */
  isCleared: z.boolean(),
});
type Taken = z.infer<typeof record>;

/** Reports a part of the settings for which the machine has no program. */
export class MachineProblem extends Error {}

const RECORD_FILE = 'taken-over.json';
/** The suffix of a replaced file, and of a boot file before its deletion. */
const SPENT_SUFFIX = '.old';
const FOLDER_PREFIX = 'box-';
const FOLDER_MODE = 0o750;
const GROUP_MODE = 0o640;
const SECRET_MODE = 0o600;

/**
 * Applies the file on the boot partition if it has changed. Its settings are completely on disk before it makes
 * anything from them or removes anything from the boot partition. After a power cut the next call continues. `problem`
 * is the error of the file's parser, and the box then keeps its configuration. Throws errors of the disk.
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
    const pending = await applyToMachine(current, deps);
    await apply(folders.config, current, deps);
    current = { ...current, isApplied: true, isComplete: pending === undefined };
    await writeRecord(folders.config, current, deps);
    log.info('boot-file-applied', { file: kind.name, id: current.id });
    problem ??= pending;
  } else if (!current.isComplete) {
    const pending = await applyToMachine(current, deps);
    if (pending === undefined) await writeRecord(folders.config, { ...current, isComplete: true }, deps);
    problem ??= pending;
  }
  await clear(folders, current, deps);
  return { taken: current.id !== before?.id, problem };
}

/** Returns the record of a new file; undefined if there is no file, or this file is already applied. */
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
    isComplete: false,
    isCleared,
  };
}

/** Returns why the machine cannot apply a part of the settings; undefined if it applied all. */
async function applyToMachine<Settings>(
  taken: Taken,
  { kind, disk }: ApplyBootFileDeps<Settings>,
): Promise<Error | undefined> {
  const { files, problem } = await kind.machineFilesOf(taken.settings as Settings);
  for (const { path, text, isSecret } of files) await disk.replace(path, text, isSecret ? SECRET_MODE : GROUP_MODE);
  return problem === undefined ? undefined : new MachineProblem(problem);
}

/** Applies the settings. After a power cut this runs again from the start. */
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

/** Renames a file that a person wrote. */
async function keepOld(path: string, text: string, disk: Disk): Promise<void> {
  const old = await textIn(path);
  if (old !== undefined && old !== text) await disk.replace(`${path}${SPENT_SUFFIX}`, old, GROUP_MODE);
}

/** Removes every secret from the boot partition. */
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
    // A person may have put another file there meanwhile, which then stays.
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
    log.error('boot-record-unreadable', {
      reason: `${reasonOf(error)}; the file on the boot partition is applied again`,
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
