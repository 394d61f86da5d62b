import { join } from 'node:path';
import { type Clock, withAbortAfter } from '../../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import { readFileText, replaceOwnFile } from '../../../lib/files.ts';
import { makeFolder } from '../../../lib/folders.ts';
import type { Logger } from '../../../lib/log.ts';
import type { Enroller } from './enroller.ts';

/**
 * While a code is shown, the box tries its old secret this often (the gateway may have refused it by mistake), or looks
 * for the file again (its disk may be mounted late).
 */
const RETRY_MS = 60_000;
const FILE = 'secret';
const AGREED = /^[A-Za-z0-9_-]{43}$/;

/** The secret by which the box logs in. */
export interface BoxSecret {
  /** Returns the secret, and waits for enrolment if necessary. Returns undefined once `signal` aborts. */
  get(signal: AbortSignal): Promise<string | undefined>;
  /** Reports that the gateway has refused the secret. */
  refused(): void;
}

/** Returns a secret from the configuration. */
export function configuredSecret(secret: string): BoxSecret {
  return { get: async () => secret, refused: () => undefined };
}

export interface EnrolledSecretDeps {
  clock: Clock;
  log: Logger;
  dataDir: string;
  enroller: Enroller;
}

/**
 * Returns a secret from enrolment, in the file `secret` of the data folder, readable by its owner only. When the
 * gateway refuses it the box enrols again; the old secret stays until then.
 */
export function enrolledSecret({ clock, log, dataDir, enroller }: EnrolledSecretDeps): BoxSecret {
  const path = join(dataDir, FILE);
  let known: string | undefined;
  let isRefused = false;
  let said = '';
  let unkept = '';
  const unreadable = (reason: string) => {
    if (reason !== said) log.error('secret-unreadable', { path, reason: `${reason}; the box enrols again` });
    said = reason;
  };
  /** Writes the secret. Returns whether that worked. */
  const wasKept = async (secret: string) => {
    try {
      await keepSecret(dataDir, secret);
      unkept = '';
      return true;
    } catch (error) {
      const reason = reasonOf(error);
      if (reason !== unkept)
        log.error('secret-not-stored', { path, reason: `${reason}; the next start has to enrol again` });
      unkept = reason;
      return false;
    }
  };
  /** Retries, because a full disk may have room again long before the next start. */
  const keepLater = async (secret: string, signal: AbortSignal) => {
    do await clock.sleep(RETRY_MS, signal);
    while (!signal.aborted && known === secret && !(await wasKept(secret)));
  };
  return {
    get: async (signal) => {
      while (!signal.aborted) {
        known ??= await readSecret(path, unreadable);
        if (known !== undefined && !isRefused) return known;
        const agreed = await withAbortAfter(clock, RETRY_MS, signal, (until) => enroller.run(until));
        if (agreed !== undefined) {
          known = agreed;
          if (!(await wasKept(agreed))) void keepLater(agreed, signal);
        }
        isRefused = false;
      }
      return undefined;
    },
    refused: () => {
      isRefused = true;
    },
  };
}

async function readSecret(path: string, unreadable: (reason: string) => void): Promise<string | undefined> {
  try {
    const text = (await readFileText(path)).trim();
    if (AGREED.test(text)) return text;
    unreadable('it is not 32 bytes in base64url');
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') unreadable(reasonOf(error));
  }
  return undefined;
}

/** Stores the secret before the box uses it. */
async function keepSecret(dataDir: string, secret: string): Promise<void> {
  makeFolder(dataDir, 0o700);
  await replaceOwnFile(join(dataDir, FILE), `${secret}\n`);
}
