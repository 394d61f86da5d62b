import { statSync } from 'node:fs';
import { access, constants, statfs } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { makeFolder } from '../../lib/folders.ts';
import { portOfUrl } from '../../lib/tls.ts';
import { LINK_SCHEMES } from '../agent/transports/registry.ts';
import type { Finding } from './findings.ts';

const FREE_BYTES_MIN = 50 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 3_000;
const EARLIEST_WALL_MS = Date.UTC(2025, 0, 1);

/** Checks whether the machine's calendar clock can be right. Without a battery it starts in the past. */
export function clockFinding(nowMs: number): Finding {
  const found = new Date(nowMs).toISOString();
  // The files of a release carry its build time, so now cannot be earlier.
  const built = statSync(process.argv[1] ?? process.execPath).mtimeMs;
  if (nowMs >= Math.max(EARLIEST_WALL_MS, built)) return { check: 'clock', result: 'ok', found, fix: '' };
  return { check: 'clock', result: 'failed', found, fix: 'set the time, or let systemd-timesyncd do it' };
}

/** Says how a clock differs from that of the database. */
export function skewOf(whose: string, aheadMs: number): string {
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  return `the clock of ${whose} is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the database`;
}

/** Checks whether the program can write into its folder and has room there. */
export async function storageFinding(dataDir: string, program: 'agent' | 'gateway' = 'agent'): Promise<Finding> {
  try {
    makeFolder(dataDir, 0o700);
    await access(dataDir, constants.W_OK);
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    const found = `${dataDir}, ${Math.round(free / 1024 / 1024)} MiB free`;
    if (free >= FREE_BYTES_MIN) return { check: 'storage', result: 'ok', found, fix: '' };
    return { check: 'storage', result: 'warning', found, fix: 'free some space, or payments cannot be recorded' };
  } catch (error) {
    const fix =
      systemCodeOf(error) === 'EROFS'
        ? `${program === 'agent' ? 'leave dataDir out for /var/lib/paybox; or the' : 'the'} file system is read-only, perhaps after an error on the card: see dmesg, and restart the machine`
        : `let the user that runs the ${program} write there, or set dataDir`;
    return { check: 'storage', result: 'failed', found: reasonOf(error), fix };
  }
}

/** Checks whether the box's pages can be served at this address. */
export async function portFinding({ host, port }: { host: string; port: number }): Promise<Finding> {
  const check = 'box page';
  const server = createServer();
  const failure = await new Promise<unknown>((resolve) => {
    server.once('error', resolve);
    server.listen(port, host, () => resolve(undefined));
  });
  if (failure === undefined) {
    await new Promise((resolve) => server.close(resolve));
    return { check, result: 'ok', found: `port ${port} is free`, fix: '' };
  }
  const found = `port ${port}: ${systemCodeOf(failure) ?? reasonOf(failure)}`;
  return { check, result: 'warning', found, fix: 'an agent already runs here, or set http.port' };
}

/** Checks whether the machine has an address beyond loopback. */
export function networkFinding(): Finding {
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const outward = addresses.filter((address) => !address.internal);
  const found = outward.map((address) => address.address).join(', ');
  if (outward.length > 0) return { check: 'network', result: 'ok', found, fix: '' };
  return { check: 'network', result: 'warning', found: 'loopback only', fix: 'plug in the network, or set up Wi-Fi' };
}

/** Checks whether something listens at the gateway's address. Sends no hello, so a running agent keeps its session. */
export async function gatewayFinding(address: string, check: string, option = 'link.url'): Promise<Finding> {
  const url = new URL(address);
  const socket = createConnection({ host: url.hostname.replace(/^\[|\]$/g, ''), port: portOfUrl(url, LINK_SCHEMES) });
  const answered = new Promise<unknown>((resolve) => {
    socket.once('connect', () => resolve('connected'));
    socket.once('error', resolve);
  });
  const outcome = await withDeadline(systemClock, CONNECT_TIMEOUT_MS, answered);
  socket.destroy();
  if (outcome === 'connected') return { check, result: 'ok', found: `${address} listens`, fix: '' };
  const why =
    outcome === undefined ? `no answer within ${CONNECT_TIMEOUT_MS} ms` : (systemCodeOf(outcome) ?? reasonOf(outcome));
  return {
    check,
    result: 'failed',
    found: `${address}: ${why}`,
    fix: `start the gateway, or correct ${option}`,
  };
}
