import { QRPay } from 'vietnam-qr-pay';
import { expect, it } from 'vitest';
import { crc16 } from '../../src/protocol/crc16.ts';
import { fc } from '../support/properties.ts';

it('QRP-3 the CRC gives the published check value of CRC-16/CCITT-FALSE', () => {
  expect(crc16('123456789')).toBe('29B1');
  expect(crc16('')).toBe('FFFF');
});

it('QRP-3 the CRC agrees with an independent implementation, leading zeros included', () => {
  const texts = fc.string({ unit: 'grapheme-ascii', maxLength: 300 });
  fc.assert(
    fc.property(texts, (text) => {
      expect(crc16(text)).toBe(QRPay.genCRCCode(text));
    }),
    { numRuns: 3000 },
  );
});
