import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/net.ts';

const src = pathToFileURL(resolve(import.meta.dirname, '../../src')).href;

/** Starts a gateway and prints which of its modules were loaded. */
const program = (dataDir: string, sandbox: boolean) => `
import { registerHooks } from 'node:module';
const loaded = [];
registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context); } });
const { startGateway } = await import('${src}/gateway/gateway.ts');
const { parseGatewayConfig } = await import('${src}/gateway/config/config.ts');
const { systemClock } = await import('${src}/lib/clock.ts');
const { systemRandom } = await import('${src}/lib/random.ts');
const log = { info() {}, warn() {}, error() {}, with: () => log };
const config = { dataDir: ${JSON.stringify(dataDir)}, sandbox: ${sandbox}, http: { port: 0 }, mqtt: { embedded: { port: 0 } } };
const gateway = await startGateway(parseGatewayConfig(config, 'test'), { clock: systemClock, random: systemRandom, log });
const faults = await (await fetch(gateway.origin + '/_mock/faults')).json();
await gateway.close();
console.log(JSON.stringify({ loaded: loaded.flatMap((url) => url.split('/gateway/faults/').slice(1)), offered: faults.faults.length }));
`;

it.each([
  [false, { loaded: ['routes.ts'], offered: 0 }],
  [true, { loaded: expect.arrayContaining(['fault-injection.ts', 'routes.ts']), offered: expect.any(Number) }],
])('FLT-1 loads faults, beyond the routes that refuse them, only in a sandbox: %s', async (sandbox, expected) => {
  const dataDir = join(await temporaryFolder(), 'data');
  const options = { encoding: 'utf8', timeout: 60_000, input: program(dataDir, sandbox) } as const;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module'], options);
  expect(stderr).toBe('');
  const found = JSON.parse(stdout);
  expect(found).toEqual(expected);
  expect(found.offered > 0).toBe(sandbox);
});
