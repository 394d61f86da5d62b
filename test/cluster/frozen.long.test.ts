import { describe, expect, it } from 'vitest';
import { eventually, temporaryFolder } from '../support/net.ts';
import { type GatewayAt, startConfigured } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { ADMIN_TOKEN, generate, startGateways, type TestGateway } from './gateways.ts';
import { lateWrites, logWrites, writesOf } from './write-history.ts';

describe.skipIf(missing)(`a gateway that was frozen${note}`, () => {
  const server = postgresServer();

  it('SHA-5 is buried, writes nothing more, and begins again under its name when it wakes', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 1 });
    const [witness] = cluster.gateways as [TestGateway];
    await logWrites(server(), databaseUrl);
    const file = await cluster.fileOf({ cluster: { name: 'sleeper' } });
    const sleeper = await startConfigured<GatewayAt>('gateway', file, await temporaryFolder());
    const run = await eventually('the run of the sleeper', () => cluster.rows.runOf('sleeper'));
    const ordersAt = async (content: string) => {
      const answer = await fetch(new URL('/admin/v1/accounts', sleeper.at.consoleUrl), {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify({ bankAccount: content, bankCode: 'MB', userBankName: 'SHOP', partner: 'shop' }),
      });
      return answer.status;
    };
    expect(await ordersAt('2000000001')).toBe(201);
    const ready = async () => (await fetch(new URL('/readyz', sleeper.at.consoleUrl))).status;
    expect(await ready()).toBe(200);
    sleeper.running.child.kill('SIGSTOP');
    // It has this call when it wakes.
    const late = ordersAt('2000000002').catch(() => 0);
    await eventually('its burial', async () => (await cluster.rows.runs()).every((it) => it.run !== run));
    expect(witness.log.filter(({ event }) => event === 'gateway-buried')).toMatchObject([{ run }]);
    expect(await generate(witness, cluster.accounts[0]?.bankAccount ?? '')).toBe(200);
    sleeper.running.child.kill('SIGCONT');
    // A proxy that asks first leads no calls here.
    expect(await ready().catch(() => 0)).not.toBe(200);
    const next = await eventually('a new run of it', async () => {
      const found = await cluster.rows.runOf('sleeper');
      return found !== undefined && found !== run ? found : undefined;
    });
    expect(next).not.toBe(run);
    expect(await late).not.toBe(201);
    expect(sleeper.running.output()).toContain('gateway-superseded');
    const writes = await writesOf(server(), databaseUrl);
    expect(writes.some((it) => it.run === run && it.what === 'buried')).toBe(true);
    expect(lateWrites(writes)).toEqual([]);
    const accounts = await server().run(databaseUrl, `select 1 from accounts where bank_account = '2000000002'`);
    expect(accounts).toEqual([]);
  });

  it('SHA-5 is not buried while it is frozen for less than 2.5 s', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 1 });
    const [witness] = cluster.gateways as [TestGateway];
    const file = await cluster.fileOf({ cluster: { name: 'sleeper' } });
    const sleeper = await startConfigured<GatewayAt>('gateway', file, await temporaryFolder());
    const run = await cluster.rows.runOf('sleeper');
    sleeper.running.child.kill('SIGSTOP');
    const [row] = await cluster.rows.query<{ seen: string }>(
      `select seen_at::text as seen from cluster.gateways where name = 'sleeper'`,
    );
    await eventually('a second to pass', async () => {
      const sql = `select 1 from cluster.gateways where name = 'sleeper' and clock_timestamp() > $1::timestamptz + interval '1 s'`;
      return (await cluster.rows.query(sql, [row?.seen])).length === 1;
    });
    sleeper.running.child.kill('SIGCONT');
    await cluster.rows.whole([witness.name, 'sleeper']);
    expect(await cluster.rows.runOf('sleeper')).toBe(run);
  });
});
