/**
 * Runs once npm has installed the package. npm links the program of every package into `node_modules/.bin`, also the
 * Node that comes along for paybox, and then the scripts of the whole project would run on that one instead of on the
 * project's own. So the link is removed, unless the project asks for that Node itself. Nothing depends on this step.
 */
import { readFileSync, readlinkSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';

const OWN_NODE = /[\\/](node-linux-(?:x64|arm64))[\\/]bin[\\/]node$/;

try {
  const packages = resolve(__dirname, '../..');
  const link = join(packages, '.bin/node');
  const name = OWN_NODE.exec(readlinkSync(link))?.[1];
  if (name !== undefined && !readFileSync(join(packages, '../package.json'), 'utf8').includes(name)) rmSync(link);
} catch {
  // There is no link, or no project: nothing is in anybody's way.
}
