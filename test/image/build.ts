import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const PROJECT = resolve(import.meta.dirname, '../..');

/** Packages and images, made by the commands that people make them with, each once; all of it under `folder`. */
export class Builds {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** The agent's package of this version of package.json, as small as it is released. */
  release(): string {
    return this.#package(projectVersion(), this.#program(), []);
  }

  /** The package with the addon for LED panels, compiled for the box. */
  ledMatrix(): string {
    const out = join(this.#folder, 'led-matrix');
    const file = join(out, `paybox-led-matrix_${projectVersion()}_arm64.deb`);
    if (!existsSync(file)) {
      const options = ['--arch', 'arm64', '--out', out, '--package', 'paybox-led-matrix', '--quick'];
      runVisibly(process.execPath, join(PROJECT, 'scripts/build-deb.ts'), ...options);
    }
    return file;
  }

  /** A package of the same program by another version's name; `broken` never runs. */
  update(version: string, { broken = false } = {}): string {
    const changed = join(this.#folder, `program-${version}`);
    if (!existsSync(changed)) {
      cpSync(this.#program(), changed, { recursive: true });
      writeFileSync(join(changed, 'VERSION'), `${version}\n`);
      const manifest = join(changed, 'lib/package.json');
      const told = JSON.parse(readFileSync(manifest, 'utf8')) as object;
      writeFileSync(manifest, JSON.stringify({ ...told, version }));
      if (broken) {
        writeFileSync(join(changed, 'bin/paybox'), '#!/bin/sh\nexit 1\n');
        chmodSync(join(changed, 'bin/paybox'), 0o755);
      }
    }
    return this.#package(version, changed, ['--quick']);
  }

  /** The folder of an image with the released package; `name` tells one build from another. */
  image(name: string, ...options: string[]): { folder: string; image: string } {
    const folder = join(this.#folder, name);
    const image = join(folder, `paybox-${projectVersion()}-arm64`);
    if (!existsSync(join(folder, 'SHA256SUMS'))) {
      const cache = ['--cache', join(this.#folder, 'builder')];
      runVisibly(join(PROJECT, 'scripts/build-image'), '--out', folder, '--deb', this.release(), ...cache, ...options);
    }
    return { folder, image };
  }

  #program(): string {
    const program = join(this.#folder, 'program');
    if (!existsSync(program)) {
      runVisibly(process.execPath, join(PROJECT, 'scripts/bundle.ts'), '--target', 'linux-arm64', '--out', program);
    }
    return program;
  }

  #package(version: string, program: string, options: readonly string[]): string {
    const out = join(this.#folder, 'packages');
    const file = join(out, `paybox-agent_${version}_arm64.deb`);
    if (!existsSync(file)) {
      mkdirSync(out, { recursive: true });
      const script = join(PROJECT, 'scripts/build-deb.ts');
      runVisibly(process.execPath, script, '--arch', 'arm64', '--out', out, '--bundle', program, ...options);
      rmSync(file.replace('agent', 'gateway'), { force: true });
    }
    return file;
  }
}

function projectVersion(): string {
  return (JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as { version: string }).version;
}

/** Runs a program to its end, with its words in the terminal. Throws if it fails. */
export function runVisibly(command: string, ...args: string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed`, { cause: error });
}
