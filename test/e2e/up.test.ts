import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { CLI, payboxToEnd, run } from '../support/processes.ts';
import { up } from './up-fixture.ts';
import { getJson, Shop, walkTheLoop } from './walk.ts';

describe('paybox up', () => {
  it.each(['mqtt', 'http'])('walks the whole loop over %s and ends cleanly on Ctrl-C', async (transport) => {
    const partner = await startPartnerServer();
    const { running, at, ports } = await up('--transport', transport, '--callback-url', partner.url);
    expect(at).toMatchObject({
      baseUrl: `http://127.0.0.1:${ports[0]}/vqr`,
      boxUrl: `http://127.0.0.1:${ports[2]}`,
      consoleUrl: `http://127.0.0.1:${ports[0]}/`,
      partner: { username: 'demo', password: 'demo-secret' },
      account: { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
      box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
    });
    expect((await getJson(`${at.boxUrl}/status`)).state).toBe('idle');
    const screens = [`${at.consoleUrl}_mock/boxes/VVB000001/screen.png`, `${at.boxUrl}/screen.png`];
    const [seen, own] = await Promise.all(
      screens.map(async (url) => Buffer.from(await (await fetch(url)).arrayBuffer())),
    );
    expect(own !== undefined && seen?.equals(own)).toBe(true);
    expect((await getJson(`${at.consoleUrl}_mock/about`)).boxPage).toBe(`${at.boxUrl}/`);
    await walkTheLoop(at, partner.received);
    expect(await running.stop('SIGINT')).toBe(130);
    expect(running.output()).toMatch(/ready/);
    expect(running.output()).not.toMatch(/error|warn/i);
  });

  it('paybox up authorizes callbacks with the bearer that a file holds', async () => {
    const file = join(await temporaryFolder(), 'bearer');
    await writeFile(file, 'my-token\n');
    const partner = await startPartnerServer();
    const { at } = await up('--callback-url', partner.url, '--callback-auth', `bearer-file:${file}`);
    const shop = new Shop(at.baseUrl);
    await shop.login();
    await shop.generate({ amount: 70_000, content: 'DH7', orderId: 'DH7' });
    expect((await shop.pay({ amount: 70_000, content: 'DH7' })).body.status).toBe('SUCCESS');
    const [first] = await eventually('the callback', () =>
      partner.received.length > 0 ? partner.received : undefined,
    );
    expect(first?.authorization).toBe('Bearer my-token');
  });

  it('paybox up --host accepts no token that could be guessed', async () => {
    const args = ['up', '--no-open', '--host', '0.0.0.0', '--data', await temporaryFolder()];
    const running = run(CLI, args, { PAYBOX_ADMIN_TOKEN: 'short' });
    await once(running.child, 'close');
    expect({ code: running.child.exitCode, output: running.output() }).toEqual({
      code: 2,
      output: expect.stringMatching(/^paybox: PAYBOX_ADMIN_TOKEN: expected a secret of 128 bits/),
    });
  });

  it('paybox up names the port and the option when a port is taken', async () => {
    const { ports } = await up();
    const free = [await freePort(), await freePort()];
    const data = await temporaryFolder();
    const args = ['up', '--data', data, '--no-open', '--mqtt-port', `${free[0]}`, '--box-port', `${free[1]}`];
    const taken = await payboxToEnd(...args, '--http-port', `${ports[0]}`);
    expect(taken.code).toBe(2);
    expect(taken.output).toContain(`${ports[0]}`);
    expect(taken.output).toContain('--http-port');
  });
});
