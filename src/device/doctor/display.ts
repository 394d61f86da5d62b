import { systemClock, withDeadline } from '../../lib/clock.ts';
import { reasonOf } from '../../lib/errors.ts';
import { stderrLog } from '../../lib/log.ts';
import { encodeVietQr } from '../../protocol/vietqr.ts';
import type { AgentConfig } from '../agent/config.ts';
import { displayIo } from '../agent/screen/screen.ts';
import { setupOf } from '../agent/setup.ts';
import type { Surface } from '../display/contract.ts';
import { openRenderer, type QrScanCheck } from '../display/render.ts';
import { type Finding, failed, well } from './findings.ts';

/** The lengths of real payloads, from shortest to longest. */
const PAYLOAD_CHARS = [94, 142, 220, 280];
const OPEN_TIMEOUT_MS = 10_000;
const LIST_TIMEOUT_MS = 5_000;

/** Checks whether each display opens, and how it shows QRs of usual lengths. */
export async function displayFindings(config: AgentConfig): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [index, { driver, open }] of setupOf(config).displays.entries()) {
    const check = `display ${driver}`;
    const abort = new AbortController();
    const terminal = process.stdout.isTTY ? process.stdout : undefined;
    const world = displayIo({ clock: systemClock, log: stderrLog(), terminal, terminalInput: undefined });
    const io = { ...world, cacheDir: config.dataDir, requestDraw: () => undefined };
    try {
      const opened = await withDeadline(systemClock, OPEN_TIMEOUT_MS, open(io, abort.signal));
      if (opened === undefined) throw new Error(`did not open within ${OPEN_TIMEOUT_MS} ms`);
      const isFirst = index === 0;
      findings.push(
        well(check, isFirst ? 'opens' : 'opens; the first display confirms pushes, whatever this one can show'),
      );
      // Only the first display can cause a refused push.
      if (isFirst) findings.push(...(await qrFindings(opened.surface, config.dataDir)));
      await opened.close();
    } catch (error) {
      abort.abort();
      findings.push(failed(check, error, 'check its cable and its part of the configuration'));
    }
  }
  return findings;
}

/** Checks how a surface shows QRs of usual lengths. */
export async function qrFindings(surface: Surface, cacheDir: string): Promise<Finding[]> {
  const renderer = await openRenderer(surface, { cacheDir });
  return PAYLOAD_CHARS.map((chars) => qrFinding(chars, renderer.checkQr(samplePayload(chars))));
}

function qrFinding(chars: number, qrCheck: QrScanCheck): Finding {
  const check = `QR of ${chars} characters`;
  if (!qrCheck.ok) {
    const fix = 'pushes of this length are refused with QR_TOO_DENSE; use a larger display';
    return { check, result: 'warning', found: qrCheck.reason, fix };
  }
  const { version, ecc, modules, modulePixels, quietModules, polarity } = qrCheck;
  const code = `version ${version}, error correction ${ecc}`;
  const drawn = `${modules} modules of ${modulePixels} px, quiet zone ${quietModules}, ${polarity}`;
  return well(check, `${code}, ${drawn}`);
}

/**
 * Returns a payload of `chars` characters, at least 91, with the encoding mix of real ones: digits first, then text in
 * bytes.
 */
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

/** Returns the machine's serial ports, for the configuration of a display; none if no display uses one. */
export async function serialFindings({ displays }: AgentConfig): Promise<Finding[]> {
  if (!displays.some((display) => 'baudRate' in display)) return [];
  const check = 'serial ports';
  const fix = 'plug the display in; `ls /dev/serial/by-id` lists USB ports';
  try {
    // The module is loaded on demand, because most boxes have no serial display.
    const { SerialPort } = await import('serialport');
    const ports = await withDeadline(systemClock, LIST_TIMEOUT_MS, SerialPort.list());
    if (ports === undefined) throw new Error(`not listed within ${LIST_TIMEOUT_MS} ms`);
    if (ports.length === 0) return [{ check, result: 'warning', found: 'none', fix }];
    const names = ports.map(({ path, manufacturer }) => (manufacturer ? `${path} (${manufacturer})` : path));
    return [well(check, names.join(', '))];
  } catch (error) {
    return [{ check, result: 'warning', found: `cannot be listed: ${reasonOf(error)}`, fix }];
  }
}
