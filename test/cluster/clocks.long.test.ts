import { describe, expect, it } from 'vitest';
import { gatewayFindings } from '../../src/device/doctor/gateway.ts';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import { testGateway } from '../gateway/harness.ts';
import { eventually } from '../support/net.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { ADMIN_TOKEN, PARTNER, type Row, startGateways, type TestGateway, tokenAt } from './gateways.ts';

const HOUR_MS = 3_600_000;
/** The token of a call, and the times in it. */
const timesOf = (token: string) =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as { iat: number; exp: number };

/** A calendar that a test sets; durations are those of the machine. */
function settable(aheadMs = 0) {
  let ahead = aheadMs;
  const clock: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + ahead };
  const setAhead = (ms: number) => {
    ahead = ms;
  };
  return { clock, setAhead };
}

interface Health {
  status: string;
  clock?: { aheadMs: number; problem?: string };
}

describe.skipIf(missing)(`clocks that are not that of the database${note}`, () => {
  const server = postgresServer();
  const healthOf = async ({ admin }: Pick<TestGateway, 'admin'>) => {
    const { status, body } = await admin('/healthz');
    return { ...(body as Health), httpStatus: status };
  };

  it('TOK-2 SHA-10 gateways whose clocks are hours apart take the tokens of each other, and say which clock is wrong', async () => {
    const [behind, ahead] = [settable(-HOUR_MS), settable(2 * HOUR_MS)];
    const cluster = await startGateways({
      ...{ databaseUrl: await server().database(), gateways: 3, accounts: 6 },
      clocks: [behind.clock, ahead.clock],
    });
    const [first, second, third] = cluster.gateways as [TestGateway, TestGateway, TestGateway];
    for (const at of cluster.gateways) {
      const { token } = await tokenAt(at, PARTNER);
      const { iat, exp } = timesOf(token);
      expect(exp - iat).toBe(300);
      expect(Math.abs(iat * 1000 - systemClock.wallMs())).toBeLessThan(5_000);
      const answers = cluster.accounts.map(async ({ bankAccount }, i) => {
        const order = { bankAccount, bankCode: 'MB', userBankName: 'SHOP', amount: 5_000, content: `DH${i}` };
        const answer = await fetch(`${at.baseUrl}/api/qr/generate-customer`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ ...order, orderId: `DH${i}`, transType: 'C', qrType: 0 }),
        });
        return answer.status;
      });
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
    }
    for (const [gateway, aheadMs] of [
      [first, -HOUR_MS],
      [second, 2 * HOUR_MS],
      [third, 0],
    ] as const) {
      const { status, clock } = await healthOf(gateway);
      expect(status).toBe('ok');
      expect(Math.abs((clock?.aheadMs ?? Number.NaN) - aheadMs)).toBeLessThan(1_000);
      expect(clock?.problem).toEqual(
        aheadMs === 0 ? undefined : expect.stringContaining(`${Math.abs(aheadMs) / 1000} s`),
      );
      const told = gateway.log.filter(({ event }) => event === 'clock-skewed');
      expect(told).toHaveLength(aheadMs === 0 ? 0 : 1);
    }
    await eventually('the rows to have the clocks of all', async () => {
      const rows = await cluster.rows.query<{ ahead_ms: number | null }>('select ahead_ms from cluster.gateways');
      const seen = rows.map((it) => Math.round((it.ahead_ms ?? Number.NaN) / HOUR_MS)).toSorted((a, b) => a - b);
      return seen.join() === '-1,0,2';
    });
    const { port } = new URL(third.origin);
    const file = {
      mode: 'sandbox',
      http: { host: '127.0.0.1', port: Number(port) },
      cluster: { name: third.name },
      sources: [],
    } as const;
    const findings = await gatewayFindings({ ...file, dataDir: third.dataDir, adminToken: ADMIN_TOKEN });
    expect(findings.find(({ check }) => check === 'cluster')).toMatchObject({
      result: 'warning',
      found: expect.stringContaining(`the clock of ${first.name} is 3600 s behind`),
      fix: expect.stringContaining('NTP'),
    });
    ahead.setAhead(0);
    await eventually('it to be right again', () => second.log.find(({ event }) => event === 'clock-recovered'));
    expect((await healthOf(second)).clock?.problem).toBeUndefined();
    ahead.setAhead(HOUR_MS);
    await eventually('the next episode', () => second.log.filter(({ event }) => event === 'clock-skewed').length === 2);
  });

  it('TOK-2 a gateway with a store of its own has no other clock to compare with', async () => {
    const gateway = await testGateway({ config: { mqtt: null } });
    const health = (await (await fetch(`${gateway.origin}/healthz`)).json()) as Row;
    expect(Object.keys(health)).toEqual(['status', 'mode', 'callbacks']);
  });

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
