import { type Clock, withAbortAfter } from '../../../lib/clock.ts';
import type { Connection } from '../contract.ts';

/** Begins a connection within `connectTimeoutMs`, and returns it. Closes it if that fails, and throws what `begin` throws. */
export async function begun<C extends Connection & { begin(until: AbortSignal): Promise<void> }>(
  connection: C,
  { connectTimeoutMs }: { connectTimeoutMs: number },
  { clock }: { clock: Clock },
  signal: AbortSignal,
): Promise<C> {
  try {
    await withAbortAfter(clock, connectTimeoutMs, signal, (until) => connection.begin(until));
    return connection;
  } catch (error) {
    await connection.close();
    throw error;
  }
}
