/**
 * Runs once npm has installed the package. npm links the programs of all packages into `node_modules/.bin`, also the Node
 * that comes along for paybox, and then the scripts of the whole project would run on that one instead of on the
 * project's own. So the link is replaced by a script that calls the project's own, unless the project asks for this Node
 * itself. It is not removed: npm would install the package again whenever its program is missing. Nothing of paybox
 * depends on this step.
 */
import { readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** The package lies two folders deep in `node_modules`: the scope of its name, and the rest of it. */
const packages = resolve(__dirname, '../../..');
const name = `node-${process.platform}-${process.arch}`;

/** The next Node of the PATH, but for those in the folders of projects; else the one that came along. */
const SCRIPT = `#!/bin/sh
# Made by paybox: runs your own Node, not the one that npm installed for paybox.
IFS=:
for folder in $PATH; do
  if ! [ -f "$folder/node" ] || ! [ -x "$folder/node" ]; then continue; fi
  case "$(CDPATH= cd -- "$folder" && pwd -P)" in */node_modules/.bin) continue ;; esac
  exec "$folder/node" "$@"
done
exec "$(dirname -- "$0")/../${name}/bin/node" "$@"
`;

try {
  const link = join(packages, '.bin/node');
  const isAskedFor = readFileSync(join(packages, '../package.json'), 'utf8').includes(name);
  if (!isAskedFor && readlinkSync(link).includes(name)) {
    rmSync(link);
    writeFileSync(link, SCRIPT, { mode: 0o755 });
  }
} catch {
  // There is no such link, or no project that it could get in the way of.
}
