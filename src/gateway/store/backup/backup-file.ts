import { constants } from 'node:fs';
import { type FileHandle, open, statfs } from 'node:fs/promises';
import { ConfigError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';

const COPY_BYTES_AT_ONCE = 1_048_576;
/** The first bytes of a SQLite file, and of a file by `pg_dump --format=custom`. */
const SQLITE_MAGIC = 'SQLite format 3\0';
const POSTGRES_MAGIC = 'PGDMP';
const FIX = 'name a file that paybox backup has made';

/** An open backup. It is read only through its handle, because another file may get its name meanwhile. */
export interface BackupFile {
  file: string;
  kind: 'sqlite' | 'postgres';
  sizeBytes: number;
  handle: FileHandle;
}

/** Opens a backup and detects its kind. The caller closes it. Throws ConfigError for a file that is not a backup. */
export async function openBackup(file: string): Promise<BackupFile> {
  let handle: FileHandle | undefined;
  try {
    // O_NONBLOCK is needed because a pipe without a writer would block without end.
    handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const stat = await handle.stat();
    if (!stat.isFile()) throw new Error('it is not a file');
    const begin = Buffer.alloc(SQLITE_MAGIC.length);
    await handle.read(begin, 0, begin.length, 0);
    return { file, kind: kindOf(begin.toString('latin1'), file), sizeBytes: stat.size, handle };
  } catch (error) {
    await handle?.close();
    if (error instanceof ConfigError) throw error;
    const reason = systemCodeOf(error) === 'ELOOP' ? 'it is a link' : reasonOf(error);
    throw new ConfigError(`${file} cannot be read: ${reason}`, FIX);
  }
}

function kindOf(begin: string, file: string): BackupFile['kind'] {
  if (begin === SQLITE_MAGIC) return 'sqlite';
  if (begin.startsWith(POSTGRES_MAGIC)) return 'postgres';
  throw new ConfigError(`${file} is not a backup of a gateway`, FIX);
}

/** Copies a backup durably into this folder. Throws ConfigError without room, or when the backup shrinks meanwhile. */
export async function copyBackup({ file, handle, sizeBytes }: BackupFile, target: FileHandle, folder: string) {
  const { bavail, bsize } = await statfs(folder);
  if (sizeBytes > bavail * bsize) {
    const missing = Math.ceil((sizeBytes - bavail * bsize) / 1_048_576);
    const what = `the disk of ${folder} has no room for ${file}: ${missing} MiB are missing`;
    throw new ConfigError(what, 'make room on that disk');
  }
  const chunk = Buffer.alloc(COPY_BYTES_AT_ONCE);
  for (let at = 0; at < sizeBytes; ) {
    const { bytesRead } = await handle.read(chunk, 0, Math.min(chunk.length, sizeBytes - at), at);
    if (bytesRead === 0) {
      throw new ConfigError(`${file} was cut while it was copied`, 'run it again when no program writes to that file');
    }
    await target.writeFile(chunk.subarray(0, bytesRead));
    at += bytesRead;
  }
  await target.sync();
}
