import { describe, expect, it } from 'vitest';
import type { CharacterFrame, PanelQr, PanelSurface } from '../../../src/device/display/contract.ts';
import { fitOnPanel, layoutPanel, picturePanel } from '../../../src/device/display/layout/panel.ts';
import { qrTextOf } from '../../../src/device/scene.ts';
import { fc } from '../../support/properties.ts';
import { scene } from '../opened.ts';
import { expectDecodes, textPicture } from '../pictures.ts';
import { anyScene, DUE, MARKED, PAYMENT, payloadOf, QR_CODE, SCENES } from '../scenes.ts';

const PANEL: PanelSurface = { kind: 'panel', qr: { sidePixels: 200, charsMax: 300 }, accents: true };
const PLAIN: PanelSurface = { ...PANEL, accents: false };

const frameOf = (name: string, surface = PANEL) => {
  const it = scene(name);
  const text = it.kind === 'enrol' ? undefined : qrTextOf(it);
  return layoutPanel(it, text === undefined ? undefined : fitOnPanel(surface, text), surface);
};

describe('what a panel is told', () => {
  it('a panel gets the texts of a payment and its payload', () => {
    expect(frameOf('payment')).toEqual({
      kind: 'panel',
      screen: 'payment',
      title: 'Quét mã để thanh toán',
      amount: '50.000 ₫',
      content: PAYMENT.content,
      holder: 'NGUYEN VAN A',
      account: 'MB • 0123456789',
      timeLeft: 'Còn lại 4:32',
      hint: '',
      offline: '',
      mark: '',
      qrCode: PAYMENT.qrCode,
    });
  });

  it('a panel says on every screen what it is, and draws a QR on each that has one, but for the code of an enrolment', () => {
    for (const name of Object.keys(SCENES)) {
      const frame = frameOf(name);
      expect(frame.title === '', name).toBe(name === 'blank');
      const it = scene(name);
      expect(frame.qrCode, name).toBe(it.kind === 'enrol' ? null : (qrTextOf(it) ?? null));
    }
    expect(frameOf('idle offline').offline).toBe('Mất kết nối');
    expect(frameOf('unlinked')).toMatchObject({
      content: 'VVB000001 VVB900001',
      hint: expect.stringContaining('Liên kết'),
    });
    expect(frameOf('fault')).toMatchObject({ content: 'STORAGE_FAULT', hint: expect.stringContaining('thẻ nhớ') });
  });

  it('a panel gets ASCII where its fonts have no Vietnamese letters', () => {
    expect(frameOf('payment', PLAIN)).toMatchObject({ title: 'Quet ma de thanh toan', amount: '50.000 d' });
    fc.assert(
      fc.property(anyScene, (any) => {
        const { qrCode: _, ...texts } = layoutPanel(any, undefined, PLAIN);
        for (const text of Object.values(texts)) expect(text).toMatch(/^[ -~]*$/);
      }),
    );
  });

  it('a panel never gets a control character', () => {
    fc.assert(
      fc.property(anyScene, (any) => {
        const { qrCode: _, ...texts } = layoutPanel(any, undefined, PANEL);
        for (const text of Object.values(texts)) expect(text).not.toMatch(/\p{Cc}/u);
      }),
    );
  });

  it('a panel says so instead where it cannot draw the QR', () => {
    const tiny = { ...PANEL, qr: { sidePixels: 40, charsMax: 300 } };
    expect(frameOf('payment', tiny)).toMatchObject({
      qrCode: null,
      hint: 'Màn hình quá nhỏ cho mã QR',
      amount: '50.000 ₫',
    });
  });
});

describe('whether a panel can draw a payload', () => {
  const reason = (surface: PanelSurface, payload: string) => {
    const fit = fitOnPanel(surface, payload);
    return fit.ok ? undefined : fit.reason;
  };

  it('the QR that a panel can draw depends on its component, its square and its memory, which counts bytes', () => {
    expect(reason(PANEL, payloadOf(300))).toBeUndefined();
    expect(reason(PANEL, payloadOf(301))).toBe("the QR code has 301 characters; this panel's QR component takes 300");
    expect(reason(PANEL, `${payloadOf(298)}é`)).toBeUndefined();
    expect(reason(PANEL, `${payloadOf(298)}ế`)).toContain('301 characters');
    expect(reason({ ...PANEL, qr: null }, PAYMENT.qrCode)).toContain('no QR component');
    expect(reason({ ...PANEL, qr: { sidePixels: 40, charsMax: 300 } }, PAYMENT.qrCode)).toContain('40 x 40');
  });
});

