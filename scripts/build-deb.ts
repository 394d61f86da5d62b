/** `npm run deb`: builds the Debian packages of agent, gateway and LED panels. */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { LED_MATRIX_PACKAGE } from '../src/device/display/drivers/led-matrix.options.ts';
import { argumentsOf } from './arguments.ts';
import { buildBundle } from './bundle.ts';
import { buildLedMatrix } from './debian/led-matrix.ts';
import { buildPackage, PACKAGES } from './debian/package.ts';
import { type Architecture, isArchitecture, TARGETS_OF_DEBIAN } from './tools.ts';

const PROGRAMS = PACKAGES.map(({ name }) => name);
const NAMES = [...PROGRAMS, LED_MATRIX_PACKAGE];

const USAGE = `usage: npm run deb -- --arch arm64|amd64 --out DIR [--package NAME…] [--bundle DIR] [--quick]

Builds Debian packages with Debian's dpkg-deb, on any machine that has it (apt-get install dpkg), for either architecture,
as DIR/NAME_VERSION_ARCH.deb, and DIR/SHA256SUMS of all packages there. VERSION is that of package.json.

  --package NAME ${NAMES.join(', ')};
                 the first two if left out. The last, for LED panels on the pins of a Raspberry Pi, is compiled: it
                 needs g++, and for arm64 on another machine g++-aarch64-linux-gnu
  --bundle DIR   the program folder that npm run bundle made for this architecture; without it, one is made
  --quick        packed in a second instead of a minute, and half as large again: for tests

Times inside the packages are those of SOURCE_DATE_EPOCH, else of the newest commit: the same sources and the same
program folder or compiler give the same bytes. apt-get install ./paybox-agent_VERSION_ARCH.deb puts one on a device;
scripts/install-on-raspberry-pi-os does so with the checks that a Raspberry Pi needs.
`;

interface Options {
  architecture: Architecture;
  out: string;
  names: readonly string[];
  /** An existing program folder to use. */
  bundle: string | undefined;
  quick: boolean;
}

async function build({ architecture, out, names, bundle, quick }: Options): Promise<void> {
  const progress = (text: string) => process.stderr.write(`… ${text}\n`);
  const work = await mkdtemp(join(tmpdir(), 'paybox-deb-'));
  try {
    const kinds = PACKAGES.filter(({ name }) => names.includes(name));
    const program = bundle ?? join(work, 'program');
    if (bundle === undefined && kinds.length > 0) {
      await buildBundle(TARGETS_OF_DEBIAN[architecture], program, progress);
    }
    await mkdir(out, { recursive: true });
    for (const kind of kinds) {
      progress(`${kind.name} for ${architecture}`);
      const file = await buildPackage({ kind, architecture, program, work: join(work, kind.name), out, quick });
      process.stdout.write(`${file}\n`);
    }
    if (names.includes(LED_MATRIX_PACKAGE)) {
      progress(`${LED_MATRIX_PACKAGE} for ${architecture}`);
      process.stdout.write(`${await buildLedMatrix({ architecture, out, quick })}\n`);
    }
    await writeFile(join(out, 'SHA256SUMS'), await checksums(out));
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Returns the text in the format of `sha256sum`, for every package in the folder. */
async function checksums(folder: string): Promise<string> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.deb')).sort();
  const lines = names.map(async (name) => {
    const sum = createHash('sha256').update(await readFile(join(folder, name)));
    return `${sum.digest('hex')}  ${name}\n`;
  });
  return (await Promise.all(lines)).join('');
}

const { values } = argumentsOf(USAGE, {
  options: {
    arch: { type: 'string' },
    out: { type: 'string' },
    package: { type: 'string', multiple: true, default: PROGRAMS },
    bundle: { type: 'string' },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  process.stdout.write(USAGE);
} else if (
  !isArchitecture(values.arch) ||
  values.out === undefined ||
  !values.package.every((name) => NAMES.includes(name))
) {
  process.stderr.write(USAGE);
  process.exitCode = 2;
} else {
  const bundle = values.bundle === undefined ? undefined : resolve(values.bundle);
  const { arch: architecture, package: names, quick } = values;
  await build({ architecture, out: resolve(values.out), names, bundle, quick });
}
