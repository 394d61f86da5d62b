import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CheckResult } from '../../src/bench/judges/check.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { newSecret } from '../../src/protocol/secret.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { payboxToEnd } from '../support/processes.ts';
import { missing, note, postgresServer } from '../support/stores.ts';
import { PARTNER, type Row, startGateways, type TestGateway } from './gateways.ts';

describe.skipIf(missing)(`one of several gateways, as a partner sees it${note}`, () => {
  const server = postgresServer();

  it('SHA-5 one of several gateways keeps every clause for partners, also for boxes that another gateway serves', {
    timeout: 240_000,
  }, async () => {
    const [folder, listen] = [await temporaryFolder(), await freePort()];
    const signingSecret = `whsec_${Buffer.from(newSecret(systemRandom)).toString('base64')}`;
    const callback = { url: `http://127.0.0.1:${listen}/bank/api/transaction-sync`, signingSecret };
    const cluster = await startGateways({
      databaseUrl: await server().database(),
      ...{ gateways: 2, partner: { ...PARTNER, callback } },
    });
    const [asked, other] = cluster.gateways as [TestGateway, TestGateway];
    const [box] = cluster.boxes;
    const { bankAccount = '', userBankName = '' } = cluster.accounts[0] ?? {};
    const second = { bankAccount: '2000000000', bankCode: 'MB', userBankName: 'OTHER', partner: 'second' };
    const { body: partner } = await other.admin('/admin/v1/partners', 'POST', { username: second.partner });
    expect((await other.admin('/admin/v1/accounts', 'POST', second)).status).toBe(201);
    const secrets = {
      password: PARTNER.password,
      auth: 'none',
      signing: signingSecret,
      box: box?.secret ?? '',
      second: (partner as Row).password,
    };
    const file = (name: keyof typeof secrets) => join(folder, name);
    for (const [name, text] of Object.entries(secrets)) await writeFile(join(folder, name), String(text));
    const { code, output } = await payboxToEnd(
      ...['judge', 'service', '--service', asked.baseUrl, '--strict', '--json'],
      ...['--username', PARTNER.username, '--password-file', file('password')],
      ...['--account', bankAccount, '--bank', 'MB', '--holder', userBankName],
      ...['--second-username', second.partner, '--second-password-file', file('second')],
      ...['--second-account', second.bankAccount, '--guess-passwords'],
      ...['--box-code', box?.terminalCode ?? '', '--serial', box?.serialNumber ?? '', '--box-secret-file', file('box')],
      ...['--callback-listen', `127.0.0.1:${listen}`, '--callback-auth-file', file('auth')],
      ...['--callback-signing-secret-file', file('signing')],
    );
    const results = output.split('\n').flatMap((it) => (it.startsWith('{') ? [JSON.parse(it) as CheckResult] : []));
    expect(results.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'skipped')).toEqual([]);
    const skipped = results.filter(({ outcome }) => outcome === 'skipped').map(({ reason }) => reason);
    expect([...new Set(skipped)].sort()).toEqual([
      'needs a box that shows what is pushed: give --box-code of one, without --box-secret-file',
      'needs a service that is not a sandbox: give --no-sandbox with the address of one',
      'takes minutes: give --slow',
    ]);
    expect(results.length).toBeGreaterThan(100);
    expect(code).toBe(0);
  });
});
