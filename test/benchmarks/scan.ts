import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decode } from 'fast-png';
import QRCode from 'qrcode';
import type { PixelFrame } from '../../src/device/display/contract.ts';
import { fitQr } from '../../src/device/display/qr.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import { readShare } from '../display/scanning.ts';
import { PAYMENT, payloadOf } from '../display/scenes.ts';
import type { Benchmark, Row } from './row.ts';

const LAYOUTS: readonly (readonly [number, number])[] = [
  [1280, 720],
  [800, 480],
  [480, 800],
  [480, 320],
  [320, 240],
  [240, 240],
  [128, 128],
  [128, 64],
  [64, 128],
  [64, 64],
];
const LENGTHS = [142, 280];
/** The peer's screen shows only the QR; ours also shows amount, content and account holder. */
const RATIO_MIN = 0.9;

/**
 * How often two decoders read photographs of each screen that are blurred, turned, tilted, noisy or overexposed. Compared with the
 * largest `QRCode.toBuffer` code in whole pixels that fits the screen, photographed in the same way.
 */
export const scan: Benchmark = {
  name: 'scan',
  async run(progress) {
    const cacheDir = await mkdtemp(join(tmpdir(), 'paybox-scan-'));
    try {
      const rows: Row[] = [];
      for (const size of LAYOUTS) rows.push(await scanOf(size, cacheDir, progress));
      return rows;
    } finally {
      await rm(cacheDir, { recursive: true, force: true });
    }
  },
};

async function scanOf(
  [width, height]: readonly [number, number],
  cacheDir: string,
  progress: (text: string) => void,
): Promise<Row> {
  const renderer = await openRenderer({ kind: 'pixels', width, height }, { cacheDir });
  const ours: number[] = [];
  const theirs: number[] = [];
  for (const length of LENGTHS) {
    progress(`scan ${width} x ${height}, ${length} characters`);
    const qrCode = payloadOf(length);
    if (!renderer.checkQr(qrCode).ok) continue;
    const frame = renderer.render({ ...PAYMENT, qrCode });
    if (frame.kind !== 'pixels') throw new Error('not a screen of pixels');
    ours.push(readShare(frame, qrCode).share);
    theirs.push(readShare(await peerScreen(qrCode, width, height), qrCode).share);
  }
  return row(`photographs read, ${width} x ${height}`, mean(ours) * 100, mean(theirs) * 100);
}

function row(name: string, value: number, againstValue: number): Row {
  const ratio = againstValue === 0 ? Number.POSITIVE_INFINITY : value / againstValue;
  const met = ratio >= RATIO_MIN;
  return {
    name,
    value,
    unit: '%',
    against: 'QRCode.toBuffer, as large',
    againstValue,
    ratio,
    aim: `at least ${RATIO_MIN} of theirs`,
    met,
  };
}

/** Only the QR, centred on a black screen of the same size, with the largest whole modules and our margins. */
async function peerScreen(qrCode: string, width: number, height: number): Promise<PixelFrame> {
  const fit = fitQr(qrCode, Math.min(width, height));
  if (!fit.ok) throw new Error(fit.reason);
  const { modulePixels: scale, quietModules: margin, ecc: errorCorrectionLevel } = fit.qr;
  const code = decode(await QRCode.toBuffer(qrCode, { scale, margin, errorCorrectionLevel }));
  const data = new Uint8Array(width * height * 4).fill(0);
  const left = Math.floor((width - code.width) / 2);
  const top = Math.floor((height - code.height) / 2);
  for (let y = top; y < top + code.height; y += 1) {
    for (let x = left; x < left + code.width; x += 1) {
      const light = code.data[((y - top) * code.width + x - left) * code.channels] ?? 0;
      data.set([light, light, light, 255], (y * width + x) * 4);
    }
  }
  return { kind: 'pixels', width, height, data };
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}
