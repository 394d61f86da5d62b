import { type Duplex, duplexPair } from 'node:stream';
import { reasonOf } from '../../lib/errors.ts';
import type { BrokerListener, EmbeddedBroker } from '../boxes/broker.ts';
import type { BrokerLogin } from '../boxes/broker-rights.ts';
import type { World } from '../common/world.ts';
import type { OrderedFault } from './active-faults.ts';
import type { Faults } from './faults.ts';

/** The wait before another attempt to start, when another program has taken the port. */
const RESTART_WAIT_MS = 1_000;

/** Starts a broker that the fault broker-killed can stop. The broker restarts at the same port with the same logins. */
export async function startKillable(
  at: BrokerListener,
  start: (at: BrokerListener, login?: BrokerLogin) => Promise<EmbeddedBroker>,
  { clock, log }: World,
  faults: Faults,
): Promise<EmbeddedBroker> {
  const first = await start(at);
  const closing = new AbortController();
  let current: EmbeddedBroker | undefined = first;
  let changing: Promise<void> = Promise.resolve();
  const again = { ...at, port: Number(new URL(first.url).port) };
  const restart = async () => {
    while (!closing.signal.aborted && current === undefined) {
      try {
        current = await start(again, first.login);
      } catch (error) {
        log.error('broker-failed', { reason: reasonOf(error) });
        await clock.sleep(RESTART_WAIT_MS, closing.signal);
      }
    }
  };
  const kill = async ({ seconds = 0, over }: OrderedFault) => {
    const killed = current;
    current = undefined;
    await killed?.close();
    await clock.sleep(seconds * 1000, AbortSignal.any([over, closing.signal]));
    await restart();
  };
  faults.onOrder('broker-killed', {
    begin: (ordered) => {
      changing = changing
        .then(() => kill(ordered))
        .catch((error: unknown) => log.error('broker-failed', { reason: reasonOf(error) }));
    },
  });
  return {
    url: first.url,
    login: first.login,
    connect: () => current?.connect() ?? deadEnd(),
    dropper: (terminalCode) => current?.dropper(terminalCode) ?? (() => undefined),
    close: async () => {
      closing.abort();
      await changing;
      await current?.close();
    },
  };
}

/** Returns a connection that ends at once. */
function deadEnd(): Duplex {
  const [ours] = duplexPair();
  // Destroying only the other half would leave this one open, and its user would wait for a timeout.
  ours.destroy();
  return ours;
}
