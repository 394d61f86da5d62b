/**
 * `npm run licenses` lists every production dependency with its SPDX licence. It ends with 1 on a licence that is not
 * allowed.
 */
import { argumentsOf } from './arguments.ts';
import { type Component, licenseOf, makeSbom } from './sbom.ts';

/** These licences are permissive: they only require that a copy has the notice. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT', 'MITNFA', 'OFL-1.1'];

/** Licences with further conditions, each with the packages that may have it. */
const ALLOWED_FOR: Readonly<Record<string, RegExp>> = {
  // This is libvips, a shared library beside sharp that users can replace.
  'LGPL-3.0-or-later': /^@img\/sharp-/,
  // This is the LED library inside the addon: optional, only for HUB75 panels, in a Debian package of its own.
  'GPL-2.0-only': /^rpi-led-matrix$/,
  // The package offers two allowed licences, of which we choose MIT.
  '(MIT OR Apache-2.0)': /^qr$/,
};

/** Returns components whose licence is on neither list. A choice ("A OR B") is on neither until somebody adds it. */
export function notAllowed(components: readonly Component[]): Component[] {
  const isAllowed = (license: string, name: string) =>
    ALLOWED.includes(license) || (ALLOWED_FOR[license]?.test(name) ?? false);
  return components.filter(
    (component) =>
      !licenseOf(component)
        .split(' AND ')
        .every((license) => isAllowed(license, component.name)),
  );
}

if (import.meta.main) {
  argumentsOf('usage: npm run licenses, without arguments', {});
  const { components } = await makeSbom();
  for (const component of components) {
    process.stdout.write(`${component.name}@${component.version}  ${licenseOf(component)}\n`);
  }
  const refused = notAllowed(components);
  for (const component of refused) {
    process.stderr.write(
      `${component.name}: ${licenseOf(component)} is not on the list in scripts/licenses.ts; replace the package or list it\n`,
    );
  }
  process.exitCode = refused.length === 0 ? 0 : 1;
}
