import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';

const standingAt = async (origin: string) => {
  const answer = await fetch(`${origin}/_mock/faults`);
  return ((await answer.json()) as { standing: { fault: string }[] }).standing.map(({ fault }) => fault);
};

it('what runs already is put right again after a scenario that left faults, also one that failed', async () => {
  const folder = await temporaryFolder();
  const left = join(folder, 'left.yaml');
  const steps = ['fault: { inject: box-offline, times: 50 }', 'fault: { inject: display-slow, for: 1h }'];
  await writeFile(
    left,
    `name: Left\nsteps:\n${[...steps, 'expect: { state: paid, within: 1s }'].map((it) => `  - ${it}\n`).join('')}`,
  );
  const [http, mqtt, box] = [await freePort(), await freePort(), await freePort()];
  const ready = join(folder, 'ready.json');
  const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`, '--box-port', `${box}`];
  const up = paybox('up', '--data', join(folder, 'up'), ...ports, '--no-open', '--ready-file', ready);
  await readyFile(ready, up);
  const [gateway, pages] = [`http://127.0.0.1:${http}`, `http://127.0.0.1:${box}`];
  await fetch(`${gateway}/_mock/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"fault":"sync-late","content":"OTHERS"}',
  });

  const at = ['--gateway', gateway, '--box', pages];
  const failed = await payboxToEnd('bench', 'run', left, ...at);
  expect(failed.output).toContain('PAYBOX-BENCH END passed=0 failed=1 skipped=0 missing=0 exit=1');
  expect([await standingAt(gateway), await standingAt(pages)]).toEqual([['sync-late'], []]);

  const { output } = await payboxToEnd('bench', 'run', 'disk-full', 'magic-contents', 'serial-noise', ...at);
  expect(output).toContain('target at cannot disturb a serial line; give the box a serial panel');
  expect(output).toContain('PAYBOX-BENCH END passed=2 failed=0 skipped=1 missing=0 exit=0');
}, 180_000);

it('a box that makes no faults, and a gateway that knows none, are skipped by name', async () => {
  const status = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', state: 'idle', online: true };
  const account = { bankAccount: '1', bankCode: 'MB', userBankName: 'A' };
  const about = { baseUrl: 'http://127.0.0.1/vqr', partner: { username: 'a', password: 'b' }, account };
  const server = createServer(({ url }, response) => {
    const json = url === '/status' ? status : url === '/_mock/about' ? about : undefined;
    response.writeHead(json === undefined ? 404 : 200).end(JSON.stringify(json ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { output } = await payboxToEnd(
    'bench',
    'run',
    'disk-full',
    'pushed-twice',
    '--gateway',
    origin,
    '--box',
    origin,
  );
  expect(output).toContain('target at cannot order faults at boxes; set faults: true in the configuration of each box');
  expect(output).toContain('target at cannot order faults at the gateway; it has no /_mock/faults');
  expect(output).toContain('PAYBOX-BENCH END passed=0 failed=0 skipped=2 missing=0 exit=0');
});
