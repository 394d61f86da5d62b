import { describe, expect, it } from 'vitest';
import { Logins } from '../../src/gateway/common/logins.ts';
import { VirtualClock } from '../../src/lib/virtual-clock.ts';
import { keptBytes } from '../support/memory.ts';
import { RIGHT, WRONG } from './logins-fixture.ts';

describe('wrong logins', () => {
  it('TOK-6 THR-2 wrong logins are remembered within a fixed amount of memory', () => {
    const logins = new Logins(new VirtualClock());
    const flood = (from: number) => {
      for (let i = from; i < from + 12_000; i += 1) {
        const address = `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`;
        logins.check({ ...WRONG, username: `${i}`.padEnd(1000, 'x') }, address);
        logins.check({ ...RIGHT, username: `${i}` }, address);
      }
    };
    flood(0);
    const before = keptBytes();
    flood(12_000);
    flood(24_000);
    expect((keptBytes() - before) / 1024).toBeLessThan(4096);
  });
});
