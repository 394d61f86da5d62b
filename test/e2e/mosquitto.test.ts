import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { writeMosquittoConfig } from '../support/mosquitto.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { paybox, readyFile, run } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { ACCOUNT, getJson, PARTNER, walkTheLoop } from './walk.ts';

const { missing, note } = without(PROGRAMS.mosquitto);

describe.skipIf(missing)(`an external broker${note}`, () => {
  it('carries the whole loop between gateway and agent as separate programs', async () => {
    const folder = await temporaryFolder();
    const [mqttPort, httpPort, boxPort] = [await freePort(), await freePort(), await freePort()];
    const logins = { gateway: 'sample-gateway-secret', VVB000001: loginOf('Sample-box-secret-known-to-all') };
    const brokerFile = await writeMosquittoConfig(folder, mqttPort, logins);
    const broker = run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', brokerFile]);
    const partner = await startPartnerServer();
    const url = `mqtt://127.0.0.1:${mqttPort}`;
    const gatewayFile = join(folder, 'gateway.yaml');
    const box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
    const gatewayConfig = {
      http: { port: httpPort },
      mqtt: { url, username: 'gateway', password: 'sample-gateway-secret' },
      dataDir: 'gateway',
      partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: partner.url } }],
      accounts: [ACCOUNT],
      boxes: [{ ...box, account: ACCOUNT.bankAccount }],
    };
    await writeFile(gatewayFile, JSON.stringify(gatewayConfig));
    const agentFile = join(folder, 'agent.yaml');
    const agentConfig = {
      box,
      link: { transport: 'mqtt', url },
      displays: [{ driver: 'png', path: 'screen.png' }],
      http: { port: boxPort },
      dataDir: 'box',
    };
    await writeFile(agentFile, JSON.stringify(agentConfig));

    const gateway = paybox('gateway', '--config', gatewayFile, '--ready-file', join(folder, 'gateway.json'));
    const agent = paybox('agent', '--config', agentFile, '--ready-file', join(folder, 'agent.json'));
    const at = await readyFile<{ baseUrl: string; consoleUrl: string }>(join(folder, 'gateway.json'), gateway);
    const { boxUrl } = await readyFile<{ boxUrl: string }>(join(folder, 'agent.json'), agent);
    await eventually('idle', async () => (await getJson(`${boxUrl}/status`)).state === 'idle').catch((error) => {
      throw new Error(`${error}\n${gateway.output()}\n${agent.output()}\n${broker.output()}`);
    });
    await walkTheLoop({ ...at, boxUrl }, partner.received);

    await gateway.stop('SIGKILL');
    await eventually('PRE-2 the box sees that the gateway has left', async () => {
      return (await getJson(`${boxUrl}/status`)).online === false;
    });
    const again = paybox('gateway', '--config', gatewayFile, '--ready-file', join(folder, 'again.json'));
    await readyFile(join(folder, 'again.json'), again);
    await eventually('registered anew', async () => (await getJson(`${boxUrl}/status`)).online === true, 40_000);
    expect(await agent.stop('SIGTERM')).toBe(0);
    expect(await again.stop('SIGTERM')).toBe(0);
  });
});
