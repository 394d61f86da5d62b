/** `npm run oci` makes a container image as an OCI archive, without a container engine and without root. */
import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { argumentsOf } from './arguments.ts';
import { buildBundle } from './bundle.ts';
import { writeArchive } from './oci/archive.ts';
import { fetchPackages, unpackPackages } from './oci/debian.ts';
import { layersOf } from './oci/root.ts';
import { type Architecture, isArchitecture, sourceDateEpoch, TARGETS_OF_DEBIAN } from './tools.ts';

const ROOT = resolve(import.meta.dirname, '..');
const MB = 1_000_000;

const USAGE = `usage: npm run oci -- --arch arm64|amd64 --out F.tar [--bundle DIR] [--packages DIR]

Makes a container image as an OCI archive: Debian's libraries as the apt of this machine offers them, and the program
folder. Needs Debian's apt-get and dpkg-deb, and neither root nor a container engine, for either architecture.

  --bundle DIR     the program folder that npm run bundle made for this architecture; without it, one is made
  --packages DIR   keeps Debian's packages there; those that are there are taken, without a network

Load it by "docker load --input F.tar", "podman load --input F.tar", or copy it to a registry by
"skopeo copy oci-archive:F.tar docker://…". Times inside are those of SOURCE_DATE_EPOCH, else of the newest commit: the
same sources, program folder and packages give the same bytes.
`;

/** The parts of an image that exist already, and its place. */
export interface OciOptions {
  architecture: Architecture;
  /** The file that the script makes. */
  out: string;
  /** An existing program folder. */
  bundle?: string | undefined;
  /** A folder for Debian's packages. */
  packages?: string | undefined;
}

/**
 * Makes the archive `out`, which appears only when complete, and returns the digest of its manifest.
 * @throws if a tool is missing or fails.
 */
export async function buildOci(options: OciOptions, progress: (text: string) => void): Promise<string> {
  const { architecture, out } = options;
  const work = await mkdtemp(join(tmpdir(), 'paybox-oci-'));
  const partial = `${out}.partial`;
  try {
    const program = options.bundle ?? join(work, 'program');
    if (options.bundle === undefined) await buildBundle(TARGETS_OF_DEBIAN[architecture], program, progress);
    progress(`Debian's libraries for ${architecture}`);
    const files = await fetchPackages(architecture, options.packages ?? join(work, 'packages'));
    await mkdir(join(work, 'unpacked'));
    const debian = await unpackPackages(files, join(work, 'unpacked'));
    const strangers = debian.packages.filter((one) => ![architecture, 'all'].includes(one.architecture));
    if (strangers.length > 0) throw new Error(`${strangers[0]?.name} is for ${strangers[0]?.architecture}`);
    progress('layers');
    const version = (await readFile(join(program, 'VERSION'), 'utf8')).trim();
    const image = { architecture, version, revision: revision(), epochSeconds: sourceDateEpoch() };
    await mkdir(dirname(out), { recursive: true });
    const digest = await writeArchive(partial, await layersOf(debian, program), image);
    await rename(partial, out);
    return digest;
  } finally {
    await rm(work, { recursive: true, force: true });
    await rm(partial, { force: true });
  }
}

/** Returns the commit of the checkout; undefined for sources without Git. */
function revision(): string | undefined {
  const { status, stdout } = spawnSync('git', ['-C', ROOT, 'rev-parse', 'HEAD'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim() : undefined;
}

if (import.meta.main) {
  const { values } = argumentsOf(USAGE, {
    options: {
      arch: { type: 'string' },
      out: { type: 'string' },
      bundle: { type: 'string' },
      packages: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
  } else if (!isArchitecture(values.arch) || values.out === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
  } else {
    const out = resolve(values.out);
    const bundle = values.bundle === undefined ? undefined : resolve(values.bundle);
    const packages = values.packages === undefined ? undefined : resolve(values.packages);
    const options = { architecture: values.arch, out, bundle, packages };
    const digest = await buildOci(options, (text) => process.stderr.write(`… ${text}\n`));
    const { size } = await stat(out);
    process.stdout.write(`${out}  ${(size / MB).toFixed(1)} MB  ${digest}\n`);
  }
}
