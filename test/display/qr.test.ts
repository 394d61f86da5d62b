import { describe, expect, it } from 'vitest';
import { fitQr, qrRoomIn } from '../../src/device/display/qr.ts';
import { fc } from '../support/properties.ts';
import { payloadOf, QR_CODE } from './scenes.ts';

const LEVELS = ['L', 'M', 'Q', 'H'];

describe('a QR in a square', () => {
  it('a QR in a square keeps whole modules, a quiet zone and the square, for any payload and room', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 0, max: 900 }), (length, space) => {
        const fit = fitQr(payloadOf(length), space);
        if (!fit.ok) {
          expect(fit.sideMin).toBeGreaterThan(space);
          return;
        }
        const { qr } = fit;
        expect(qr.side).toBe((qr.modules + 2 * qr.quietModules) * qr.modulePixels);
        expect(qr.side).toBeLessThanOrEqual(space);
        const { modulePixels, quietModules } = qr;
        expect(qrRoomIn(payloadOf(length), space)).toEqual({ modulePixels, quietModules });
        expect(qr.quietModules).toBeGreaterThanOrEqual(2);
        expect(qr.quietModules).toBeLessThanOrEqual(4);
        expect(qr.dark.length).toBe(qr.modules ** 2);
      }),
      { numRuns: 60 },
    );
  });

  it('a QR in a square has stronger correction only where it is free', () => {
    const weakest = fitQr(QR_CODE, 450, 'L');
    const strongest = fitQr(QR_CODE, 450);
    const roomy = fitQr(QR_CODE, 80);
    if (!weakest.ok || !strongest.ok || !roomy.ok) throw new Error('no room');
    expect(strongest.qr.modulePixels).toBe(weakest.qr.modulePixels);
    expect(LEVELS.indexOf(roomy.qr.ecc)).toBeGreaterThan(LEVELS.indexOf('L'));
    const sizes = new Set<number>();
    for (let space = 41; space < 500; space += 1) {
      const plain = fitQr(QR_CODE, space, 'L');
      const free = fitQr(QR_CODE, space);
      if (!plain.ok || !free.ok) throw new Error('no room');
      expect([free.qr.modulePixels, free.qr.quietModules]).toEqual([plain.qr.modulePixels, plain.qr.quietModules]);
      sizes.add(free.qr.modulePixels);
    }
    expect(sizes.size).toBeGreaterThan(5);
  });

  it('the quiet zone of a QR in a small square shrinks to 2 modules, and not below', () => {
    const quiet = (space: number) => {
      const fit = fitQr(QR_CODE, space);
      return fit.ok ? fit.qr.quietModules : undefined;
    };
    expect([45, 44, 43, 42, 41, 40].map(quiet)).toEqual([4, 3, 3, 2, 2, undefined]);
    expect([90, 89, 86, 85, 82, 81].map(quiet), 'for a second pixel too').toEqual([4, 3, 3, 2, 2, 4]);
    expect([135, 134].map(quiet), 'but not for a third').toEqual([4, 4]);
  });

  it('a QR that does not fit is refused with its modules and pixels', () => {
    expect(fitQr(QR_CODE, 40)).toEqual({
      ok: false,
      sideMin: 41,
      reason:
        'the QR code has 37 x 37 modules and needs 41 x 41 pixels with a quiet zone of 2; this display gives it 40 x 40',
    });
    expect(fitQr('x'.repeat(5000), 800)).toMatchObject({ ok: false, reason: expect.stringContaining('5000') });
  });
});
