import { join } from 'node:path';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, readyFile } from '../support/processes.ts';

export interface Ready {
  baseUrl: string;
  mqttUrl?: string;
  boxUrl: string;
  consoleUrl: string;
  serviceUrl: string;
  account: { bankAccount: string };
  /** The file is there with --live-demo only. */
  adminTokenFile?: string;
}

export async function up(...more: string[]) {
  const data = await temporaryFolder();
  const ports = [await freePort(), await freePort(), await freePort()];
  const ready = join(data, 'ready.json');
  const args = [
    '--data',
    data,
    '--http-port',
    `${ports[0]}`,
    '--mqtt-port',
    `${ports[1]}`,
    '--box-port',
    `${ports[2]}`,
  ];
  const running = paybox('up', ...args, '--no-open', '--ready-file', ready, ...more);
  return { running, data, ports, at: await readyFile<Ready>(ready, running) };
}
