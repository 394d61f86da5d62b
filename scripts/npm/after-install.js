// This program runs once npm has installed the checkout. The package has no such step. It is plain JavaScript, for any
// Node of a host. npm links the programs of all packages into node_modules/.bin, also the pinned Node. The scripts of
// the checkout would then run on that one instead of the host's, and nobody would see it. They ask for it by
// scripts/run.js instead. Of its package they need only the program: its headers are 67 MB.
import { readdirSync, realpathSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const packages = fileURLToPath(new URL('../../node_modules/', import.meta.url));
const there = (path, read) => {
  try {
    return read(path);
  } catch {
    return undefined;
  }
};

for (const name of there(packages, readdirSync) ?? []) {
  if (!/^node-linux-(arm64|x64)$/.test(name)) continue;
  for (const part of ['include', 'share', 'CHANGELOG.md']) {
    rmSync(`${packages}${name}/${part}`, { recursive: true, force: true });
  }
  const link = `${packages}.bin/node`;
  if (there(link, realpathSync)?.includes(name)) rmSync(link);
}
