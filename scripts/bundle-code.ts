/** This script makes the code part of a bundle: `src` and its imported packages, as a few plain JavaScript files. */
import { cp, readdir, readFile } from 'node:fs/promises';
import { isBuiltin } from 'node:module';
import { basename, dirname, extname, join, relative } from 'node:path';
import { build, type Plugin } from 'esbuild';

/** These packages are not bundled, because they load native code from their own folder. */
export const NATIVE_PACKAGES = ['sharp', '@serialport/bindings-cpp'];

/** The code finds these files of packages by `#assets/`. Built code has them in a folder beside it. */
export const ASSETS: Readonly<Record<string, readonly string[]>> = {
  '@expo-google-fonts/be-vietnam-pro': [
    '400Regular/BeVietnamPro_400Regular.ttf',
    '600SemiBold/BeVietnamPro_600SemiBold.ttf',
    '700Bold/BeVietnamPro_700Bold.ttf',
  ],
  'swagger-ui-dist': ['swagger-ui.css', 'swagger-ui-bundle.js'],
};

/** Packages try to load these optional modules. A bundle does not contain them. */
const NEVER_THERE = ['pg-native', 'bufferutil', 'utf-8-validate'];

/** The oldest Node that runs the code, as `SUPPORTED_NODE` says. */
export const OLDEST_NODE = 'node22.19';

/** These files are plain JavaScript that is bundled, or are for checkouts only. */
const HOST_PROGRAMS = ['cli.js', 'lib/cache-folder.js', 'lib/node-version.js', 'lib/own-node.js', 'lib/starter.js'];

/** How `src` names a program that it starts in its own process. */
const CHILD_PROGRAM = /new URL\('\.\/([\w.-]+)\.ts', import\.meta\.url\)/g;

/** CommonJS packages load Node's modules with `require`, which an ES module does not have. */
const BANNER =
  "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);";

/**
 * Bundles `<stage>/src`, with the packages in `<stage>/node_modules`, into `lib`: `cli.js`, one file for each program
 * with its own process, shared chunks, and below `src/` the files that the code reads. The code itself is in one
 * folder, so that each chunk knows where those files are. The same sources give the same bytes in any folder.
 * Returns the folders of the bundled packages, relative to `stage`, sorted. `beside` names files of `lib` that stand
 * for packages.
 */
export async function bundleCode(
  stage: string,
  lib: string,
  beside: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const sources = join(stage, 'src');
  const { metafile } = await build({
    absWorkingDir: stage,
    entryPoints: [
      { in: 'scripts/bundle-entry.ts', out: 'cli' },
      ...(await childPrograms(sources)).map((file) => ({ in: relative(stage, file), out: basename(file, '.ts') })),
    ],
    outdir: lib,
    entryNames: '[name]',
    chunkNames: 'chunk-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: OLDEST_NODE,
    external: [...NATIVE_PACKAGES, ...NEVER_THERE],
    banner: { js: BANNER },
    legalComments: 'none',
    // This saves 2.4 MB of memory. Names stay readable for stack traces.
    minifyWhitespace: true,
    minifySyntax: true,
    lineLimit: 200,
    metafile: true,
    logLevel: 'warning',
    plugins: [fromBeside(beside), rebase(stage), lazyPackages(stage)],
  });
  await cp(sources, join(lib, 'src'), {
    recursive: true,
    filter: (file) => !file.endsWith('.ts') && !HOST_PROGRAMS.map((name) => join(sources, name)).includes(file),
  });
  return packagesOf(Object.keys(metafile.inputs));
}

/**
 * Resolves modules from one folder. The code is in it, so the same path leads from each of its files to the files
 * beside it.
 */
function fromBeside(beside: Readonly<Record<string, string>>): Plugin {
  return {
    name: 'beside',
    setup({ onResolve }) {
      for (const [name, file] of Object.entries(beside)) {
        onResolve({ filter: new RegExp(`^${name}$`) }, () => ({ path: `./${file}`, external: true }));
      }
    },
  };
}

async function childPrograms(sources: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir(sources, { recursive: true })) {
    if (extname(name) !== '.ts') continue;
    const file = join(sources, name);
    for (const [, child] of (await readFile(file, 'utf8')).matchAll(CHILD_PROGRAM)) {
      found.push(join(dirname(file), `${child}.ts`));
    }
  }
  return found.sort();
}

/** Rewrites paths, so that a source in a chunk finds its files as if it were in its place in `src`. */
function rebase(stage: string): Plugin {
  return {
    name: 'rebase',
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]src[\\/].*\.ts$/ }, async ({ path }) => {
        const from = relative(stage, path).replaceAll('\\', '/');
        if (!from.startsWith('src/')) return undefined;
        const text = await readFile(path, 'utf8');
        if (/import\.meta\.(dirname|filename)/.test(text)) {
          throw new Error(`${from}: use new URL(…, import.meta.url), which a bundle can follow`);
        }
        const contents = text
          .split(CHILD_PROGRAM)
          .map((part, index) =>
            index % 2 === 1
              ? `new URL('./${part}.js', import.meta.url)`
              : part.replaceAll('import.meta.url', `new URL('./${from}', import.meta.url).href`),
          )
          .join('')
          // In a checkout `imports` of package.json names their place.
          .replaceAll('#assets/', './assets/')
          // The bundler keeps all of zod with the first form. With the second it keeps what is used, a quarter.
          .replace("import { z } from 'zod';", "import * as z from 'zod';");
        return { contents, loader: 'ts' };
      });
    },
  };
}

/**
 * Exports the names of a package that is imported at run time, as Node would. The bundler does not know those of
 * CommonJS, so the script reads them from the same version, installed beside it.
 */
function lazyPackages(stage: string): Plugin {
  return {
    name: 'lazy-packages',
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^[@\w]/ }, ({ kind, path }) =>
        kind === 'dynamic-import' && !isBuiltin(path) ? { path, namespace: 'lazy' } : undefined,
      );
      onLoad({ filter: /./, namespace: 'lazy' }, async ({ path }) => {
        const names = Object.keys((await import(path)) as object).filter((name) => /^[\w$]+$/.test(name));
        return { contents: `export { ${names.join(', ')} } from '${path}';`, resolveDir: stage };
      });
    },
  };
}

/** Returns the folders of the packages with these files, sorted. */
export function packagesOf(inputs: readonly string[]): string[] {
  const folders = inputs.map((input) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0]);
  return [...new Set(folders.filter((folder) => folder !== undefined))].sort();
}
