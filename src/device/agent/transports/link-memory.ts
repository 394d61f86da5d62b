import { join } from 'node:path';
import { reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { readFileText, replaceOwnFile } from '../../../lib/files.ts';
import { makeFolder } from '../../../lib/folders.ts';
import type { Logger } from '../../../lib/log.ts';
import type { BoxSide } from '../contract.ts';

/** The file is in the data folder, beside the journal. */
const FILE = 'link.json';

type Memory = BoxSide['memory'];

/** Stores what a transport must not forget: on the disk, and in memory for a disk that fails. */
export class LinkMemory implements Memory {
  readonly #path: string;
  readonly #folder: string;
  readonly #log: Logger;
  #text: string | undefined;
  #writing: Promise<void> = Promise.resolve();
  #failure = '';

  constructor(dataDir: string, log: Logger) {
    this.#folder = dataDir;
    this.#path = join(dataDir, FILE);
    this.#log = log;
  }

  async read(): Promise<string | undefined> {
    this.#text ??= await readFileText(this.#path).catch((error: unknown) => {
      if (systemCodeOf(error) !== 'ENOENT') this.#fails('read', error);
      return undefined;
    });
    return this.#text;
  }

  /** Settles once the text is on the disk, or the disk has refused it. */
  write(text: string): Promise<void> {
    this.#text = text;
    this.#writing = this.#writing.then(async () => {
      try {
        makeFolder(this.#folder, 0o700);
        await replaceOwnFile(this.#path, text);
        this.#failure = '';
      } catch (error) {
        this.#fails('written', error);
      }
    });
    return this.#writing;
  }

  #fails(verb: 'read' | 'written', error: unknown): void {
    const reason = reasonOf(error);
    if (reason !== this.#failure) this.#log.error('link-memory-failed', { path: this.#path, verb, reason });
    this.#failure = reason;
  }
}
