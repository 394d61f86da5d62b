import { access, constants, mkdir, statfs } from 'node:fs/promises';
import { createConnection, createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { displayIo } from '../agent/agent.ts';
import { type AgentConfig, loadAgentConfig } from '../agent/config.ts';
import { openRenderer } from '../display/render.ts';
import { systemClock, withDeadline } from '../lib/clock.ts';
import { PayboxError, reasonOf, systemCodeOf } from '../lib/errors.ts';
import { createLogger } from '../lib/log.ts';
import { encodeVietQr } from '../protocol/vietqr.ts';
import { setupOf } from './agent-setup.ts';
import { table } from './print.ts';

/** One finding: what was checked, how it stands, and what to do when it does not stand well. */
interface Finding {
  check: string;
  result: 'ok' | 'warning' | 'failed';
  found: string;
  fix: string;
}

/** Lengths of real payloads, from the shortest to the longest that are seen. */
const PAYLOAD_CHARS = [94, 142, 220, 280];
const FREE_BYTES_MIN = 50 * 1024 * 1024;
const CONNECT_TIMEOUT_MS = 3_000;
const OPEN_TIMEOUT_MS = 10_000;
/** A device without a battery for its clock starts in the past. */
const EARLIEST_WALL_MS = Date.UTC(2025, 0, 1);

/** `paybox doctor`: exit code 1 when a check failed, 2 when the configuration cannot be read. */
export async function doctor(options: { config: string; json?: boolean }): Promise<void> {
  const config = await loadAgentConfig(options.config);
  const findings = [
    clockFinding(),
    await storageFinding(config.dataDir),
    ...(await displayFindings(config)),
    await portFinding(config.http),
    networkFinding(),
    await gatewayFinding(config.link.url),
  ];
  if (options.json === true) process.stdout.write(`${JSON.stringify(findings)}\n`);
  else process.stdout.write(`${report(findings)}\n`);
  if (findings.some((finding) => finding.result === 'failed')) process.exitCode = 1;
}

function report(findings: readonly Finding[]): string {
  const rows = findings.map(({ check, result, found, fix }) => [
    result,
    check,
    fix === '' ? found : `${found} → ${fix}`,
  ]);
  return table(rows);
}

function clockFinding(): Finding {
  const now = systemClock.wallMs();
  const found = new Date(now).toISOString();
  if (now >= EARLIEST_WALL_MS) return { check: 'clock', result: 'ok', found, fix: '' };
  return { check: 'clock', result: 'failed', found, fix: 'set the time, or let systemd-timesyncd do it' };
}

async function storageFinding(dataDir: string): Promise<Finding> {
  try {
    await mkdir(dataDir, { recursive: true });
    await access(dataDir, constants.W_OK);
    const { bavail, bsize } = await statfs(dataDir);
    const free = bavail * bsize;
    const found = `${dataDir}, ${Math.round(free / 1024 / 1024)} MiB free`;
    if (free >= FREE_BYTES_MIN) return { check: 'storage', result: 'ok', found, fix: '' };
    return { check: 'storage', result: 'warning', found, fix: 'free some space: payments could not be written down' };
  } catch (error) {
    const fix = 'let the user that runs the agent write there, or set dataDir';
    return { check: 'storage', result: 'failed', found: reasonOf(error), fix };
  }
}

async function displayFindings(config: AgentConfig): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const { driver, open } of setupOf(config).displays) {
    const check = `display ${driver}`;
    const abort = new AbortController();
    const log = createLogger(process.stderr, systemClock, 'text');
    const terminal = process.stdout.isTTY ? process.stdout : undefined;
    const world = displayIo({ clock: systemClock, log, terminal, terminalInput: undefined });
    const io = { ...world, cacheDir: config.dataDir, requestDraw: () => undefined };
    try {
      const opened = await withDeadline(systemClock, OPEN_TIMEOUT_MS, open(io, abort.signal));
      if (opened === undefined) throw new Error(`did not open within ${OPEN_TIMEOUT_MS} ms`);
      const renderer = await openRenderer(opened.surface, { cacheDir: config.dataDir });
      findings.push({ check, result: 'ok', found: 'opens', fix: '' });
      for (const chars of PAYLOAD_CHARS) {
        const verdict = renderer.verdict(samplePayload(chars));
        const found = verdict.ok
          ? `version ${verdict.version}, ${verdict.modules} modules of ${verdict.modulePixels} px, quiet zone ${verdict.quietModules}`
          : verdict.reason;
        const fix = verdict.ok ? '' : 'pushes of this length are refused with QR_TOO_DENSE; use a larger display';
        findings.push({ check: `QR of ${chars} characters`, result: verdict.ok ? 'ok' : 'warning', found, fix });
      }
      await opened.close();
    } catch (error) {
      abort.abort();
      const fix = error instanceof PayboxError ? error.fix : 'check its cable and its part of the configuration';
      findings.push({ check, result: 'failed', found: reasonOf(error), fix });
    }
  }
  return findings;
}

/** What a payload of `chars` characters, from 91 on, looks like to a QR encoder: heads in digits, then text in bytes. */
function samplePayload(chars: number): string {
  const shortest = encodeVietQr({
    bin: '970422',
    account: '0123456789',
    service: 'account',
    initiation: 'static',
    amount: undefined,
  });
  return shortest.padEnd(chars, 'Thanh toan don hang ');
}

async function portFinding({ host, port }: { host: string; port: number }): Promise<Finding> {
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

function networkFinding(): Finding {
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? []);
  const outward = addresses.filter((address) => !address.internal);
  const found = outward.map((address) => address.address).join(', ');
  if (outward.length > 0) return { check: 'network', result: 'ok', found, fix: '' };
  return { check: 'network', result: 'warning', found: 'loopback only', fix: 'plug in the network, or set up Wi-Fi' };
}

const DEFAULT_PORTS: Record<string, number> = {
  'http:': 80,
  'https:': 443,
  'mqtt:': 1883,
  'mqtts:': 8883,
  'ws:': 80,
  'wss:': 443,
};

/** Whether something listens at the gateway's address. No hello: that would take the box from a running agent. */
async function gatewayFinding(address: string): Promise<Finding> {
  const check = 'gateway';
  const url = new URL(address);
  const port = url.port === '' ? (DEFAULT_PORTS[url.protocol] ?? 0) : Number(url.port);
  const socket = createConnection({ host: url.hostname, port });
  const answered = new Promise<unknown>((resolve) => {
    socket.once('connect', () => resolve('connected'));
    socket.once('error', resolve);
  });
  const outcome = await withDeadline(systemClock, CONNECT_TIMEOUT_MS, answered);
  socket.destroy();
  if (outcome === 'connected') return { check, result: 'ok', found: `${address} listens`, fix: '' };
  const why =
    outcome === undefined ? `no answer within ${CONNECT_TIMEOUT_MS} ms` : (systemCodeOf(outcome) ?? reasonOf(outcome));
  return { check, result: 'failed', found: `${address}: ${why}`, fix: 'start the gateway, or correct link.url' };
}
