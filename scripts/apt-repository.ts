/**
 * This script makes a folder that apt reads as a source of packages: indexes of the packages in its pool, signed with a
 * key of GnuPG.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { runTool } from './tools.ts';

const SUITE = 'stable';
const COMPONENT = 'main';
const ARCHITECTURES = ['amd64', 'arm64'];
/** The places in the folder: the packages, and the public key for `Signed-By`. */
export const POOL = 'pool';
export const KEYRING = 'paybox-archive-keyring.asc';

export interface RepositoryOptions {
  /** A key of the caller's GnuPG, by fingerprint or address. Without one the script does not sign the indexes. */
  key?: string | undefined;
  /** Seconds since 1970, for the date of the indexes. */
  epochSeconds: number;
}

/**
 * Writes the indexes of `folder`, whose packages are in `pool`, in place of older ones. With a key it signs them, and
 * checks the signature by the exported key.
 * @throws if Debian's dpkg-deb or GnuPG is missing or fails.
 */
export async function writeRepository(folder: string, { key, epochSeconds }: RepositoryOptions): Promise<void> {
  const dist = join(folder, 'dists', SUITE);
  await rm(dist, { recursive: true, force: true });
  const stanzas = await stanzasOf(folder);
  const indexes = new Map<string, Buffer>();
  for (const architecture of ARCHITECTURES) {
    const own = stanzas.filter((one) => [architecture, 'all'].includes(one.architecture)).map(({ text }) => text);
    const content = Buffer.from(own.join('\n'));
    const name = ofArchitecture(architecture);
    indexes.set(name, content);
    indexes.set(`${name}.gz`, gzipSync(content, { level: 9 }));
  }
  for (const [name, content] of indexes) {
    await mkdir(dirname(join(dist, name)), { recursive: true });
    await writeFile(join(dist, name), content);
  }
  const release = join(dist, 'Release');
  await writeFile(release, releaseOf(indexes, epochSeconds));
  await rm(join(folder, KEYRING), { force: true });
  if (key !== undefined) sign(folder, release, key);
}

/** Returns the index of an architecture's packages, relative to the folder. */
export function indexOf(architecture: string): string {
  return join('dists', SUITE, ofArchitecture(architecture));
}

function ofArchitecture(architecture: string): string {
  return `${COMPONENT}/binary-${architecture}/Packages`;
}

interface Stanza {
  architecture: string;
  text: string;
}

/** Returns the control data of each package in the pool, with its place, size and hash. */
async function stanzasOf(folder: string): Promise<Stanza[]> {
  const files = (await readdir(join(folder, POOL))).filter((name) => name.endsWith('.deb')).sort();
  const made = files.map(async (name) => {
    const file = join(folder, POOL, name);
    const content = await readFile(file);
    const place = `Filename: ${POOL}/${name}\nSize: ${content.length}\nSHA256: ${sha256(content)}\n`;
    const text = `${runTool('dpkg-deb', ['--field', file])}\n${place}`;
    return { architecture: runTool('dpkg-deb', ['--field', file, 'Architecture']), text };
  });
  return await Promise.all(made);
}

function releaseOf(indexes: ReadonlyMap<string, Buffer>, epochSeconds: number): string {
  const sums = [...indexes].map(([name, content]) => ` ${sha256(content)} ${content.length} ${name}`);
  const lines = [
    'Origin: paybox',
    'Label: paybox',
    `Suite: ${SUITE}`,
    `Codename: ${SUITE}`,
    `Date: ${new Date(epochSeconds * 1000).toUTCString().replace('GMT', 'UTC')}`,
    `Architectures: ${ARCHITECTURES.join(' ')}`,
    `Components: ${COMPONENT}`,
    'SHA256:',
    ...sums,
  ];
  return `${lines.join('\n')}\n`;
}

function sign(folder: string, release: string, key: string): void {
  const [keyring, signed] = [join(folder, KEYRING), join(dirname(release), 'InRelease')];
  const gpg = ['--batch', '--yes', '--armor'];
  runTool('gpg', [...gpg, '--output', keyring, '--export', key]);
  runTool('gpg', [...gpg, '--local-user', key, '--digest-algo', 'SHA512', '--output', signed, '--clearsign', release]);
  runTool('gpg', [
    ...gpg,
    ...['--local-user', key, '--digest-algo', 'SHA512', '--output', `${release}.gpg`, '--detach-sign', release],
  ]);
  const binary = `${keyring}.checked`;
  runTool('gpg', ['--batch', '--yes', '--output', binary, '--dearmor', keyring]);
  runTool('gpgv', ['--quiet', '--keyring', binary, signed]);
  runTool('gpgv', ['--quiet', '--keyring', binary, `${release}.gpg`, release]);
  runTool('rm', [binary]);
}

function sha256(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
