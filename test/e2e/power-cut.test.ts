import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { BOX1, SEND_QR, testGateway } from '../gateway/harness.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { whyNoNamespaces } from '../support/netem.ts';
import { readyFile, run } from '../support/processes.ts';
import { cliScript } from '../support/program-code.ts';
import { PATIENCE_MS, pushOf } from './trade.ts';
import { getJson } from './walk.ts';

const missing = whyNoNamespaces();
const BOOTS = ['3f0b1c52-8d6b-4b7e-8f0e-5d2f1c7b9a01', '3f0b1c52-8d6b-4b7e-8f0e-5d2f1c7b9a02'] as const;
/**
 * Starts the program in a boot of this id, without the word of systemd that the clock is right: only that differs, as after
 * a power cut without a clock that runs on.
 */
const IN_BOOT = `mount --bind "$0" /proc/sys/kernel/random/boot_id &&
  { [ ! -d /run/systemd ] || mount -t tmpfs none /run/systemd; } && exec "$@"`;

interface Status {
  state: string;
  online: boolean;
  order: { orderId: string } | null;
  display: { ok: boolean };
}

it.skipIf(missing !== undefined)(
  `AGT-8 a QR from before a power cut waits for the time of the gateway, one from before a restart of the agent does not${missing === undefined ? '' : ` (${missing})`}`,
  { timeout: 300_000 },
  async () => {
    const [folder, httpPort, gatewayPort] = [await temporaryFolder(), await freePort(), await freePort()];
    const { terminalCode, serialNumber, secret } = BOX1;
    const agentFile = join(folder, 'agent.yaml');
    const config = {
      box: { terminalCode, serialNumber, secret },
      link: { transport: 'http', url: `http://127.0.0.1:${gatewayPort}` },
      displays: [{ driver: 'browser' }],
      http: { port: httpPort },
      dataDir: join(folder, 'box'),
    };
    await writeFile(agentFile, JSON.stringify(config));
    const gatewayOf = () => testGateway({ dataDir: join(folder, 'gateway'), config: { http: { port: gatewayPort } } });
    let runs = 0;
    const startBox = async (boot: string) => {
      runs += 1;
      const [bootFile, ready] = [join(folder, `boot-${runs}`), join(folder, `ready-${runs}.json`)];
      await writeFile(bootFile, `${boot}\n`);
      const agent = [process.execPath, cliScript(), 'agent', '--config', agentFile, '--ready-file', ready];
      const running = run('unshare', ['-m', 'sh', '-c', IN_BOOT, bootFile, ...agent]);
      const { boxUrl } = await readyFile<{ boxUrl: string }>(ready, running);
      const status = () => getJson<Status>(`${boxUrl}/status`);
      await eventually('the display', async () => (await status()).display.ok, PATIENCE_MS);
      return { running, status };
    };

    const gateway = await gatewayOf();
    const first = await startBox(BOOTS[0]);
    await eventually('online', async () => (await first.status()).online, PATIENCE_MS);
    expect((await gateway.post(SEND_QR, pushOf('DH1'))).body.status).toBe('SUCCESS');
    await first.running.stop('SIGKILL');
    await gateway.close();

    const sameBoot = await startBox(BOOTS[0]);
    expect(await sameBoot.status()).toMatchObject({ state: 'showing', online: false, order: { orderId: 'DH1' } });
    await sameBoot.running.stop('SIGKILL');

    const otherBoot = await startBox(BOOTS[1]);
    expect(await otherBoot.status()).toMatchObject({ state: 'registering', online: false, order: null });
    await gatewayOf();
    await eventually('the QR', async () => (await otherBoot.status()).order?.orderId === 'DH1', PATIENCE_MS);
    await otherBoot.running.stop('SIGKILL');
  },
);
