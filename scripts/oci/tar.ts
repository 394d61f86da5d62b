/**
 * This file makes tar archives whose bytes depend on nothing but their entries. The caller gives owner, mode and time
 * of each.
 */
import { open } from 'node:fs/promises';

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
const PREFIX_BYTES_MAX = 155;
const TYPES = { file: '0', link: '2', folder: '5' } as const;

/** One entry of an archive. `path` is relative and has no slash at its end. */
export interface TarEntry {
  path: string;
  /** The permission bits. */
  mode: number;
  /** The number of user and group; root by default. */
  owner?: number;
  /** The bytes of a file. */
  content?: Uint8Array;
  /** The place to which a symbolic link leads. An entry with neither this nor `content` is a folder. */
  target?: string;
}

/**
 * Yields the blocks of a ustar archive of these entries, in the order of their paths, each folder before its content.
 * @throws if a path or link is too long for the format.
 */
export function* tarBlocks(entries: Iterable<TarEntry>, epochSeconds: number): Generator<Uint8Array> {
  const sorted = [...entries].sort((a, b) => (a.path < b.path ? -1 : 1));
  for (const entry of sorted) {
    const content = entry.content ?? new Uint8Array();
    yield header(entry, content.length, epochSeconds);
    yield content;
    yield Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES);
  }
  yield Buffer.alloc(2 * BLOCK_BYTES);
}

/** Writes an archive to a file. Throws the system's error. */
export async function writeTar(file: string, entries: Iterable<TarEntry>, epochSeconds: number): Promise<void> {
  const out = await open(file, 'w');
  try {
    for (const block of tarBlocks(entries, epochSeconds)) await out.writeFile(block);
  } finally {
    await out.close();
  }
}

function header(entry: TarEntry, sizeBytes: number, epochSeconds: number): Uint8Array {
  const type = entry.content !== undefined ? 'file' : entry.target !== undefined ? 'link' : 'folder';
  const { name, prefix } = divided(type === 'folder' ? `${entry.path}/` : entry.path);
  const block = Buffer.alloc(BLOCK_BYTES);
  const number = (value: number, at: number, digits: number) =>
    block.write(`${value.toString(8).padStart(digits, '0')}\0`, at, 'latin1');
  const owner = entry.owner ?? 0;
  block.write(name, 0);
  number(entry.mode, 100, 7);
  number(owner, 108, 7);
  number(owner, 116, 7);
  number(sizeBytes, 124, 11);
  number(epochSeconds, 136, 11);
  block.fill(' ', 148, 156);
  block.write(TYPES[type], 156);
  const target = entry.target ?? '';
  if (Buffer.byteLength(target) > NAME_BYTES_MAX) throw new Error(`${entry.path}: its link is too long for an archive`);
  block.write(target, 157);
  block.write('ustar\0', 257);
  block.write('00', 263);
  block.write(prefix, 345);
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/** Divides a path at a slash. The format has 100 bytes for its end and 155 for its beginning. */
function divided(path: string): { name: string; prefix: string } {
  if (Buffer.byteLength(path) <= NAME_BYTES_MAX) return { name: path, prefix: '' };
  const isGood = (at: number) =>
    Buffer.byteLength(path.slice(0, at)) <= PREFIX_BYTES_MAX && Buffer.byteLength(path.slice(at + 1)) <= NAME_BYTES_MAX;
  for (let at = path.indexOf('/'); at > 0 && at < path.length - 1; at = path.indexOf('/', at + 1)) {
    if (isGood(at)) return { name: path.slice(at + 1), prefix: path.slice(0, at) };
  }
  throw new Error(`${path} is too long for an archive`);
}
