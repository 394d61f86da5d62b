import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { KEYRING, POOL, writeRepository } from '../../scripts/apt-repository.ts';
import { changesOf } from '../../scripts/release.ts';
import { buildWheel, pythonVersion } from '../../scripts/wheel.ts';
import { temporaryFolder } from '../support/net.ts';
import { CLI } from '../support/processes.ts';
import { PROGRAMS } from '../support/programs.ts';
import { outputOf } from './oci/output.ts';
import { RELEASE_PROGRAMS, whyNot } from './programs.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const EPOCH_SECONDS = 1_767_225_600;
const KEY = 'release@paybox.invalid';
const note = whyNot(Object.values(RELEASE_PROGRAMS));
const noPython = whyNot([PROGRAMS.python, PROGRAMS.pytest, RELEASE_PROGRAMS.pip]);

/** A folder for apt with one small package for each architecture, signed with a key that only this test has. */
async function signedRepository() {
  const folder = await temporaryFolder();
  const home = join(folder, 'gnupg');
  mkdirSync(home, { mode: 0o700 });
  const before = process.env.GNUPGHOME;
  process.env.GNUPGHOME = home;
  onTestFinished(() => {
    outputOf('gpgconf', ['--kill', 'all']);
    if (before === undefined) delete process.env.GNUPGHOME;
    else process.env.GNUPGHOME = before;
  });
  outputOf('gpg', ['--batch', '--quiet', '--passphrase', '', '--quick-generate-key', KEY, 'ed25519', 'sign', 'never']);
  const apt = join(folder, 'apt');
  mkdirSync(join(apt, POOL), { recursive: true });
  for (const architecture of ['amd64', 'arm64']) {
    const work = join(folder, architecture);
    mkdirSync(join(work, 'DEBIAN'), { recursive: true });
    const control = `Package: paybox-sample\nVersion: 1.0\nArchitecture: ${architecture}\nMaintainer: nobody\nDescription: a sample\n`;
    writeFileSync(join(work, 'DEBIAN/control'), control);
    outputOf('dpkg-deb', [
      '--build',
      '--root-owner-group',
      work,
      join(apt, POOL, `paybox-sample_1.0_${architecture}.deb`),
    ]);
  }
  await writeRepository(apt, { key: KEY, epochSeconds: EPOCH_SECONDS });
  return { folder, apt };
}

/** Options of an apt that knows this folder and nothing else: no network, no state of this machine. */
function aptFor(folder: string, apt: string, architecture: string): string[] {
  const state = join(folder, `state-${architecture}`);
  for (const name of ['lists/partial', 'cache/archives/partial']) mkdirSync(join(state, name), { recursive: true });
  writeFileSync(join(state, 'status'), '');
  writeFileSync(join(state, 'sources.list'), `deb [signed-by=${join(apt, KEYRING)}] file:${apt} stable main\n`);
  const settings = {
    'APT::Architecture': architecture,
    'APT::Architectures': architecture,
    'APT::Sandbox::User': 'root',
    'Dir::State': state,
    'Dir::State::lists': join(state, 'lists'),
    'Dir::State::status': join(state, 'status'),
    'Dir::Cache': join(state, 'cache'),
    'Dir::Etc::sourcelist': join(state, 'sources.list'),
    'Dir::Etc::sourceparts': '-',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

describe.skipIf(note !== '')(`the folder for apt${note}`, () => {
  it.each(['amd64', 'arm64'])('is taken by apt for %s, without a network, by its signature', async (architecture) => {
    const { folder, apt } = await signedRepository();
    const options = aptFor(folder, apt, architecture);
    outputOf('apt-get', [...options, 'update']);
    const planned = outputOf('apt-get', [...options, '--simulate', 'install', 'paybox-sample']);
    expect(planned).toContain(`Inst paybox-sample (1.0 paybox:stable [${architecture}])`);
    expect(outputOf('apt-get', [...options, '--print-uris', 'download', 'paybox-sample'])).toContain(
      `file:${apt}/pool/paybox-sample_1.0_${architecture}.deb`,
    );
  });

  it('is refused by apt when an index, or the release file, is not as it was signed', async () => {
    const { folder, apt } = await signedRepository();
    const signed = join(apt, 'dists/stable/InRelease');
    const text = readFileSync(signed, 'utf8');
    writeFileSync(signed, text.replace('Label: paybox', 'Label: another'));
    expect(() => outputOf('apt-get', [...aptFor(folder, apt, 'amd64'), 'update'])).toThrow(/BADSIG|signature/);
    writeFileSync(signed, text);
    const index = join(apt, 'dists/stable/main/binary-arm64/Packages');
    writeFileSync(index, readFileSync(index, 'utf8').replace('Version: 1.0', 'Version: 9.0'));
    writeFileSync(`${index}.gz`, 'other bytes');
    expect(() => outputOf('apt-get', [...aptFor(folder, apt, 'arm64'), 'update'])).toThrow(/[Hh]ash|size/);
  });
});

describe('a release', () => {
  it('has the changes of its version, and none that nobody wrote down', () => {
    const changelog = readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8');
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
    expect(changesOf(changelog, version)).toMatch(/^# Changes\n\n.*0\.1\.0/);
    expect(() => changesOf(changelog, '99.0.0')).toThrow('CHANGELOG.md: expected 99.0.0');
  });
});

describe('the wheel', () => {
  it('has the version as Python writes it, and the same bytes each time', async () => {
    expect(['1.2.0', '1.2.0-rc.1', '1.2.0-beta.2'].map(pythonVersion)).toEqual(['1.2.0', '1.2.0rc1', '1.2.0b2']);
    const [one, other] = [await temporaryFolder(), await temporaryFolder()];
    const files = [await buildWheel(one), await buildWheel(other)];
    expect(readFileSync(files[0] ?? '').equals(readFileSync(files[1] ?? ''))).toBe(true);
  });

  it.skipIf(noPython !== '')(
    `is installed by pip without a network, and its fixtures drive a box in a folder of their own${noPython}`,
    async () => {
      const folder = await temporaryFolder();
      const wheel = await buildWheel(folder);
      const environment = join(folder, 'venv');
      outputOf('/usr/bin/python3', ['-m', 'venv', '--without-pip', '--system-site-packages', environment]);
      const python = join(environment, 'bin/python');
      outputOf(python, ['-m', 'pip', 'install', '--quiet', '--no-index', '--no-deps', wheel]);
      const tests = join(folder, 'tests');
      mkdirSync(tests);
      const lines = [
        'def test_an_order_is_paid(paybox):',
        '    order = paybox.push(amount=50000, content="DH1")',
        '    paybox.expect(screen="payment", text="50.000 ₫", qr=order["qrCode"])',
        '    payment = paybox.pay(amount=50000, content="DH1")',
        '    paybox.expect(state="paid", callback={"payment": payment["transactionId"]})',
        '',
        'def test_the_next_one_begins_anew(paybox):',
        '    paybox.expect(state="idle")',
      ];
      writeFileSync(join(tests, 'test_shop.py'), `${lines.join('\n')}\n`);
      const told = outputOf(python, ['-m', 'pytest', '-p', 'no:cacheprovider', '-q', tests], { PAYBOX: CLI });
      expect(told).toContain('2 passed');
    },
  );
});
