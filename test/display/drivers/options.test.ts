import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { loadAgentConfig } from '../../../src/device/agent/config.ts';
import { DISPLAY_DRIVERS } from '../../../src/device/display/registry.ts';
import { SCENES } from '../scenes.ts';

const exampleOf = (name: string) => `${import.meta.dirname}/../../../device-config/${name}.yaml`;
/** What a driver's file in device-config leaves out: another option there stands for it. */
const REPLACED: Readonly<Record<string, readonly string[]>> = { framebuffer: ['device'], escpos: ['dots'] };
const SCREENS = [...new Set(Object.values(SCENES).map(({ kind }) => kind))].toSorted();

describe.each([...DISPLAY_DRIVERS].filter(([name]) => existsSync(exampleOf(name))))(
  'device-config/%s.yaml',
  (name, driver) => {
    it('the sample file of a display names all options of its driver, and every screen where screens have pages', async () => {
      const { displays } = await loadAgentConfig(exampleOf(name));
      const { driver: _, ...given } = displays.find((display) => display.driver === name) ?? { driver: '' };
      const known = Object.keys(z.toJSONSchema(driver.options, { io: 'input' }).properties ?? {});
      const replaced = REPLACED[name] ?? [];
      expect(Object.keys(given).toSorted()).toEqual(known.filter((key) => !replaced.includes(key)).toSorted());
      if ('pages' in given) expect(Object.keys(Object(given.pages)).toSorted()).toEqual(SCREENS);
    });
  },
);

it('every display but those of a laptop has a file in device-config', () => {
  const none = [...DISPLAY_DRIVERS.keys()].filter((name) => !existsSync(exampleOf(name)));
  expect(none).toEqual(['browser', 'terminal', 'png']);
});

describe('options of displays', () => {
  it.each<[string, object, string]>([
    ['browser', { width: 8 }, 'width'],
    ['browser', { height: '480' }, 'height'],
    ['browser', { width: 100_000 }, 'width'],
    ['png', { path: undefined }, 'path'],
    ['png', { path: '' }, 'path'],
    ['terminal', { columns: 0 }, 'columns'],
    ['terminal', { rows: 1.5 }, 'rows'],
    ['nextion', { baudRate: 9_601 }, 'baudRate'],
    ['nextion', { dim: 101 }, 'dim'],
    ['nextion', { texts: { title: 't0.txt' } }, 'texts.title'],
    ['nextion', { pages: { paying: 1 } }, 'pages'],
    ['nextion', { qr: { charsMax: 5_000 } }, 'qr.charsMax'],
    ['nextion', { encoding: 'gbk' }, 'encoding'],
    ['dwin', { qr: { charsMax: 459 } }, 'qr.charsMax'],
    ['dwin', { texts: { amount: 0x0f00 } }, 'texts.amount'],
    ['dwin', { textWords: 129 }, 'texts.title'],
    ['dwin', { markerVp: 0x2001 }, 'qr.vp'],
    ['dwin', { qr: { vp: 0xfff0 } }, 'qr.vp'],
    ['dwin', { crc: 1 }, 'crc'],
    ['dqr', { baudRate: 19_200 }, 'baudRate'],
    ['dqr', { id: 'Quầy 1' }, 'id'],
    ['dqr', { id: 'a**b' }, 'id'],
    ['dqr', { id: 'a\nb' }, 'id'],
    ['dqr', { path: '' }, 'path'],
    ['escpos', { mode: 'draw' }, 'mode'],
    ['escpos', { paper: '57mm' }, 'paper'],
    ['escpos', { dots: 64 }, 'dots'],
    ['escpos', { moduleDotsMax: 17 }, 'moduleDotsMax'],
    ['escpos', { charsMax: 3_000 }, 'charsMax'],
    ['cd5220', { baudRate: 9601 }, 'baudRate'],
    ['cd5220', { brightness: 5 }, 'brightness'],
    ['cd5220', { columns: 40 }, ''],
    ['matrix-orbital', { rows: 5 }, 'rows'],
    ['matrix-orbital', { contrast: 256 }, 'contrast'],
    ['openlcd', { size: '40x2' }, 'size'],
    ['openlcd', { path: '' }, 'path'],
    ['usb-bitmap', { brightness: 101 }, 'brightness'],
    ['usb-bitmap', { rotation: 45 }, 'rotation'],
    ['usb-bitmap', { baudRate: 1 }, 'baudRate'],
    ['usb-bitmap', { width: 800 }, ''],
    ['framebuffer', { blankTo: undefined }, ''],
    ['framebuffer', { blankFrom: '23:00', blankTo: '23:00' }, ''],
    ['framebuffer', { blankFrom: '24:00' }, 'blankFrom'],
    ['framebuffer', { repaintSeconds: -1 }, 'repaintSeconds'],
    ['framebuffer', { rotation: 45 }, 'rotation'],
    ['framebuffer', { device: 'fb0' }, 'device'],
    ['led-matrix', { brightness: 0 }, 'brightness'],
    ['led-matrix', { brightness: 101 }, 'brightness'],
    ['led-matrix', { rows: 63 }, 'rows'],
    ['led-matrix', { pwmBits: 1 }, 'pwmBits'],
    ['led-matrix', { pixelMapper: 'U-mapper', chainLength: 3 }, 'pixelMapper'],
    ['led-matrix', { hardwareMapping: 'none' }, 'hardwareMapping'],
  ])('%s refuses %j by the path', (name, options, path) => {
    const driver = DISPLAY_DRIVERS.get(name);
    const parsed = driver?.options.safeParse({ ...(driver.example as object), ...options });
    expect(parsed?.error?.issues.map((issue) => issue.path.join('.'))).toEqual([path]);
  });
});
