/** `npm run licenses`: every production dependency with its SPDX licence; ends with 1 on one that is not allowed. */
import { argumentsOf } from './arguments.ts';
import { type Component, licenseOf, makeSbom } from './sbom.ts';

/** Permissive licences: they only require that the notice is kept. */
const ALLOWED = ['0BSD', 'Apache-2.0', 'BSD-3-Clause', 'ISC', 'MIT', 'MITNFA', 'OFL-1.1'];

/** Licences with further conditions, each with the packages that it is accepted for. */
const ALLOWED_FOR: Readonly<Record<string, RegExp>> = {
  // libvips, a shared library beside sharp that users can replace.
  'LGPL-3.0-or-later': /^@img\/sharp-/,
  // The LED library inside the addon: optional, only for HUB75 panels, in a Debian package of its own.
  'GPL-2.0-only': /^rpi-led-matrix$/,
  // A choice of two allowed licences; MIT is taken.
  '(MIT OR Apache-2.0)': /^qr$/,
};

/** Components whose licence is on neither list. A choice ("A OR B") is on neither until it is added. */
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
