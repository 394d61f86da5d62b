import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { StorePlace } from '../../src/gateway/store/store.ts';
import { NODE } from '../benchmarks/fixture.ts';
import { type LogLine, Program } from '../kill/program.ts';
import { freePort } from '../support/net.ts';
import { cliScript } from '../support/program-code.ts';
import { ACCOUNT, BOXES, OTHER_ACCOUNT } from './harness.ts';

/** A gateway as a program of its own, on ports that stay the same; callbacks of its partner go to `url`. */
export async function gatewayProgram(
  { dataDir, databaseUrl }: StorePlace,
  url: string,
  change: Record<string, unknown> = {},
) {
  const [http, mqtt] = [await freePort(), await freePort()];
  const partner = { username: 'demo', password: 'demo-secret' };
  const accounts = [ACCOUNT.bankAccount, OTHER_ACCOUNT.bankAccount];
  const config = {
    http: { port: http },
    mqtt: { embedded: { port: mqtt } },
    dataDir,
    databaseUrl,
    accounts: [ACCOUNT, OTHER_ACCOUNT],
    boxes: BOXES,
    partners: [{ ...partner, accounts, callback: { url } }],
    ...change,
  };
  const file = join(dataDir, 'gateway.yaml');
  await writeFile(file, JSON.stringify(config));
  const log: LogLine[] = [];
  const program = new Program({
    name: 'gateway',
    command: NODE,
    args: [cliScript(), 'gateway', '--config', file],
    isReady: (line) => line.event === 'ready',
    retryCodes: [],
    onLine: (line) => void log.push(line),
  });
  onTestFinished(() => program.kill());
  program.start();
  await program.ready();
  const origin = `http://127.0.0.1:${http}`;
  return { program, log, reach: { origin, baseUrl: `${origin}/vqr`, mqttUrl: `mqtt://127.0.0.1:${mqtt}` } };
}
