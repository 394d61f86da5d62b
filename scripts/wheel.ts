/** `npm run wheel` makes the Python client and the fixtures of pytest as a wheel, without Python's packaging tools. */
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { argumentsOf } from './arguments.ts';
import { sourceDateEpoch } from './tools.ts';

const ROOT = resolve(import.meta.dirname, '..');
const SOURCES = join(ROOT, 'test/scenarios/drive');
/** The name on PyPI, as file names have it. `paybox` belongs to somebody else there. */
export const WHEEL = 'paybox_vn';
const CLASSIFIERS = [
  'Framework :: Pytest',
  'Intended Audience :: Developers',
  'License :: OSI Approved :: MIT License',
  'Operating System :: POSIX :: Linux',
  'Programming Language :: Python :: 3',
  'Topic :: Office/Business :: Financial :: Point-Of-Sale',
  'Topic :: Software Development :: Testing :: Mocking',
];
const MODULES = ['paybox_bench.py', 'paybox_pytest.py'];
/** Properties of the file format: version 2.0, deflated, names in UTF-8, made on Unix. */
const ZIP = { version: 20, deflated: 8, utf8: 0x800, madeOnUnix: (3 << 8) | 20 };
/** The attributes of a regular file that everybody may read, in the upper half. */
const ATTRIBUTES = (0o100_644 << 16) >>> 0;

const USAGE = `usage: npm run wheel -- --out DIR

Makes DIR/paybox_vn-VERSION-py3-none-any.whl: the client of paybox bench serve (paybox_bench) and the fixtures of pytest
(bench, rig, paybox), for Python 3.9 or newer, without other packages. pip install ./paybox_vn-VERSION-py3-none-any.whl
puts them where pytest finds them. The program itself comes by npm: PAYBOX says how it is called (default: npx --no -- paybox).
VERSION is that of package.json; the same sources give the same bytes.
`;

/** The fields of package.json that the wheel repeats. */
interface NpmManifest {
  name: string;
  version: string;
  keywords: string[];
  homepage: string;
  bugs: string;
  repository: { url: string };
  license: string;
}

/**
 * Makes the wheel in the folder `out` and returns its path.
 * @throws the system's error.
 */
export async function buildWheel(out: string): Promise<string> {
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as NpmManifest;
  const version = pythonVersion(manifest.version);
  const info = `${WHEEL}-${version}.dist-info`;
  const files = new Map<string, Buffer>();
  for (const name of MODULES) files.set(name, await readFile(join(SOURCES, name)));
  const text = (name: string, ...lines: string[]) => files.set(`${info}/${name}`, Buffer.from(`${lines.join('\n')}\n`));
  text('METADATA', ...metadata(version, manifest));
  text('WHEEL', 'Wheel-Version: 1.0', 'Generator: paybox', 'Root-Is-Purelib: true', 'Tag: py3-none-any');
  // The name is that of the module, so that pytest loads it once, even if a conftest.py names it.
  text('entry_points.txt', '[pytest11]', 'paybox_pytest = paybox_pytest');
  files.set(`${info}/LICENSE`, await readFile(join(ROOT, 'LICENSE')));
  const record = [...files].map(([name, content]) => `${name},sha256=${hash(content)},${content.length}`);
  text('RECORD', ...record, `${info}/RECORD,,`);
  const file = join(out, `${WHEEL}-${version}-py3-none-any.whl`);
  await mkdir(out, { recursive: true });
  await writeFile(file, zip(files, sourceDateEpoch()));
  return file;
}

/** Returns a prerelease as Python writes it (PEP 440): 1.2.0-rc.1 → 1.2.0rc1. */
export function pythonVersion(version: string): string {
  return version.replace(/-(alpha|beta|rc)\.?(\d+)$/, (_, word: string, number: string) => {
    return `${{ alpha: 'a', beta: 'b' }[word] ?? word}${number}`;
  });
}

function metadata(version: string, { name, keywords, homepage, bugs, repository, license }: NpmManifest): string[] {
  const install = `npm install --save-dev ${name}`;
  return [
    'Metadata-Version: 2.1',
    'Name: paybox-vn',
    `Version: ${version}`,
    `Summary: Fixtures of pytest and a client for paybox, a payment QR service with emulated boxes. They need the program: ${install}`,
    `Keywords: ${keywords.join(',')}`,
    `Home-page: ${homepage}`,
    `Project-URL: Source, ${repository.url.replace(/^git\+/, '')}`,
    `Project-URL: Issues, ${bugs}`,
    `License: ${license}`,
    'License-File: LICENSE',
    'Requires-Python: >=3.9',
    `Requires-External: ${name} (${version})`,
    ...CLASSIFIERS.map((classifier) => `Classifier: ${classifier}`),
    'Description-Content-Type: text/markdown',
    '',
    ...description(install),
  ];
}

function description(install: string): string[] {
  return [
    'A payment QR service with emulated payment boxes in tests of pytest: the fixtures `paybox` and `bench`, and the client `paybox_bench`.',
    '',
    '    def test_an_order_is_paid(paybox):',
    '        order = paybox.push(amount=50000, content="DH1")',
    '        paybox.expect(screen="payment", qr=order["qrCode"])',
    '        paybox.pay(amount=50000, content="DH1")',
    '        paybox.expect(state="paid", callback="delivered")',
    '',
    'This package does not contain the program, which runs on Node and comes by npm, into the folder of your tests:',
    '',
    `    ${install}`,
    '',
    'The environment variable PAYBOX says how another one is called (default: `npx --no -- paybox`).',
  ];
}

function hash(content: Uint8Array): string {
  return createHash('sha256').update(content).digest('base64url');
}

/** Returns a zip archive of these files, all with one time: seconds since 1970, from 1980 on. */
function zip(files: ReadonlyMap<string, Uint8Array>, epochSeconds: number): Uint8Array {
  const [bodies, directory]: [Buffer[], Buffer[]] = [[], []];
  let at = 0;
  for (const [name, content] of files) {
    const packed = deflateRawSync(content, { level: 9 });
    const common = Buffer.alloc(26);
    const { time, date } = dosTime(epochSeconds);
    [ZIP.version, ZIP.utf8, ZIP.deflated, time, date].forEach((word, index) => {
      common.writeUInt16LE(word, index * 2);
    });
    [crc32(content), packed.length, content.length].forEach((word, index) => {
      common.writeUInt32LE(word, 10 + index * 4);
    });
    common.writeUInt16LE(Buffer.byteLength(name), 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, Buffer.from(name), packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(ATTRIBUTES, 6);
    rest.writeUInt32LE(at, 10);
    const maker = Buffer.alloc(2);
    maker.writeUInt16LE(ZIP.madeOnUnix);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02'), maker, common, rest, Buffer.from(name)]));
    bodies.push(local);
    at += local.length;
  }
  const listed = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(files.size, 8);
  end.writeUInt16LE(files.size, 10);
  end.writeUInt32LE(listed.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...bodies, listed, end]);
}

function dosTime(epochSeconds: number): { time: number; date: number } {
  const at = new Date(epochSeconds * 1000);
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1);
  const date = ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate();
  return { time, date };
}

if (import.meta.main) {
  const { values } = argumentsOf(USAGE, {
    options: { out: { type: 'string' }, help: { type: 'boolean', default: false } },
  });
  if (values.help) {
    process.stdout.write(USAGE);
  } else if (values.out === undefined) {
    process.stderr.write(USAGE);
    process.exitCode = 2;
  } else {
    process.stdout.write(`${await buildWheel(resolve(values.out))}\n`);
  }
}
