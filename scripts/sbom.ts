/** `npm run sbom` makes the software bill of materials of box and gateway, as CycloneDX 1.5 JSON. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import { z } from 'zod';
import { packageName } from '../src/lib/version.ts';
import { argumentsOf } from './arguments.ts';

const ROOT = resolve(import.meta.dirname, '..');
const STDOUT_MAX_BYTES = 16 * 1024 * 1024;
const DEVELOPMENT = 'cdx:npm:package:development';

/**
 * These licences are missing in a package's manifest. rpi-led-matrix compiles Henner Zeller's LED library, whose
 * sources are under GPL version 2 only (its vendor/COPYING).
 */
const UNDECLARED: Readonly<Record<string, string>> = { 'rpi-led-matrix': 'GPL-2.0-only' };

const License = z
  .looseObject({ license: z.looseObject({ id: z.string() }).optional(), expression: z.string().optional() })
  .refine(({ license, expression }) => (license === undefined) !== (expression === undefined));
const Component = z.looseObject({
  name: z.string(),
  version: z.string(),
  purl: z.string(),
  'bom-ref': z.string(),
  licenses: z.tuple([License]),
  properties: z.array(z.object({ name: z.string(), value: z.string() })).default([]),
});
const Dependency = z.object({ ref: z.string(), dependsOn: z.array(z.string()) });
const Sbom = z.looseObject({
  serialNumber: z.string(),
  metadata: z.looseObject({ timestamp: z.string().optional(), component: Component }),
  components: z.array(Component),
  dependencies: z.array(Dependency),
});

/** One component of the bill: a package with version, package URL, hash and licence. */
export type Component = z.infer<typeof Component>;
/** A CycloneDX 1.5 bill of materials. */
export type Sbom = z.infer<typeof Sbom>;

/**
 * Asks npm, offline, for all production dependencies in package-lock.json, on all platforms. The same lockfile and npm
 * give the same bytes: the serial number comes from the content, and the bill has a time only if `sourceDateEpoch`
 * (seconds since 1970, as in SOURCE_DATE_EPOCH) is given.
 * @throws if npm fails, or omits a licence or package URL.
 */
export async function makeSbom(sourceDateEpoch?: string): Promise<Sbom> {
  const format = ['--sbom-format=cyclonedx', '--sbom-type=application'];
  const { stdout } = await promisify(execFile)('npm', ['sbom', ...format, '--package-lock-only', '--loglevel=error'], {
    cwd: ROOT,
    maxBuffer: STDOUT_MAX_BYTES,
  });
  const { serialNumber: _, metadata, ...bom } = Sbom.parse(JSON.parse(stdout));
  const { timestamp: __, ...rest } = metadata;
  // The option --omit=dev of npm drops packages that both production and development need.
  const production = bom.components.filter(({ properties }) => !properties.some(({ name }) => name === DEVELOPMENT));
  const components = onceEach(production, (component) => component['bom-ref']);
  const refs = new Set([rest.component, ...components].map((component) => component['bom-ref']));
  const content = {
    ...bom,
    metadata: {
      ...(sourceDateEpoch === undefined ? {} : { timestamp: new Date(Number(sourceDateEpoch) * 1000).toISOString() }),
      ...rest,
      // Without this, npm uses the name of the folder.
      component: { ...rest.component, name: packageName() },
    },
    components: components.map(withUndeclared),
    dependencies: onceEach(bom.dependencies, ({ ref }) => ref)
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: [...new Set(dependsOn)].filter((on) => refs.has(on)) })),
  };
  return sealed(content);
}

/** Adds the serial number, which comes from the content. */
export function sealed(content: Omit<Sbom, 'serialNumber'>): Sbom {
  return { ...content, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(content))}` } as Sbom;
}

/** Returns the SPDX licence expression of a component. */
export function licenseOf({ licenses: [only] }: Component): string {
  return only.license?.id ?? only.expression ?? '';
}

/** Returns each component once. CycloneDX forbids duplicates, but npm 10 lists a package once per installation. */
function onceEach<T>(list: readonly T[], keyOf: (one: T) => string): T[] {
  return [...new Map(list.map((one) => [keyOf(one), one])).values()];
}

function withUndeclared(component: Component): Component {
  const undeclared = UNDECLARED[component.name];
  if (undeclared === undefined) return component;
  return { ...component, licenses: [{ expression: `${licenseOf(component)} AND ${undeclared}` }] };
}

/** Returns a UUID of version 8, the version for application-defined values (RFC 9562, section 5.8). */
function uuidOf(text: string): string {
  const bytes = createHash('sha256').update(text).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

if (import.meta.main) {
  argumentsOf('usage: npm run sbom, without arguments', {});
  process.stdout.write(`${JSON.stringify(await makeSbom(process.env.SOURCE_DATE_EPOCH), null, 2)}\n`);
}
