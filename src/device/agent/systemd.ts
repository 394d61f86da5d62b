import type { Clock } from '../../lib/clock.ts';
import type { ServiceManager } from '../../lib/systemd.ts';
import type { BoxApi, BoxStatus } from './contract.ts';

/** The parts of a box that the service manager supervises. */
export interface Watched {
  box: BoxApi;
  /** Settles once the loop has processed an event for this call; never while the loop is stuck. */
  ping(): Promise<void>;
}

/**
 * Notifies the service manager when the box is ready and at every change of its status, and sends a heartbeat twice per
 * watchdog time. The heartbeat needs an answer of the loop, so the manager restarts a box whose loop is stuck.
 */
export async function notifyServiceManager(
  manager: ServiceManager,
  watched: Watched,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let said = '';
  const tellStatus = () => {
    const line = statusLine(watched.box.status());
    if (line !== said) manager.notify({ STATUS: line });
    said = line;
  };
  signal.addEventListener('abort', watched.box.onChange(tellStatus), { once: true });
  tellStatus();
  await watched.ping();
  if (!signal.aborted) manager.notify({ READY: '1', WATCHDOG: '1' });
  if (manager.watchdogMs === undefined) return;
  while (!signal.aborted) {
    await clock.sleep(manager.watchdogMs / 2, signal);
    await watched.ping();
    if (!signal.aborted) manager.notify({ WATCHDOG: '1' });
  }
}

/** Returns the status of a box in one line; the details are in `/status`. */
export function statusLine({ state, online, order, fault, link }: BoxStatus): string {
  const amount = order === null ? '' : ` ${order.amount} VND, order ${order.orderId}`;
  const reason = link.reason === null ? '' : `: ${link.reason}`;
  const broken = fault === null ? '' : `; ${fault.code}: ${fault.reason}`;
  return `${state}${amount}; ${online ? 'online' : `offline${reason}`}${broken}`;
}
