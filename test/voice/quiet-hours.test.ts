import { describe, expect, it } from 'vitest';
import { quietHoursOptions } from '../../src/device/voice/registry.ts';
import { isWithin } from '../../src/lib/clock.ts';

const quietAt = (from: string, to: string, hours: number, minutes: number) =>
  isWithin(quietHoursOptions.parse({ from, to }), new Date(2025, 5, 1, hours, minutes, 59, 999).getTime());

describe('quiet hours', () => {
  it.each([
    [21, 59, false],
    [22, 0, true],
    [23, 59, true],
    [0, 0, true],
    [5, 59, true],
    [6, 0, false],
    [12, 0, false],
  ])('from 22:00 to 06:00 hold at %i:%i: %s', (hours, minutes, quiet) => {
    expect(quietAt('22:00', '06:00', hours, minutes)).toBe(quiet);
  });

  it.each([
    [11, 59, false],
    [12, 0, true],
    [13, 29, true],
    [13, 30, false],
    [0, 0, false],
  ])('from 12:00 to 13:30 hold at %i:%i: %s', (hours, minutes, quiet) => {
    expect(quietAt('12:00', '13:30', hours, minutes)).toBe(quiet);
  });

  it('quiet hours end at midnight when configured so', () => {
    expect([quietAt('22:00', '00:00', 23, 59), quietAt('22:00', '00:00', 0, 0)]).toEqual([true, false]);
  });

  it.each(['24:00', '6:00', '06:60', '0600', '', '22:00 '])('quiet hours do not begin at "%s"', (from) => {
    expect(quietHoursOptions.safeParse({ from, to: '07:00' }).success).toBe(false);
  });

  it('quiet hours do not end when they begin', () => {
    expect(quietHoursOptions.safeParse({ from: '07:00', to: '07:00' }).success).toBe(false);
  });
});
