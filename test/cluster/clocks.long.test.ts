import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { testGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { postgresServer } from '../support/stores.ts';
import { type Health, HOUR_MS, missing, note, settable, timesOf } from './clocks-fixture.ts';

describe.skipIf(missing)(`clocks that are not that of the database${note}`, () => {
  const server = postgresServer();
  it('TOK-2 a gateway alone whose clock jumps goes on with its tokens, and says so', async () => {
    const { clock, setAhead } = settable();
    const gateway = await testGateway({ clock, config: { databaseUrl: await server().database(), mqtt: null } });
    expect((await gateway.generate()).status).toBe(200);
    for (const ms of [HOUR_MS, -HOUR_MS]) {
      setAhead(ms);
      expect((await gateway.generate()).status).toBe(200);
      const { iat } = timesOf(await gateway.token());
      expect(Math.abs(iat * 1000 - systemClock.wallMs())).toBeLessThan(5_000);
    }
    const health = async () => (await (await fetch(`${gateway.origin}/healthz`)).json()) as Health;
    await eventually('the log to say so', () => gateway.logged('clock-skewed')[0]);
    expect(gateway.logged('clock-skewed')).toMatchObject([{ level: 'warn', fix: expect.stringContaining('NTP') }]);
    expect(await health()).toMatchObject({
      status: 'ok',
      clock: { problem: expect.stringContaining('3600 s behind') },
    });
    const metrics = await (await fetch(`${gateway.origin}/metrics`)).text();
    const [, seconds] = /^paybox_gateway_clock_ahead_seconds (\S+)$/m.exec(metrics) ?? [];
    expect(Math.abs(Number(seconds) + 3_600)).toBeLessThan(1);
    setAhead(0);
    await eventually('the log to say so', () => gateway.logged('clock-recovered')[0]);
    expect((await health()).clock).toEqual({ aheadMs: expect.any(Number) });
  });
});
