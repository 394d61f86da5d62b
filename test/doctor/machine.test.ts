import { describe, expect, it } from 'vitest';
import { clockFinding, portOf } from '../../src/doctor/machine.ts';

describe('what doctor finds of the machine', () => {
  it('is a clock that stands before the program was made', () => {
    expect(clockFinding(Date.now())).toMatchObject({ result: 'ok' });
    for (const wallMs of [0, Date.UTC(2020, 0, 1), Date.UTC(2025, 0, 2)]) {
      expect(clockFinding(wallMs)).toMatchObject({ result: 'failed', fix: expect.stringContaining('timesyncd') });
    }
  });

  it('is the port that an address means', () => {
    expect(portOf(new URL('mqtts://a.example'))).toBe(8883);
    expect(portOf(new URL('https://a.example'))).toBe(443);
    expect(portOf(new URL('mqtt://a.example:18830'))).toBe(18_830);
  });
});
