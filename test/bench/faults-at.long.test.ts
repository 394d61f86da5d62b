import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { screenProbe } from '../../src/bench/engine/probes.ts';
import { externalTarget } from '../../src/bench/engine/targets/external.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';
import { PASSED, verdictOn } from './library.ts';
import { runSteps } from './setup.ts';

const kindAt = (gateway: string, box: string) => externalTarget({ gateway, boxes: [box], probe: screenProbe() });

const standingAt = async (origin: string) => {
  const answer = await fetch(`${origin}/_mock/faults`);
  return ((await answer.json()) as { standing: { fault: string }[] }).standing.map(({ fault }) => fault);
};

it('what runs already is put right again after a scenario that left faults, also one that failed', async () => {
  const folder = await temporaryFolder();
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

  const kind = kindAt(gateway, pages);
  const left = ['fault: { inject: box-offline, times: 50 }', 'fault: { inject: display-slow, for: 1h }'];
  const steps = [...left, 'expect: { state: paid, within: 1s }'].map((it) => `  - ${it}\n`).join('');
  expect(await runSteps(steps, { kind })).toMatchObject({ outcome: 'failed', where: 'test.yaml:5' });
  expect([await standingAt(gateway), await standingAt(pages)]).toEqual([['sync-late'], []]);

  // Somebody has left an unpaid QR.
  const pushed = await payboxToEnd('push', '--gateway', gateway, '--amount', '50000', '--content', 'LEFT');
  expect(pushed).toMatchObject({ code: 0 });
  const clear = await runSteps('  - expect: { state: idle, within: 100ms }\n', { kind });
  expect(clear).toMatchObject({ outcome: 'passed' });
  expect(await verdictOn('disk-full.yaml', { kind })).toEqual(PASSED);
  expect(await verdictOn('magic-contents.yaml', { kind })).toEqual(PASSED);
  expect(await verdictOn('serial-noise.yaml', { kind })).toMatchObject({
    outcome: 'skipped',
    reason: expect.stringContaining('target at cannot disturb a serial line; --panel nextion'),
  });
});

/** A box in this state, without keys, and its gateway. */
async function servedAs(state: string): Promise<string> {
  const status = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', state, online: true };
  const account = { bankAccount: '1', bankCode: 'MB', userBankName: 'A' };
  const about = { baseUrl: 'http://127.0.0.1/vqr', partner: { username: 'a', password: 'b' }, account };
  const server = createServer(({ url }, response) => {
    const json = url === '/status' ? status : url === '/_mock/about' ? about : undefined;
    response.writeHead(json === undefined ? 404 : 200).end(JSON.stringify(json ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it('a QR that the bench cannot take away is named with what to do', async () => {
  const origin = await servedAs('showing');
  const ended = await runSteps('  - expect: { state: idle }\n', { kind: kindAt(origin, origin) });
  expect(ended).toMatchObject({ outcome: 'missing', reason: expect.stringMatching(/VVB000001 is showing, .*cancel/) });
});

it('a box that makes no faults, and a gateway that knows none, are skipped by name', async () => {
  const origin = await servedAs('idle');
  const kind = kindAt(origin, origin);
  expect([await verdictOn('disk-full.yaml', { kind }), await verdictOn('pushed-twice.yaml', { kind })]).toMatchObject([
    {
      outcome: 'skipped',
      reason:
        'target at cannot order faults at boxes; set faults: true in the configuration of each box, on a test bench only',
    },
    { outcome: 'skipped', reason: 'target at cannot order faults at the gateway; it has no /_mock/faults' },
  ]);
});
