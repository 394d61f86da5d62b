import { describe, expect, it } from 'vitest';
import { LINK_SCHEMES } from '../../src/device/agent/transports/registry.ts';
import { clockFinding } from '../../src/device/doctor/machine.ts';
import { portOfUrl } from '../../src/lib/tls.ts';

describe('what doctor finds of the machine', () => {
  it('doctor finds a clock that stands before the program was made', () => {
    expect(clockFinding(Date.now())).toMatchObject({ result: 'ok' });
    for (const wallMs of [0, Date.UTC(2020, 0, 1), Date.UTC(2025, 0, 2)]) {
      expect(clockFinding(wallMs)).toMatchObject({ result: 'failed', fix: expect.stringContaining('timesyncd') });
    }
  });

  it('doctor finds the port that an address means', () => {
    expect(portOfUrl(new URL('mqtts://a.example'), LINK_SCHEMES)).toBe(8883);
    expect(portOfUrl(new URL('https://a.example'), LINK_SCHEMES)).toBe(443);
    expect(portOfUrl(new URL('mqtt://a.example:18830'), LINK_SCHEMES)).toBe(18_830);
  });
});
