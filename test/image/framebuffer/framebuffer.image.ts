import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { decode } from 'fast-png';
import { describe, expect, it } from 'vitest';
import { openRenderer } from '../../../src/device/display/render.ts';
import { getJson, Shop } from '../../e2e/walk.ts';
import { eventually, freePort, temporaryFolder } from '../../support/net.ts';
import { without } from '../../support/programs.ts';
import { decodeQrTwice } from '../../support/qr-decoders.ts';
import { FRAMEBUFFER_PROGRAMS } from '../programs.ts';
import { BOX, CONFIRM_TIMEOUT_MS, startGateway } from '../service.ts';
import { debianKernel } from './debian-kernel.ts';
import { bootGuest } from './guest.ts';

const TEST_TIMEOUT_MS = 300_000;

const lacking = Object.values(FRAMEBUFFER_PROGRAMS)
  .map(without)
  .find(({ missing }) => missing);
const kernel = lacking === undefined ? debianKernel() : { missing: lacking.note.trim() };
const note = 'missing' in kernel ? ` (${kernel.missing})` : '';

/** The largest difference of any channel of any pixel between two PNG files; 255 where their sizes differ. */
function difference(left: Uint8Array, right: Uint8Array): number {
  const [a, b] = [decode(left), decode(right)];
  if (a.width !== b.width || a.height !== b.height) return 255;
  let largest = 0;
  for (let pixel = 0; pixel < a.width * a.height; pixel += 1) {
    for (let channel = 0; channel < 3; channel += 1) {
      const [one, other] = [a.data[pixel * a.channels + channel] ?? 0, b.data[pixel * b.channels + channel] ?? 0];
      largest = Math.max(largest, Math.abs(one - other));
    }
  }
  return largest;
}

describe.skipIf('missing' in kernel)(`a framebuffer of a Debian kernel${note}`, () => {
  it.each([
    { bits: 32, name: 'bochs-drmdrmfb', modules: ['bochs'], kernelArgs: '', width: 800, height: 480, tolerance: 0 },
    { bits: 16, name: 'VESA VGA', modules: [], kernelArgs: 'vga=0x314', width: 800, height: 600, tolerance: 8 },
  ])(
    'shows a payment with $bits bits a pixel, undisturbed by the console',
    // Node's compiler has been seen to abort on the emulated processor; what the project does wrong fails every time.
    { timeout: TEST_TIMEOUT_MS, retry: 1 },
    async (screen) => {
      if ('missing' in kernel) throw new Error(kernel.missing);
      const folder = await temporaryFolder();
      const { baseUrl, mqttPort } = await startGateway(folder);
      const dataDir = join(folder, 'data');
      mkdirSync(dataDir);
      // Drawn here, because the image library asks for a newer processor than the one that is emulated.
      await openRenderer({ kind: 'pixels', width: screen.width, height: screen.height }, { cacheDir: dataDir });
      const boxPort = await freePort();
      const token = 'Token-of-the-pages-of-one-test-box';
      const headers = { authorization: `Bearer ${token}` };
      const config = {
        box: BOX,
        link: { transport: 'mqtt', url: `mqtt://10.0.2.2:${mqttPort}`, allowPlain: true },
        displays: [{ driver: 'framebuffer', name: screen.name, repaintSeconds: 0 }],
        http: { host: '0.0.0.0', token },
        dataDir: '/data',
      };
      const { modules, kernelArgs } = screen;
      const guest = await bootGuest(folder, { kernel, modules, kernelArgs, config, dataDir, boxPort });
      await guest.says(' ready ');
      const status = () => getJson(`http://127.0.0.1:${boxPort}/status`, headers);
      await eventually('idle', async () => (await status()).state === 'idle', CONFIRM_TIMEOUT_MS).catch((error) => {
        throw new Error(`${error}\n${guest.output()}`);
      });

      const shop = new Shop(baseUrl);
      await shop.login();
      const { body: order } = await shop.generate({ amount: 50_000, content: 'DH001', orderId: 'DH001' });
      const pushed = await shop.sendQr(order);
      expect(pushed, guest.output()).toMatchObject({ status: 200, body: { status: 'SUCCESS' } });

      const seen = guest.output().match(/\[console \d+\]/g)?.length ?? 0;
      await guest.says(`[console ${seen + 2}]`);
      expect(decodeQrTwice(await guest.screen())).toEqual([order.qrCode, order.qrCode]);
      await eventually('the screen is what the box says it shows', async () => {
        const [shown, told] = [
          await guest.screen(),
          await fetch(`http://127.0.0.1:${boxPort}/screen.png`, { headers }),
        ];
        return difference(shown, new Uint8Array(await told.arrayBuffer())) <= screen.tolerance;
      });
      await guest.stop();
    },
  );
});
