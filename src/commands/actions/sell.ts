import { systemClock } from '../../lib/clock.ts';
import { ConfigError, MissingPeerError } from '../../lib/errors.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { remark, say } from '../shared/output.ts';
import { exitCodeOf, StopSignal } from '../shared/stop-signal.ts';

const SALES = '/admin/v1/sales';
const LOOK_MS = 300;
/** A gateway that has sold may be away for this long, as in a restart. The command asks it again at this interval. */
const AWAY_MAX_MS = 60_000;
const AGAIN_MS = 500;

export interface SellOptions extends AdminOptions {
  amount?: number;
  box?: string;
  note?: string;
  wait: boolean;
  cancel?: string;
  list?: boolean;
  csv?: boolean;
  day?: string;
  json?: boolean;
}

interface SaleView {
  id: string;
  code: string;
  amount: number;
  content: string;
  status: string;
  isOpen: boolean;
  paid: number;
  terminalCode: string;
  madeAt: string;
}

/**
 * Runs `paybox sell`: sells at a box, cancels a sale, or lists the sales of a day. The exit code is 1 if the gateway
 * refuses or the sale ends unpaid, and 130 if Ctrl-C ended it.
 */
export async function sell(options: SellOptions): Promise<void> {
  const { amount, cancel, list = false, csv = false, day } = options;
  if ([amount !== undefined, cancel !== undefined, list, csv].filter((it) => it).length !== 1) {
    throw new ConfigError('expected one of --amount, --cancel, --list and --csv', 'paybox sell --amount 50000');
  }
  if (day !== undefined && !(list || csv)) throw new ConfigError('--day: expected --list or --csv beside it');
  const gateway = await AdminClient.open(options);
  const query = day === undefined ? '' : `?day=${encodeURIComponent(day)}`;
  if (csv) {
    await gateway.save(`${SALES}.csv${query}`, async (piece) => void process.stdout.write(piece));
  } else if (list) {
    await listDay(gateway, query, options.json === true);
  } else if (cancel !== undefined) {
    const sale = await gateway.change<SaleView>('POST', `${SALES}/${encodeURIComponent(cancel)}/cancel`, {});
    print(options, sale, lineOf(sale));
  } else {
    await sellAt(gateway, options);
  }
}

async function sellAt(gateway: AdminClient, options: SellOptions): Promise<void> {
  const { amount, box = '', note = '' } = options;
  const stop = new StopSignal();
  const sale = await gateway.change<SaleView>('POST', SALES, { amount, terminalCode: box, note });
  const waits = options.wait ? '; Ctrl-C cancels' : '';
  print(options, sale, `${sale.terminalCode} shows ${dong(sale.amount)}, content ${sale.content}${waits}`);
  if (!options.wait) return;
  const ending = stop.aborting();
  for (let seen = sale.status; ; ) {
    await systemClock.sleep(LOOK_MS, ending);
    // If the money arrived at the same moment, the command reports the money instead of the refused cancellation.
    if (ending.aborted) await gateway.post(`${SALES}/${sale.id}/cancel`, {});
    const now = await lookAt(gateway, sale, ending);
    if (now.status !== seen) print(options, now, lineOf(now));
    seen = now.status;
    if (now.isOpen) continue;
    if (now.paid < now.amount) process.exitCode = (ending.aborted && exitCodeOf(await stop.received)) || 1;
    return;
  }
}

/**
 * Returns the current sale, and waits for a gateway that is away. Throws MissingPeerError when it does not come back.
 */
async function lookAt(gateway: AdminClient, { id, code }: SaleView, ending: AbortSignal): Promise<SaleView> {
  const fix = `the sale is still open: see paybox sell --list, or paybox sell --cancel ${code}`;
  const sinceMs = systemClock.monotonicMs();
  for (let isTold = false; ; isTold = true) {
    try {
      return await gateway.get<SaleView>(`${SALES}/${id}`);
    } catch (error) {
      if (!(error instanceof MissingPeerError)) throw error;
      const isOver = ending.aborted || systemClock.monotonicMs() - sinceMs > AWAY_MAX_MS;
      if (isOver) throw new MissingPeerError(error.message, fix, error);
      if (!isTold) remark(`${error.message}; asked again for ${AWAY_MAX_MS / 1000} s`);
    }
    await systemClock.sleep(AGAIN_MS, ending);
  }
}

function lineOf({ code, status, amount, paid }: SaleView): string {
  if (status === 'paid') return `${code} is paid: ${dong(paid)}`;
  if (status === 'overpaid') return `${code} is overpaid: ${dong(paid)} came for ${dong(amount)}`;
  if (status === 'underpaid')
    return `${code} is underpaid: ${dong(paid)} of ${dong(amount)} came, ${dong(amount - paid)} are missing`;
  const came = paid === 0 ? '' : `: ${dong(paid)} of ${dong(amount)} came`;
  return `${code} is ${status}${came}`;
}

async function listDay(gateway: AdminClient, query: string, json: boolean): Promise<void> {
  let before = '';
  for (;;) {
    const found: { day: string; sales: number; paid: number; amount: number; rows: SaleView[] } = await gateway.get(
      `${SALES}${query === '' ? '?' : `${query}&`}limit=500${before}`,
    );
    for (const it of found.rows) {
      const came = it.paid === 0 || it.paid === it.amount ? '' : `  ${dong(it.paid)} came`;
      const line = `${clockTime(it.madeAt)}  ${it.code.padEnd(10)}${dong(it.amount).padStart(18)}  ${it.status.padEnd(10)} ${it.terminalCode}  ${it.content}${came}`;
      say(json ? JSON.stringify(it) : line);
    }
    const last = found.rows.at(-1);
    if (last !== undefined && found.rows.length === 500) {
      before = `&before=${last.id}`;
      continue;
    }
    const { rows: _rows, ...sum } = found;
    const line = `${found.day}: ${found.sales} sale${found.sales === 1 ? '' : 's'}, ${found.paid} of them paid, ${dong(found.amount)}`;
    say(json ? JSON.stringify(sum) : line);
    return;
  }
}

function print({ json = false }: SellOptions, answer: SaleView, line: string): void {
  say(json ? JSON.stringify(answer) : line);
}

function clockTime(iso: string): string {
  return new Date(iso).toLocaleTimeString('en-GB', { timeZone: 'Asia/Ho_Chi_Minh' });
}

function dong(amount: number): string {
  return `${amount.toLocaleString('vi-VN')} ₫`;
}
