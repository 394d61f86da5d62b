/** `npm run release` makes and checks everything that we hand out, of one version. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { LED_MATRIX_PACKAGE } from '../src/device/display/drivers/led-matrix.options.ts';
import { reasonOf } from '../src/lib/errors.ts';
import { indexOf, POOL, writeRepository } from './apt-repository.ts';
import { argumentsOf } from './arguments.ts';
import { buildBundle } from './bundle.ts';
import { debianVersion } from './debian/deb.ts';
import { PACKAGES } from './debian/package.ts';
import { buildOci } from './oci.ts';
import { makePackage } from './package.ts';
import { makeSbom } from './sbom.ts';
import { type Architecture, runTool, sourceDateEpoch, TARGETS_OF_DEBIAN } from './tools.ts';
import { buildWheel, pythonVersion, WHEEL } from './wheel.ts';

const ROOT = resolve(import.meta.dirname, '..');
const ARCHITECTURES: readonly Architecture[] = ['amd64', 'arm64'];
const DEBS = [...PACKAGES.map(({ name }) => name), LED_MATRIX_PACKAGE];
const OCI_BYTES_MAX = 90_000_000;
const MB = 1_000_000;

const USAGE = `usage: npm run release -- --out DIR [--key KEY] [--with-image] [--quick]

Makes everything that is handed out, in an empty folder, and checks it. The version is that of package.json.

  DIR/paybox-VERSION.tgz                  for npm
  DIR/paybox_vn-VERSION-py3-none-any.whl  for pip
  DIR/paybox-VERSION-ARCH.oci.tar         container images, for amd64 and arm64
  DIR/apt                                 a folder that apt takes as a source, with the Debian packages in ${POOL}
  DIR/image                               with --with-image: the image for a box's card (needs root, takes minutes)
  DIR/paybox-VERSION.sbom.json, DIR/CHANGELOG.md, DIR/SHA256SUMS

  --key KEY    a key of GnuPG, by fingerprint or address: signs the indexes of apt, and SHA256SUMS
  --quick      Debian packages packed in seconds instead of minutes, and half as large again: for tries

Needs Debian's apt-get and dpkg-deb, for LED panels g++ and g++-aarch64-linux-gnu, for a key gpg and gpgv. All times are
those of SOURCE_DATE_EPOCH, else of the newest commit.
`;

interface Options {
  out: string;
  key: string | undefined;
  withImage: boolean;
  quick: boolean;
}

async function release({ out, key, withImage, quick }: Options): Promise<void> {
  const progress = (text: string) => process.stderr.write(`… ${text}\n`);
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  await mkdir(out, { recursive: true });
  if ((await readdir(out)).length > 0) throw new Error(`${out} is not empty; name another folder`);
  // Quick checks come first, so that a mistake does not appear after minutes. The script writes nothing before the key
  // has signed.
  if (key !== undefined)
    runTool('gpg', [
      '--batch',
      '--yes',
      '--local-user',
      key,
      '--output',
      '/dev/null',
      '--detach-sign',
      join(ROOT, 'package.json'),
    ]);
  if (existsSync(join(ROOT, '.git')) && runTool('git', ['-C', ROOT, 'status', '--porcelain']) !== '')
    progress('WARNING: the tree has changes that no commit has; what is made names the commit all the same');
  await writeFile(join(out, 'CHANGELOG.md'), changesOf(await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8'), version));
  await writeFile(
    join(out, `paybox-${version}.sbom.json`),
    `${JSON.stringify(await makeSbom(String(sourceDateEpoch())), null, 2)}\n`,
  );
  await buildWheel(out);
  await makePackage(out, progress);
  const pool = join(out, 'apt', POOL);
  await mkdir(pool, { recursive: true });
  const work = await mkdtemp(join(tmpdir(), 'paybox-release-'));
  try {
    for (const architecture of ARCHITECTURES) {
      const bundle = join(work, architecture);
      await buildBundle(TARGETS_OF_DEBIAN[architecture], bundle, progress);
      progress(`Debian packages for ${architecture}`);
      const options = ['--arch', architecture, '--out', pool, '--bundle', bundle, ...(quick ? ['--quick'] : [])];
      options.push(...DEBS.flatMap((name) => ['--package', name]));
      runTool(process.execPath, [join(ROOT, 'scripts/build-deb.ts'), ...options]);
      await buildOci({ architecture, bundle, out: join(out, ociName(version, architecture)) }, progress);
    }
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  // The list of the whole folder has these sums.
  await rm(join(pool, 'SHA256SUMS'), { force: true });
  await writeRepository(join(out, 'apt'), { key, epochSeconds: sourceDateEpoch() });
  if (withImage) {
    progress('the image for a card');
    const deb = join(pool, `paybox-agent_${debianVersion(version)}_arm64.deb`);
    runTool(join(ROOT, 'scripts/build-image'), ['--out', join(out, 'image'), '--deb', deb]);
  }
  progress('checks');
  await check(out, version);
  await writeSums(out, key);
}

/**
 * Returns CHANGELOG.md.
 * @throws if it does not name the version, because nobody would know what a release brings.
 */
