import { describe, expect, it } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { type AgentAt, type GatewayAt, run, START_MS, startConfigured } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { ACCOUNT, getJson, PARTNER, walkTheLoop } from './walk.ts';

const { missing, note } = without(PROGRAMS.mosquitto);

describe.skipIf(missing)(`an external broker${note}`, () => {
  it('an external broker carries the whole loop between gateway and agent as separate programs', async () => {
    const folder = await temporaryFolder();
    const [mqttPort, httpPort, boxPort] = [await freePort(), await freePort(), await freePort()];
    const logins = { gateway: 'sample-gateway-secret', VVB000001: loginOf('Sample-box-secret-known-to-all') };
    const brokerFile = await writeMosquittoConfig(folder, mqttPort, logins);
    const broker = run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', brokerFile]);
    const partner = await startPartnerServer();
    const url = `mqtt://127.0.0.1:${mqttPort}`;
    const box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
    const gatewayConfig = {
      http: { port: httpPort },
      mqtt: { url, username: 'gateway', password: 'sample-gateway-secret' },
      dataDir: 'gateway',
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: partner.url } }],
      accounts: [ACCOUNT],
      boxes: [{ ...box, account: ACCOUNT.bankAccount }],
    };
    const agentConfig = {
      box,
      link: { transport: 'mqtt', url },
      displays: [{ driver: 'png', path: 'screen.png' }],
      http: { port: boxPort },
      dataDir: 'box',
    };
    const started = await startConfigured<GatewayAt>('gateway', gatewayConfig, folder);
    const { running: agent, at } = await startConfigured<AgentAt>('agent', agentConfig, folder);
    const [gateway, { boxUrl }] = [started.running, at];
    await eventually('idle', async () => (await getJson(`${boxUrl}/status`)).state === 'idle').catch((error) => {
      throw new Error(`${error}\n${gateway.output()}\n${agent.output()}\n${broker.output()}`);
    });
    await walkTheLoop({ ...started.at, boxUrl }, partner.received);

    await gateway.stop('SIGKILL');
    await eventually('PRE-2 the box sees that the gateway has left', async () => {
      return (await getJson(`${boxUrl}/status`)).online === false;
    });
    const { running: again } = await started.again();
    await eventually('registered anew', async () => (await getJson(`${boxUrl}/status`)).online === true, START_MS);
    expect(await agent.stop('SIGTERM')).toBe(0);
    expect(await again.stop('SIGTERM')).toBe(0);
  });
});
