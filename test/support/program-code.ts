import { chmod, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../..');
/** The program of the checkout. */
export const SOURCE_CLI = join(ROOT, 'src/cli.js');
/** Below the project, where the code finds the packages with native parts. */
const CACHE = join(ROOT, 'node_modules/.cache/paybox-tests');

/** What a shell starts as `paybox`: of the code that this run made, else of the checkout. */
export const cli = (): string => of('paybox');

/** What Node starts as `paybox`. */
export const cliScript = (): string => of('lib/cli.js');

function of(file: string): string {
  const made = process.env.PAYBOX_TEST_CODE;
  return made === undefined ? SOURCE_CLI : join(made, file);
}

/**
 * Makes the code that a bundle has, for the programs of a test run: a program starts from it for less than half the
 * processor time of the sources. Returns the folder; `end` deletes it.
 */
export async function makeProgramCode(): Promise<{ folder: string; end: () => Promise<void> }> {
  await mkdir(CACHE, { recursive: true });
  const folder = await mkdtemp(join(CACHE, 'code-'));
  // Some tests start programs as another user.
  await chmod(folder, 0o755);
  const lib = join(folder, 'lib');
  const { bundleCode } = await import('../../scripts/bundle-code.ts');
  const { keepAssets } = await import('../../scripts/bundle-packages.ts');
  await bundleCode(ROOT, lib);
  await keepAssets(ROOT, lib);
  const { name, version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Record<string, string>;
  await writeFile(join(lib, 'package.json'), JSON.stringify({ name, version, type: 'module' }));
  await mkdir(join(lib, 'test'));
  await symlink(join(ROOT, 'test/scenarios'), join(lib, 'test/scenarios'));
  await symlink(join(ROOT, 'device-config'), join(folder, 'device-config'));
  const launcher = `#!/bin/sh\nexec ${process.execPath} --max-semi-space-size=2 ${join(lib, 'cli.js')} "$@"\n`;
  await writeFile(join(folder, 'paybox'), launcher, { mode: 0o755 });
  return { folder, end: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }) };
}
