import { expect, it } from 'vitest';
import { startGateways } from '../cluster/gateways.ts';
import { eventually } from '../support/net.ts';
import { type GatewayAt, startConfigured } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';

const server = missing ? undefined : postgresServer();

it.skipIf(missing)(
  `STO-2 a gateway of several that was frozen starts again in its process, at its port, and serves${note}`,
  async () => {
    const databaseUrl = (await server?.().database()) ?? '';
    const cluster = await startGateways({ databaseUrl, gateways: 1 });
    const frozen = await startConfigured<GatewayAt>('gateway', {
      ...(await cluster.fileOf()),
      ...{ http: { port: 0 }, cluster: { name: 'frozen' } },
    });
    const { child } = frozen.running;
    await cluster.rows.whole(['gw-1', 'frozen']);
    child.kill('SIGSTOP');
    await cluster.rows.whole(['gw-1']);
    child.kill('SIGCONT');
    await cluster.rows.whole(['gw-1', 'frozen']);
    await eventually('it to serve again', async () => {
      const answer = await fetch(new URL('/readyz', frozen.at.consoleUrl)).catch(() => undefined);
      return answer?.status === 200;
    });
    expect(frozen.running.output()).toContain('"event":"gateway-superseded"');
    expect(child.exitCode).toBeNull();
    expect(await frozen.running.stop()).toBe(0);
    await cluster.rows.whole(['gw-1']);
  },
);
