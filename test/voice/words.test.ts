import { describe, expect, it } from 'vitest';
import { announcementText, NUMBER_MAX, numberWords, vocabulary } from '../../src/device/voice/words.ts';
import { fc } from '../support/properties.ts';
import { HUNDRED_AND_TEN, LARGER } from './number-list.ts';
import { parseNumberWords } from './number-parser.ts';

const RUNS = 50_000;
/** Numbers of every length, and such with many zeros, which uniform ones hardly ever have. */
const anyNumber = fc.oneof(
  fc.integer({ min: 0, max: NUMBER_MAX }),
  fc.integer({ min: 0, max: 15 }).chain((digits) => fc.integer({ min: 0, max: 10 ** digits })),
  fc
    .array(fc.constantFrom<number[]>(0, 0, 0, 1, 4, 5, 10, 11, 14, 15, 20, 21, 24, 25, 100, 105, 121, 999), {
      minLength: 5,
      maxLength: 5,
    })
    .map((groups) => groups.reduce((value, group) => value * 1000 + group, 0)),
);

describe('numberWords', () => {
  it('says 0 to 110 as the list written by hand', () => {
    expect(HUNDRED_AND_TEN.map((_, value) => numberWords(value))).toEqual(HUNDRED_AND_TEN);
    expect(HUNDRED_AND_TEN).toHaveLength(111);
  });

  it('says larger numbers as the list written by hand', () => {
    expect(LARGER.map(([value]) => [value, numberWords(value)])).toEqual(LARGER);
    expect(LARGER.length).toBeGreaterThan(90);
  });

  it(`says ${RUNS} numbers up to 10^15 so that a strict reader reads the same number back`, () => {
    fc.assert(
      fc.property(anyNumber, (value) => {
        expect(parseNumberWords(numberWords(value))).toBe(BigInt(value));
      }),
      { numRuns: RUNS },
    );
  });

  it('says every number below 20,000 so that a strict reader reads the same number back', () => {
    for (let value = 0; value < 20_000; value += 1) {
      if (parseNumberWords(numberWords(value)) !== BigInt(value)) expect.fail(`${value}: ${numberWords(value)}`);
    }
  });

  it('says lẻ in place of each linh where the south is spoken, and nothing else differently', () => {
    expect(numberWords(2_005_105, { zero: 'lẻ' })).toBe('hai triệu không trăm lẻ năm nghìn một trăm lẻ năm');
    fc.assert(
      fc.property(anyNumber, (value) => {
        expect(numberWords(value, { zero: 'lẻ' })).toBe(numberWords(value).replaceAll('linh', 'lẻ'));
      }),
      { numRuns: 2_000 },
    );
  });

  it('uses the words of its vocabulary, each of them', () => {
    const used = new Set([...HUNDRED_AND_TEN, ...LARGER.map(([, words]) => words)].join(' ').split(' '));
    expect([...used].sort()).toEqual(vocabulary('linh').sort());
    expect(vocabulary('lẻ')).toContain('lẻ');
  });

  it('writes its letters composed, as file names and voices expect them', () => {
    for (const word of [...vocabulary('linh'), ...vocabulary('lẻ')]) expect(word).toBe(word.normalize('NFC'));
  });

  it('takes bigints', () => {
    expect(numberWords(1_234n)).toBe('một nghìn hai trăm ba mươi tư');
  });

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, NUMBER_MAX + 1, 10n ** 15n + 1n, -1n])(
    'refuses %s',
    (value) => {
      expect(() => numberWords(value)).toThrow(RangeError);
    },
  );
});

describe('the reader of the test', () => {
  it.each([
    '',
    'mươi một',
    'mười mốt',
    'mười tư',
    'mười năm',
    'mười không',
    'một mươi',
    'hai mươi một',
    'hai mươi bốn',
    'hai mươi năm',
    'hai mươi không',
    'hai mốt',
    'linh năm',
    'một trăm năm',
    'một trăm linh lăm',
    'một trăm linh mốt',
    'một trăm linh không',
    'không trăm linh năm',
    'một nghìn năm',
    'một nghìn linh năm',
    'một nghìn mười',
    'một nghìn không trăm',
    'một nghìn hai nghìn',
    'một triệu không nghìn',
    'một nghìn một triệu',
    'một tỷ một tỷ',
    'một tỷ năm',
    'tỷ',
    'nghìn',
    'một  trăm',
    'một trăm ',
    'không một',
  ])('refuses "%s"', (words) => {
    expect(() => parseNumberWords(words)).toThrow();
  });
});

describe('announcementText', () => {
  it('says what was received, in đồng', () => {
    expect(announcementText(50_000)).toBe('Đã nhận năm mươi nghìn đồng');
    expect(announcementText(1_180_000)).toBe('Đã nhận một triệu một trăm tám mươi nghìn đồng');
    expect(announcementText(105_000, { zero: 'lẻ' })).toBe('Đã nhận một trăm lẻ năm nghìn đồng');
  });
});
