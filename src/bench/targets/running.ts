import { MissingPeerError } from '../../lib/errors.ts';
import type { BoxClient } from '../clients/box.ts';
import { waitUntilRight } from '../steps/waiting.ts';
import type { TestTime } from '../test-time.ts';

/** How long a box may take from its start to its first picture and its registration, or to the code of its enrolment. */
const READY_TIMEOUT_MS = 30_000;

/**
 * Waits until a box is at work: idle or showing, or with a code on its screen. Throws MissingPeerError, or what the
 * signal was aborted with.
 */
export async function waitUntilReady(
  box: BoxClient,
  time: TestTime,
  signal = new AbortController().signal,
): Promise<void> {
  const look = async () => {
    try {
      const { state, online, enrolment } = await box.status();
      const isThere =
        (online || (enrolment !== undefined && enrolment !== null)) && (await box.picture()) !== undefined;
      return isThere && state !== 'starting' ? undefined : `it is ${state}, ${online ? 'online' : 'offline'}`;
    } catch (error) {
      if (error instanceof MissingPeerError) return error.message;
      throw error;
    }
  };
  const problem = await waitUntilRight(time, READY_TIMEOUT_MS, look, signal);
  if (problem === undefined) return;
  throw new MissingPeerError(`box ${box.terminalCode} is not at work: ${problem}`, 'see the logs in the report folder');
}
