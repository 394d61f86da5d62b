import { describe, expect, it } from 'vitest';
import { CHARSET, cleanText, withoutAccents } from '../../src/device/display/charset.ts';
import { sceneText } from '../../src/device/display/text.ts';
import { formatAmount, formatTimeLeft } from '../../src/device/display/words.ts';
import { anyChar, fc } from '../support/properties.ts';
import { anyScene, PAYMENT, QR_CODE, SCENES } from './scenes.ts';

describe('text for a screen', () => {
  it('a text for a screen has only characters that a screen can draw, whatever comes', () => {
    fc.assert(
      fc.property(fc.string({ unit: anyChar }), (text) => {
        const clean = cleanText(text);
        expect(Array.from(clean).filter((char) => !CHARSET.includes(char))).toEqual([]);
        expect(cleanText(clean)).toBe(clean);
        expect(withoutAccents(clean)).toMatch(/^[ -~]*$/);
      }),
    );
  });

  it.each([
    ['Nguyễn Văn Ậ', 'Nguyễn Văn Ậ'],
    ['Nguyê\u0303n', 'Nguyễn'],
    ['Müller & Søn', 'Muller & S?n'],
    ['cà phê ☕ 咖啡', 'cà phê ? ??'],
    ['a\x1b[2J\r\nb\u202ec', 'a [2J b c'],
    ['\ud800!', '?!'],
    ['Thanh toa\u0301n \u0111o\u031b\u0300n ha\u0300ng', 'Thanh toán đờn hàng'],
    ['👨‍👩‍👧 ăn phở 🍜️', '? ? ? ăn phở ?'],
    ['שלום\u200f 123 مرحبا', '???? 123 ?????'],
    ['a\u200bb\ufeffc\u00add', 'a b c d'],
    ['Z\u0351\u036b\u0343a\u0336l\u0327go', 'Zalgo'],
    ['ＶＮＤ １２３ ﬁ', 'VND 123 f'],
  ])('%j becomes %j', (text, clean) => {
    expect(cleanText(text)).toBe(clean);
  });

  it('a text for a screen loses its accents for displays that have none', () => {
    expect(withoutAccents('Đã nhận 50.000 ₫ • “Phở” …')).toBe('Da nhan 50.000 d - "Pho" ~');
  });

  it.each([
    [0, '0 ₫'],
    [999, '999 ₫'],
    [50_000, '50.000 ₫'],
    [1_234_567_890, '1.234.567.890 ₫'],
  ])('writes %i đồng as %s', (amount, text) => {
    expect(formatAmount(amount)).toBe(text);
  });

  it.each([
    [0, '0:00'],
    [59.9, '0:59'],
    [-3, '0:00'],
    [272, '4:32'],
    [3600, '60:00'],
  ])('writes %d seconds as %s', (seconds, text) => {
    expect(formatTimeLeft(seconds)).toBe(text);
  });
});

describe('the screen in words', () => {
  it('the screen in words says all of a payment, the payload on a line of its own', () => {
    expect(sceneText({ ...PAYMENT, online: false })).toBe(
      [
        'Quét mã để thanh toán',
        '50.000 ₫',
        'Nội dung: Thanh toan don hang 1234',
        'Người nhận: NGUYEN VAN A',
        'Tài khoản: MB • 0123456789',
        'Còn lại: 4:32',
        'Mất kết nối',
        QR_CODE,
        '',
      ].join('\n'),
    );
  });

  it.each([
    ['starting', 'Đang khởi động'],
    ['connecting', 'Đang kết nối…'],
    ['unlinked', 'Chưa liên kết tài khoản'],
    ['idle', 'Sẵn sàng thanh toán'],
    ['paid', 'Đã nhận'],
    ['expired', 'Mã QR đã hết hạn'],
    ['cancelled', 'Đã hủy thanh toán'],
    ['fault', 'Lỗi'],
  ])('begins with what is going on: %s', (name, title) => {
    const scene = SCENES[name];
    expect(scene && sceneText(scene).split('\n')[0]).toBe(title);
  });

  it('the screen in words is whole lines without control characters, whatever the scene', () => {
    fc.assert(
      fc.property(anyScene, (scene) => {
        expect(sceneText(scene)).toMatch(/^(\P{Cc}+\n)*$/u);
      }),
    );
  });
});
