import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { installPrograms } from '../support/programs.setup.ts';
import { PROGRAMS } from '../support/programs.ts';
import {
  ADDON_PROGRAMS,
  EMULATOR_PROGRAMS,
  FRAMEBUFFER_PROGRAMS,
  IMAGE_PROGRAMS,
  OCI_PROGRAMS,
  PACKAGE_PROGRAMS,
  RELEASE_PROGRAMS,
} from './programs.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A folder for what is built once for all tests: packages, images and the builder's own Debian. */
    built: string;
  }
}

/** Installs what these tests need. The folder PAYBOX_IMAGE_TEST_DIR, where it is given, is kept. */
export default function setup(project: TestProject): () => void {
  installPrograms([
    ...Object.values(PROGRAMS),
    ...Object.values(IMAGE_PROGRAMS),
    ...Object.values(ADDON_PROGRAMS),
    ...Object.values(PACKAGE_PROGRAMS),
    ...Object.values(EMULATOR_PROGRAMS),
    ...Object.values(FRAMEBUFFER_PROGRAMS),
    ...Object.values(OCI_PROGRAMS),
    ...Object.values(RELEASE_PROGRAMS),
  ]);
  const kept = process.env.PAYBOX_IMAGE_TEST_DIR;
  const built = kept ?? mkdtempSync(join(tmpdir(), 'paybox-image-'));
  if (!existsSync(built)) throw new Error(`PAYBOX_IMAGE_TEST_DIR: no folder ${built}`);
  project.provide('built', built);
  return () => {
    if (kept === undefined) rmSync(built, { recursive: true, force: true });
  };
}