export function changesOf(changelog: string, version: string): string {
  if (!changelog.includes(version)) throw new Error(`CHANGELOG.md: expected ${version}`);
  return changelog;
}

function ociName(version: string, architecture: Architecture): string {
  return `paybox-${version}-${architecture}.oci.tar`;
}

/** Checks that everything is there that we hand out, of this version, and no larger than allowed. Throws if not. */
async function check(out: string, version: string): Promise<void> {
  const debs = (await readdir(join(out, 'apt', POOL))).sort();
  for (const architecture of ARCHITECTURES) {
    const { size } = await stat(join(out, ociName(version, architecture)));
    if (size > OCI_BYTES_MAX) throw new Error(`${ociName(version, architecture)} has ${size} bytes`);
    const index = await readFile(join(out, 'apt', indexOf(architecture)), 'utf8');
    for (const kind of DEBS) {
      const name = `${kind}_${debianVersion(version)}_${architecture}.deb`;
      if (!debs.includes(name)) throw new Error(`${name} is missing`);
      if (!index.includes(`Filename: ${POOL}/${name}\n`)) throw new Error(`${name} is not in the index of apt`);
    }
  }
  for (const name of debs) {
    const told = runTool('dpkg-deb', ['--field', join(out, 'apt', POOL, name), 'Version']);
    if (told !== debianVersion(version)) throw new Error(`${name} says that it is ${told}`);
  }
  for (const name of [`paybox-${version}.tgz`, `${WHEEL}-${pythonVersion(version)}-py3-none-any.whl`]) {
    if (!(await stat(join(out, name))).isFile()) throw new Error(`${name} is missing`);
  }
}

/** Writes SHA256SUMS of every file, and has the system's own program read it. */
async function writeSums(out: string, key: string | undefined): Promise<void> {
  const entries = await readdir(out, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const lines: string[] = [];
  for (const file of files.sort()) {
    const content = await readFile(file);
    const name = relative(out, file);
    lines.push(`${createHash('sha256').update(content).digest('hex')}  ${name}\n`);
    process.stdout.write(`${(content.length / MB).toFixed(2).padStart(8)} MB  ${name}\n`);
  }
  const sums = join(out, 'SHA256SUMS');
  await writeFile(`${sums}.partial`, lines.join(''));
  runTool('sh', ['-c', 'cd "$0" && sha256sum --check --strict --quiet SHA256SUMS.partial', out]);
  await rename(`${sums}.partial`, sums);
  if (key !== undefined) {
    runTool('gpg', ['--batch', '--armor', '--local-user', key, '--output', `${sums}.asc`, '--detach-sign', sums]);
  }
}

if (import.meta.main) {
  const { values } = argumentsOf(USAGE, {
    options: {
      out: { type: 'string' },
      key: { type: 'string' },
      'with-image': { type: 'boolean', default: false },
      quick: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(USAGE);
  } else if (values.out === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
  } else {
    const { key, quick } = values;
    await release({ out: resolve(values.out), key, withImage: values['with-image'], quick }).catch((error: unknown) => {
      process.stderr.write(`release: ${reasonOf(error)}\n`);
      process.exitCode = 1;
    });
  }
}
