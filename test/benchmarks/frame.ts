import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import QRCode from 'qrcode';
import sharp from 'sharp';
import { packRgb565 } from '../../src/device/display/io/pixel-bytes.ts';
import { wordsOf } from '../../src/device/display/pixels/canvas.ts';
import { openRenderer } from '../../src/device/display/render.ts';
import { PAYMENT, payloadOf } from '../display/scenes.ts';
import { type Benchmark, percentile, type Row } from './row.ts';

const WIDTH = 800;
const HEIGHT = 480;
const LENGTHS = [94, 142, 220, 280];
const WARM_UP = 20;
const SAMPLES = 200;
const RATIO_MAX = 0.2;

/** From a payload to the bytes of an 800 x 480 screen, compared with `QRCode.toBuffer` and sharp to the same bytes. */
export const frame: Benchmark = {
  name: 'frame',
  async run(progress) {
    const cacheDir = await mkdtemp(join(tmpdir(), 'paybox-frame-'));
    try {
      const renderer = await openRenderer({ kind: 'pixels', width: WIDTH, height: HEIGHT }, { cacheDir });
      const out = new DataView(new ArrayBuffer(WIDTH * HEIGHT * 2));
      const ours: number[] = [];
      const theirs: number[] = [];
      const ticks: number[] = [];
      for (let n = 0; n < WARM_UP + SAMPLES; n += 1) {
        if (n % 50 === 0) progress(`frame ${n}/${WARM_UP + SAMPLES}`);
        const qrCode = payloadOf((LENGTHS[n % LENGTHS.length] ?? 0) - (n % 3));
        const draw = (secondsLeft: number) => {
          const picture = renderer.render({ ...PAYMENT, qrCode, secondsLeft });
          if (picture.kind === 'pixels') packRgb565(wordsOf(picture), out, 0);
        };
        const startedMs = performance.now();
        draw(300);
        const drawnMs = performance.now();
        await peerFrame(qrCode);
        const peerMs = performance.now();
        draw(299);
        draw(298);
        const beforeTickMs = performance.now();
        draw(297);
        if (n < WARM_UP) continue;
        ticks.push(performance.now() - beforeTickMs);
        ours.push(drawnMs - startedMs);
        theirs.push(peerMs - drawnMs);
      }
      const peer = percentile(theirs, 0.5);
      return [
        row('payload to RGB565 at 800 x 480, p50', percentile(ours, 0.5), peer),
        row('a second counted down, likewise, p50', percentile(ticks, 0.5), peer),
      ];
    } finally {
      await rm(cacheDir, { recursive: true, force: true });
    }
  },
};

/** Only the QR without text, made the common way: PNG, raw pixels, RGB565. */
async function peerFrame(qrCode: string): Promise<Uint16Array> {
  const png = await QRCode.toBuffer(qrCode, { width: HEIGHT });
  const { data } = await sharp(png)
    .resize(WIDTH, HEIGHT, { fit: 'contain', background: '#fff' })
    .removeAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  const packed = new Uint16Array(WIDTH * HEIGHT);
  for (let pixel = 0, at = 0; pixel < packed.length; pixel += 1, at += 3) {
    const [red = 0, green = 0, blue = 0] = [data[at], data[at + 1], data[at + 2]];
    packed[pixel] = ((red & 0xf8) << 8) | ((green & 0xfc) << 3) | (blue >> 3);
  }
  return packed;
}

function row(name: string, value: number, againstValue: number): Row {
  const ratio = value / againstValue;
  return {
    name,
    value,
    unit: 'ms',
    against: 'QRCode.toBuffer + sharp',
    againstValue,
    ratio,
    aim: `at most ${RATIO_MAX} of theirs`,
    met: ratio <= RATIO_MAX,
  };
}