describe('how large a panel draws a payload', () => {
  const sizeOf = (qr: PanelQr, payload: string) => {
    const fit = fitOnPanel({ ...PANEL, qr }, payload);
    if (!fit.ok) throw new Error(fit.reason);
    return fit.qr;
  };

  it('the code of a panel is no larger than the panel can draw', () => {
    const qr = { sidePixels: 576, charsMax: 300 };
    const [free, capped] = [sizeOf(qr, QR_CODE), sizeOf({ ...qr, modulePixelsMax: 8 }, QR_CODE)];
    expect(free.modulePixels).toBeGreaterThan(8);
    expect(capped).toEqual({ ...free, modulePixels: 8, side: 8 * (free.modules + 2 * free.quietModules) });
    expect(sizeOf({ ...qr, modulePixelsMax: 64 }, QR_CODE)).toEqual(free);
  });

  it('the code of a panel has the size that the panel chooses', () => {
    const qr = {
      sidePixels: 292,
      charsMax: 458,
      modulePixelsMax: 4,
      modulesFor: (bytes: number) => (bytes < 155 ? 45 : 73),
    };
    expect(sizeOf(qr, payloadOf(154))).toMatchObject({ version: 7, modules: 45, modulePixels: 4, ecc: 'L' });
    expect(sizeOf(qr, payloadOf(155))).toMatchObject({ version: 14, modules: 73, modulePixels: 4, ecc: 'L' });
    expect(sizeOf(qr, payloadOf(458)).dark.length).toBe(73 * 73);
    expect(fitOnPanel({ ...PANEL, qr: { ...qr, sidePixels: 72 } }, payloadOf(155))).toMatchObject({
      ok: false,
      reason: 'the panel draws 73 x 73 modules; its square has 72 x 72 pixels',
    });
  });
});

describe("a panel's picture on the box's own pages", () => {
  const MODULE_PIXELS = 4;
  /** The half blocks of a page as pixels; letters are left out. */
  const pixelsOf = ({ columns, rows, cells }: CharacterFrame) => {
    const [width, height] = [columns * MODULE_PIXELS, rows * 2 * MODULE_PIXELS];
    const data = new Uint8Array(width * height * 4).fill(255);
    for (let y = 0; y < height; y += 1) {
      for (let x = 0; x < width; x += 1) {
        const row = Math.floor(y / MODULE_PIXELS);
        const cell = cells[Math.floor(row / 2) * columns + Math.floor(x / MODULE_PIXELS)];
        const shade = cell?.char !== '▀' ? 0xffffff : row % 2 === 0 ? cell.ink : cell.paper;
        data.fill(shade & 0xff, (y * width + x) * 4, (y * width + x) * 4 + 3);
      }
    }
    return { width, height, data };
  };

  it.each([94, 142, 280, 458])(
    'the picture of a panel shows a payload of %d characters so that it can be read',
    (length) => {
      const frame = { ...frameOf('payment'), qrCode: payloadOf(length) };
      const picture = picturePanel(frame);
      expect(picture.cells.length).toBe(picture.columns * picture.rows);
      expectDecodes(pixelsOf(picture), frame.qrCode);
    },
  );

  it('the picture of a panel shows its texts, one to a line, without the empty ones', () => {
    const frame = frameOf('paid');
    expect(textPicture(picturePanel(frame)).split('\n')).toEqual([
      'Đã nhận',
      '50.000 ₫',
      PAYMENT.content,
      'NGUYEN VAN A',
      'MB • 0123456789',
      '',
    ]);
  });
});

describe('a panel at a sandbox', () => {
  it('AGT-15 a panel at a sandbox begins every title with its mark', () => {
    for (const [name, scene] of Object.entries(MARKED)) {
      const frame = layoutPanel(scene, undefined, { kind: 'panel', qr: null, accents: false });
      expect(frame.title, name).toMatch(/^SANDBOX - ./);
    }
  });

  it('AGT-5 a panel says in its hint what an amount lacks', () => {
    const hintOf = (name: string) =>
      layoutPanel(DUE[name] ?? PAYMENT, undefined, { kind: 'panel', qr: null, accents: true }).hint;
    expect(hintOf('paid, something missing')).toBe('Còn thiếu 20.000 ₫');
    expect(hintOf('paid, too much')).toBe('Thừa 5.000 ₫');
  });
});
