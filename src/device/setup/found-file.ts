import { join } from 'node:path';
import { namesIn } from './disk.ts';

/** The search for a misplaced file covers at most this many folders of a card. */
const FOLDERS_MAX = 100;
const SPENT_SUFFIX = '.old';

/** The file of a box on a card. */
export interface FoundFile {
  /** The name under which the box uses the file. */
  name: string;
  /** Names the files that the box cannot use, and says what to do; undefined if there are none. */
  problem: string | undefined;
}

/**
 * Finds `name` on a boot partition. Editors and file managers write it in capitals, or as `.yml` or `.yaml.txt`, and
 * people put it into a folder. The box uses one such file under its proper name, and names the files that it cannot
 * use.
 */
export async function foundFile(boot: string, name: string): Promise<FoundFile> {
  const names = (await namesIn(boot)).toSorted();
  const alike = names.filter((it) => isAlike(it, name));
  const [first] = alike;
  if (alike.includes(name)) {
    const others = alike.filter((it) => it !== name);
    return {
      name,
      problem: others.length === 0 ? undefined : `${others.join(', ')}: not read beside ${name}; keep one of them`,
    };
  }
  if (first !== undefined && alike.length === 1) return { name: first, problem: undefined };
  if (first !== undefined) return { name, problem: `${alike.join(', ')}: none is read; keep one of them, as ${name}` };
  // A power cut may have stopped the box while it removed the file's secrets.
  const spent = names.find((it) => it.endsWith(SPENT_SUFFIX) && isAlike(it.slice(0, -SPENT_SUFFIX.length), name));
  if (spent !== undefined) return { name: spent.slice(0, -SPENT_SUFFIX.length), problem: undefined };
  const deep = await misplaced(boot, names, name);
  if (deep !== undefined) return { name, problem: `${deep}: not read there; move it out of its folder, as ${name}` };
  const unlike = names.find((it) => isMeant(it, name));
  return {
    name,
    problem: unlike === undefined ? undefined : `${unlike}: not read under this name; rename it to ${name}`,
  };
}

/** Returns whether this is a copy, as `paybox (1).yaml`, or a file of another program, as `paybox.yaml.rtf`. */
function isMeant(found: string, name: string): boolean {
  const [stem = ''] = name.split('.');
  const lower = found.toLowerCase();
  return lower === stem || (lower.includes(stem) && lower.includes('.'));
}

function isAlike(found: string, name: string): boolean {
  const [stem = ''] = name.split('.');
  const lower = found.toLowerCase();
  return [`${stem}.yaml`, `${stem}.yml`].some((it) => lower === it || lower === `${it}.txt`);
}

/** Returns the path of such a file in a folder, or in a folder of a folder. */
async function misplaced(boot: string, names: readonly string[], name: string): Promise<string | undefined> {
  const folders = names.slice(0, FOLDERS_MAX);
  for (const folder of folders) {
    const inside = await namesIn(join(boot, folder)).catch(() => []);
    const found = inside.find((it) => isAlike(it, name));
    if (found !== undefined) return `${folder}/${found}`;
    for (const deeper of inside.slice(0, FOLDERS_MAX)) {
      const last = (await namesIn(join(boot, folder, deeper)).catch(() => [])).find((it) => isAlike(it, name));
      if (last !== undefined) return `${folder}/${deeper}/${last}`;
    }
  }
  return undefined;
}
