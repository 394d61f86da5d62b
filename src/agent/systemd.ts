import type { Clock } from '../lib/clock.ts';
import type { ServiceManager } from '../lib/systemd.ts';
import type { BoxApi, BoxStatus } from './contract.ts';

/** What a service manager watches of a box. */
export interface Watched {
  box: Pick<BoxApi, 'status' | 'onChange'>;
  /** Settles once the loop has come to a question that went through its inbox; never while it is stuck. */
  ping(): Promise<void>;
}

/**
 * Tells the service manager that the box is ready, how it does at every change, and, twice in the time that it allows,
 * that the loop turns. Only an answer of the loop itself counts: a box whose loop is stuck is to be started anew.
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
    if (line !== said) manager.tell({ STATUS: line });
    said = line;
  };
  signal.addEventListener('abort', watched.box.onChange(tellStatus), { once: true });
  tellStatus();
  await watched.ping();
  if (!signal.aborted) manager.tell({ READY: '1', WATCHDOG: '1' });
  if (manager.watchdogMs === undefined) return;
  while (!signal.aborted) {
    await clock.sleep(manager.watchdogMs / 2, signal);
    await watched.ping();
    if (!signal.aborted) manager.tell({ WATCHDOG: '1' });
  }
}

/** How a box does, in one line of plain words; its parts are those of `/status`. */
export function statusLine({ state, online, order, fault, link }: BoxStatus): string {
  const amount = order === null ? '' : ` ${order.amount} VND, order ${order.orderId}`;
  const reason = link.reason === null ? '' : `: ${link.reason}`;
  const faults = fault === null ? '' : `; ${fault.code}: ${fault.reason}`;
  return `${state}${amount}; ${online ? 'online' : `offline${reason}`}${faults}`;
}
