import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually, temporaryFolder } from '../support/net.ts';
import { type GatewayAt, signalTo, startConfigured } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { startGateways } from './gateways.ts';

/** Long enough for a few attempts at the burial. */
const WATCHED_MS = 12_000;

describe.skipIf(missing)(`a dead gateway whose database session does not end${note}`, () => {
  const server = postgresServer();

  it('SHA-4 is not buried until that session has ended, and those who try do not bury each other', async () => {
    const databaseUrl = await server().database();
    const cluster = await startGateways({ databaseUrl, gateways: 2 });
    const file = await cluster.fileOf({ cluster: { name: 'dead' } });
    const dead = await startConfigured<GatewayAt>('gateway', file, await temporaryFolder());
    const before = await cluster.rows.runs();
    const run = before.find((it) => it.name === 'dead')?.run;
    const [hung] = await cluster.rows.query<{ pid: number }>(
      'select pid from pg_stat_activity where application_name = $1 limit 1',
      [`paybox ${run}`],
    );
    const pid = hung?.pid ?? 0;
    // As a server process that waits for a disk.
    signalTo(pid, 'SIGSTOP');
    onTestFinished(() => signalTo(pid, 'SIGCONT'));
    await dead.running.stop('SIGKILL');
    const sinceMs = performance.now();
    await eventually('a few attempts', async () => {
      expect((await cluster.rows.runs()).map((it) => it.run)).toEqual(before.map((it) => it.run));
      return performance.now() - sinceMs > WATCHED_MS;
    });
    signalTo(pid, 'SIGCONT');
    await cluster.whole(cluster.gateways);
    const after = await cluster.rows.runs();
    expect(after.map((it) => it.run)).toEqual(before.filter((it) => it.name !== 'dead').map((it) => it.run));
  });
});
