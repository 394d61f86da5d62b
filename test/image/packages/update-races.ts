import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Machine } from './debian-root.ts';

/** Puts two files by turns in the place of a third, as fast as it can, until the machine ends. */
export function swapping(box: Machine, [one, other]: readonly [string, string], at: string): void {
  // A folder of somebody else's, and no copies: a name is put in the place of another in one step.
  box.must(`chmod 0755 /root && chown nobody ${one} ${other} && mkdir -p "$(dirname ${at})" && ln -f ${one} ${at}`);
  box.runAside(
    `while :; do ln -f ${one} ${at}.1; mv -f ${at}.1 ${at}; ln -f ${other} ${at}.2; mv -f ${at}.2 ${at}; done`,
  );
}

/** Puts `other` in the place of a file once a program of this name runs. */
export function swappingWhen(box: Machine, program: string, other: string, at: string): void {
  const isThere = `grep -qsx ${program} /proc/[0-9]*/comm`;
  box.runAside(`until ${isThere}; do :; done; ln -f ${other} ${at}.1; mv -f ${at}.1 ${at}`);
}

export function sha256Of(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

/** What a user of the machine may put where root expects a file; `@` is its path. */
export const NO_FILES: readonly (readonly [what: string, make: string])[] = [
  ['a FIFO that nobody writes into', 'mkfifo @'],
  ['a FIFO with a writer', 'mkfifo @; (exec >/dev/null 2>&1; sleep 100 > @) &'],
  ['a folder', 'mkdir @'],
  ['a link', 'ln -s /root/good.deb @'],
  ['a link to a device', 'ln -s /dev/zero @'],
  ['a device', 'mknod @ c 1 5'],
  ['a file as large as no package', 'truncate -s 2T @'],
];
