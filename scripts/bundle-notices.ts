/** This script makes the bill of materials and the licences of a bundle. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { licenseOf, makeSbom, type Sbom, sealed } from './sbom.ts';

const Named = z.object({ name: z.string(), version: z.string() });
const LICENSE_FILE = /^(licen[cs]e|copying|notice)/i;
/** This package has no licence file. Its README lists the libraries in libvips with their licences. */
const LISTED_IN_README = /^@img\/sharp-libvips-/;
const RULE = '='.repeat(80);

/**
 * Returns the bill of materials and the licence texts of the packages in `folders`, which are relative to `stage`.
 * @throws if the bill lacks a package of that name and version.
 */
export async function papersOf(stage: string, folders: readonly string[]): Promise<{ sbom: Sbom; licenses: string }> {
  const whole = await makeSbom();
  const isIn = new Set<string>();
  const texts: string[] = [];
  for (const folder of folders) {
    const { name, version } = Named.parse(JSON.parse(await readFile(join(stage, folder, 'package.json'), 'utf8')));
    if (isIn.has(`${name}@${version}`)) continue;
    isIn.add(`${name}@${version}`);
    const component = whole.components.find((one) => one.name === name && one.version === version);
    if (component === undefined) throw new Error(`${folder}: ${name}@${version} is not in the bill of materials`);
    const head = `${name} ${version}\n${licenseOf(component)}\n`;
    texts.push([RULE, head, ...(await licenseTexts(join(stage, folder), name))].join('\n'));
  }
  return { sbom: only(whole, isIn), licenses: `${texts.join('\n')}\n` };
}

async function licenseTexts(folder: string, name: string): Promise<string[]> {
  const isText = (file: string) => LICENSE_FILE.test(file) || (LISTED_IN_README.test(name) && file === 'README.md');
  const files = (await readdir(folder)).filter(isText).sort();
  return await Promise.all(files.map((file) => readFile(join(folder, file), 'utf8')));
}

function only(bill: Sbom, isIn: ReadonlySet<string>): Sbom {
  const { serialNumber: _, ...content } = bill;
  const components = bill.components.filter(({ name, version }) => isIn.has(`${name}@${version}`));
  const refs = new Set([bill.metadata.component, ...components].map((component) => component['bom-ref']));
  const dependencies = bill.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((on) => refs.has(on)) }));
  return sealed({ ...content, components, dependencies });
}
