/**
 * This script makes the file system of a container of the image, in three layers: those that change rarely come first.
 */
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { LAUNCH } from '../bundle.ts';
import { type Sbom, sealed } from '../sbom.ts';
import { type DebianPackage, entriesOf } from './debian.ts';
import type { TarEntry } from './tar.ts';

/** The number of the image's user and group, above those that a host gives to people and services. */
export const USER = 10_001;
/** The folder of all data that must survive. */
export const DATA = '/data';
const HOME = 'usr/lib/paybox';

/**
 * The demo serves the container's own network, keeps its state in /data, and opens no browser. Later options of a caller
 * win. Everything else runs as on any machine.
 */
const LAUNCHER = `#!/bin/sh
home=/${HOME}
case "$1" in
  up) shift; set -- up --host 0.0.0.0 --data ${DATA} --no-open "$@" ;;
esac
${LAUNCH}`;

/** Asks the gateway of this container. PAYBOX_HEALTH_URL names a box or a gateway at another port. */
export const HEALTH_PROGRAM = `/${HOME}/health.js`;
const HEALTH = `const url = process.env.PAYBOX_HEALTH_URL || 'http://127.0.0.1:8800/readyz';
try {
  const { ok, status } = await fetch(url, { signal: AbortSignal.timeout(4000) });
  if (!ok) console.log(url + ' answers ' + status);
  process.exitCode = ok ? 0 : 1;
} catch (error) {
  console.log(url + ' does not answer: ' + (error.cause?.message ?? error.message));
  process.exitCode = 1;
}
`;

const LINKS: readonly (readonly [path: string, target: string])[] = [
  ['bin', 'usr/bin'],
  ['lib', 'usr/lib'],
  ['lib64', 'usr/lib64'],
  ['sbin', 'usr/sbin'],
  ['usr/bin/sh', 'dash'],
];

const FOLDERS: readonly TarEntry[] = [
  ...['dev', 'etc', 'proc', 'run', 'sys', 'usr/bin', 'usr/lib', 'usr/lib64', 'usr/sbin', 'var'].map((path) => ({
    path,
    mode: 0o755,
  })),
  { path: 'tmp', mode: 0o1777 },
  { path: DATA.slice(1), mode: 0o700, owner: USER },
];

const FILES: Readonly<Record<string, string>> = {
  'etc/passwd': `root:x:0:0:root:/:/usr/sbin/nologin\npaybox:x:${USER}:${USER}:paybox:${DATA}:/usr/sbin/nologin\n`,
  'etc/group': `root:x:0:\npaybox:x:${USER}:\n`,
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
};

/** One layer, and a description of its content. */
export interface Layer {
  name: string;
  entries: TarEntry[];
}

/** Returns the layers of an image with these Debian files and the program folder that `scripts/bundle.ts` made. */
export async function layersOf(
  debian: { entries: readonly TarEntry[]; packages: readonly DebianPackage[] },
  program: string,
): Promise<Layer[]> {
  const text = (path: string, content: string, mode = 0o644) => ({ path, mode, content: Buffer.from(content) });
  const links = LINKS.map(([path, target]) => ({ path, mode: 0o777, target }));
  const files = Object.entries(FILES).map(([path, content]) => text(path, content));
  const all = await entriesOf(program, HOME);
  const isRuntime = ({ path }: TarEntry) => path === `${HOME}/node` || path.startsWith(`${HOME}/node_modules/`);
  const own = all.filter((entry) => !isRuntime(entry) && entry.path !== `${HOME}/bin/paybox`);
  const sbom = await readFile(join(program, 'sbom.json'), 'utf8');
  return [
    { name: "Debian's libraries", entries: complete([...FOLDERS, ...links, ...files, ...debian.entries]) },
    { name: 'Node and native parts', entries: complete(all.filter(isRuntime)) },
    {
      name: 'paybox',
      entries: complete([
        ...own.filter(({ path }) => path !== `${HOME}/sbom.json`),
        text(`${HOME}/sbom.json`, withPackages(sbom, debian.packages)),
        text(`${HOME}/bin/paybox`, LAUNCHER, 0o755),
        text(HEALTH_PROGRAM.slice(1), HEALTH),
        text(`${HOME}/package.json`, '{ "type": "module" }\n'),
        { path: 'usr/bin/paybox', mode: 0o777, target: '../lib/paybox/bin/paybox' },
      ]),
    },
  ];
}

/** Returns the bill of materials of the program and of the Debian packages below it. */
export function withPackages(sbom: string, packages: readonly DebianPackage[]): string {
  const { serialNumber: _, components, ...rest } = JSON.parse(sbom) as Sbom;
  const debian = packages.map(({ name, version, architecture }) => {
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
    const licenses = [{ license: { name: `see /usr/share/doc/${name}/copyright` } }];
    return { type: 'library', name, version, 'bom-ref': purl, purl, licenses };
  });
  const whole = { ...rest, components: [...components, ...debian] };
  return `${JSON.stringify(sealed(whole as Parameters<typeof sealed>[0]), null, 2)}\n`;
}

/** Adds the folders above each entry, except those that are links to others. */
function complete(entries: readonly TarEntry[]): TarEntry[] {
  const byPath = new Map(entries.map((entry) => [entry.path, entry]));
  for (const { path } of entries) {
    for (let above = dirname(path); above !== '.'; above = dirname(above)) {
      if (!byPath.has(above)) byPath.set(above, { path: above, mode: 0o755 });
    }
  }
  return [...byPath.values()];
}
