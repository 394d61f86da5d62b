import { createRequire } from 'node:module';

/** Where the addon for LED panels is; undefined where it could not be compiled. */
export function installedAddon(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve('rpi-led-matrix');
  } catch {
    return undefined;
  }
}
