import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { DEMO } from '../../src/commands/actions/demo.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { CLI, paybox, payboxToEnd, run } from '../support/processes.ts';

const TOKEN = 'Token-of-the-pages-of-one-test-box';
const REFUSED = /\/(status|screen\.png) answered 401: give http\.token of the box with --box-token-file/;
const PRESSES = `name: Presses
steps:
  - push: { amount: 1000, content: A }
  - expect: { screen: payment }
  - press: dismiss
  - expect: { screen: idle }
`;

/** A box whose pages want their token on this machine too. */
async function boxIn(folder: string, config: object) {
  const token = join(folder, 'token');
  await writeFile(token, `${TOKEN}\n`);
  const port = await freePort();
  const http = { port, tokenFile: token };
  await writeFile(join(folder, 'agent.yaml'), JSON.stringify({ ...config, http, dataDir: join(folder, 'box') }));
  paybox('agent', '--config', join(folder, 'agent.yaml'));
  return { url: `http://127.0.0.1:${port}`, token };
}

it('THR-30 a box whose pages want a token is run and seen with it, and not without', async () => {
  const folder = await temporaryFolder();
  const path = (name: string) => join(folder, name);
  const [http, mqtt] = [await freePort(), await freePort()];
  const link = { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqtt}` };
  const { terminalCode, serialNumber } = DEMO.box;
  const identity = { terminalCode, serialNumber };
  const { bankAccount, bankCode, userBankName } = DEMO.account;
  const config = {
    http: { port: http },
    mqtt: { embedded: { port: mqtt } },
    dataDir: path('gateway'),
    enrolment: 'open',
    partners: [{ ...DEMO.partner, accounts: [bankAccount] }],
    accounts: [DEMO.account],
    boxes: [{ ...identity, account: bankAccount }],
  };
  await writeFile(path('gateway.yaml'), JSON.stringify(config));
  paybox('gateway', '--config', path('gateway.yaml'));
  const gateway = `http://127.0.0.1:${http}`;
  const box = await boxIn(folder, { box: identity, link, enrolment: { url: gateway } });
  const at = ['--gateway', gateway, '--box', box.url];
  await writeFile(path('presses.yaml'), PRESSES);
  const authorization = `Bearer ${TOKEN}`;
  await eventually('the box', async () => {
    const response = await fetch(`${box.url}/status`, { headers: { authorization } }).catch(() => undefined);
    return ((await response?.json()) as { state: string } | undefined)?.state === 'idle' || undefined;
  });

  const refused = await payboxToEnd('bench', 'run', path('presses.yaml'), ...at);
  expect([refused.code, refused.output]).toEqual([3, expect.stringMatching(REFUSED)]);
  const ran = run(CLI, ['bench', 'run', path('presses.yaml'), ...at], { PAYBOX_BOX_TOKEN: TOKEN });
  expect(await ran.ended, ran.output()).toBe(0);
  expect(ran.output()).toContain('passed=1 failed=0 skipped=0 missing=0');

  await writeFile(path('password'), `${DEMO.partner.password}\n`);
  const service = ['--service', `${gateway}/vqr`, '--username', DEMO.partner.username, '--only', 'SND-3'];
  const account = ['--account', bankAccount, '--bank', bankCode, '--holder', userBankName];
  const password = ['--password-file', path('password')];
  const seen = ['--box-code', terminalCode, '--box-page', box.url];
  const judge = ['judge', 'service', ...service, ...password, ...account, ...seen, '--json'];
  const shown = ({ output }: { output: string }) =>
    output.split('\n').find((line) => /^\{.*is on the screen/.test(line));
  const unseen = shown(await payboxToEnd(...judge));
  expect(unseen).toContain('"outcome":"skipped"');
  expect(unseen).toMatch(REFUSED);
  expect(shown(await payboxToEnd(...judge, '--box-token-file', box.token))).toContain('"outcome":"passed"');
});

it.each([
  ['with it its screen is looked at', true],
  ['without it the run ends', false],
])('THR-30 an awaited box whose pages want a token: %s', async (_what, isGiven) => {
  const folder = await temporaryFolder();
  const { terminalCode, serialNumber, secret } = DEMO.box;
  await writeFile(join(folder, 'secret'), `${secret}\n`);
  const mqtt = await freePort();
  const box = await boxIn(folder, { box: DEMO.box, link: { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqtt}` } });
  const awaited = ['--await-box', `${terminalCode}:${serialNumber}`, '--box-secret-file', join(folder, 'secret')];
  const ports = [
    '--mqtt-port',
    `${mqtt}`,
    '--http-port',
    '0',
    '--box-page',
    box.url,
    '--only',
    'MSG-8',
    '--within',
    '20',
  ];
  const token = isGiven ? ['--box-token-file', box.token] : [];
  const { code, output } = await payboxToEnd('judge', 'box', ...awaited, ...ports, ...token);
  if (isGiven) expect([code, output]).toEqual([0, expect.stringMatching(/a refused box removes its QR +passed/)]);
  else expect([code, output]).toEqual([2, expect.stringMatching(REFUSED)]);
});
