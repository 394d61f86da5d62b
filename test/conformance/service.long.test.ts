import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { CheckResult } from '../../src/bench/judges/check.ts';
import { SERVICE_CHECKS } from '../../src/bench/judges/service/checks/all.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';
import { clausesOf, judgeEmulated } from './service-fixture.ts';
import { ACCOUNT, FIRST, http, judged, reasons } from './service-judged.ts';

describe('our own service', () => {
  it('LEN-1 our own service keeps every clause about calls to the letter too', async () => {
    const checks = SERVICE_CHECKS.filter(({ clause }) => /^(ERR|LIM|GEN|SND|CBK|SUM)-/.test(clause));
    const results = await judgeEmulated({ isWithoutBox: true, isQuick: true, config: { strict: true } }, { checks });
    expect(results.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'skipped')).toEqual([]);
  });
});

describe('something that is no such service', () => {
  it('the judge stops after three checks at a program that accepts requests and answers nothing', async () => {
    let requests = 0;
    const url = await http(() => {
      requests += 1;
    });
    const results = await judged(url);
    expect(results[0]).toMatchObject({ outcome: 'failed', reason: 'no whole answer within 0.5 s' });
    expect(results.filter(({ outcome }) => outcome === 'failed')).toHaveLength(3);
    expect(results.at(-1)?.reason).toBe('not tried: the 3 checks before had no answer');
    expect(requests).toBe(3);
  });

  it('the judge stops at a program whose answers drip for ever', async () => {
    const url = await http((_request, response) => {
      const drip = setInterval(() => response.write(' '), 50);
      response.once('close', () => clearInterval(drip));
    });
    expect(await judged(url, FIRST)).toMatchObject([{ outcome: 'failed', reason: 'no whole answer within 0.5 s' }]);
  });

  it('the judge names a program whose answers have no end', async () => {
    const url = await http((_request, response) => {
      const more = () => {
        while (!response.destroyed && response.write('x'.repeat(65_536)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
    });
    const reason = 'the answer is longer than 1000000 bytes';
    expect(await judged(url, FIRST)).toMatchObject([{ outcome: 'failed', reason }]);
  });

  it('the judge names a program that answers any JSON to everything', async () => {
    for (const body of [
      'null',
      '[]',
      '{"status":1,"message":{}}',
      '{"access_token":"x","token_type":"Bearer","expires_in":300}',
    ]) {
      const results = await judged(
        await http((_request, response) => response.setHeader('content-type', 'application/json').end(body)),
      );
      expect(clausesOf(results, 'failed')).toContain('TOK-5');
      expect(clausesOf(results, 'passed').filter((it) => !it.startsWith('TOK-'))).toEqual([]);
    }
  });
});

/** Clauses with a check for each thing that options tell; few of them wait in real time. */
const TOLD = 'TOK-1,TOK-2,TOK-6,GEN-7,SUM-1,SND-1,SND-2,SND-3,CBK-1,CBK-2,CBK-4,SYN-1,SYN-8,ERR-2';

interface Ready {
  baseUrl: string;
  boxUrl: string;
}

describe('paybox judge service', () => {
  it('paybox judge service judges programs that run, by its options', async () => {
    const folder = await temporaryFolder();
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    const [http, mqtt, box, listen] = ports.map(String) as [string, string, string, string];
    const callbackUrl = `http://127.0.0.1:${listen}/bank/api/transaction-sync`;
    const file = join(folder, 'ready.json');
    const places = ['--http-port', http, '--mqtt-port', mqtt, '--box-port', box, '--data', join(folder, 'data')];
    const up = paybox('up', ...places, '--callback-url', callbackUrl, '--ready-file', file, '--no-open');
    const { baseUrl, boxUrl } = await readyFile<Ready>(file, up);
    await writeFile(join(folder, 'password'), 'demo-secret\n');
    await writeFile(join(folder, 'auth'), 'none\n');
    const partner = ['--username', 'demo', '--password-file', join(folder, 'password')];
    const account = ['--account', ACCOUNT.bankAccount, '--bank', ACCOUNT.bankCode, '--holder', ACCOUNT.userBankName];
    const boxes = ['--box-code', 'VVB000001', '--serial', 'VVB900001', '--box-page', boxUrl];
    const callbacks = ['--callback-listen', `127.0.0.1:${listen}`, '--callback-auth-file', join(folder, 'auth')];
    const reports = ['--strict', '--only', TOLD, '--json', '--report', join(folder, 'report')];
    const service = ['--service', baseUrl, ...partner, ...account, ...boxes, ...callbacks];
    const { code, output } = await payboxToEnd('judge', 'service', ...service, ...reports);
    const results = output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as CheckResult);
    expect(results.filter(({ outcome }) => outcome !== 'passed' && outcome !== 'skipped')).toEqual([]);
    expect(code).toBe(0);
    const skipped = results.filter(({ outcome }) => outcome === 'skipped');
    expect([...reasons(skipped)].sort()).toEqual([
      'needs a box that the bench can simulate: give --box-code, --serial and --box-secret-file',
      'needs a second partner: give --second-username and --second-password-file',
      'needs a service that is not a sandbox: give --no-sandbox with the address of one',
      'needs an account of a second partner without an endpoint for callbacks: give --second-username, --second-password-file and --second-account',
      'needs signed callbacks: give --callback-signing-secret-file',
      'sends wrong passwords, which may shut the partner out: give --guess-passwords',
      'takes minutes: give --slow',
    ]);
    const page = await readFile(join(folder, 'report', 'index.html'), 'utf8');
    expect(page).not.toMatch(/demo-secret|ZGVtbzpkZW1vLXNlY3JldA|eyJ/);
    expect(page).toContain('•••');
  }, 240_000);

  it('paybox judge service shows no token of a service that gives one to anybody', async () => {
    const token = 'a-token-that-was-given-to-anybody';
    const baseUrl = await http((request, response) => {
      // Without its name, as a service may tell it where nobody expects it.
      const isToken = request.url?.endsWith('/token_generate') === true;
      response.end(isToken ? JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: 300 }) : token);
    });
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'password'), 'shop-secret\n');
    const partner = ['--username', 'shop', '--password-file', join(folder, 'password')];
    const account = ['--account', ACCOUNT.bankAccount, '--bank', ACCOUNT.bankCode, '--holder', ACCOUNT.userBankName];
    const reports = ['--junit', join(folder, 'junit.xml'), '--report', folder, '--only', 'TOK'];
    const run = ['judge', 'service', '--service', baseUrl, ...partner, ...account, ...reports];
    const { code, output } = await payboxToEnd(...run);
    expect(code).toBe(1);
    expect(output).toContain('TOK-4');
    const files = await Promise.all(['junit.xml', 'index.html'].map((file) => readFile(join(folder, file), 'utf8')));
    for (const text of [output, ...files]) expect(text).not.toContain(token.slice(0, 20));
  });

  it('paybox judge service ends with 3 when nobody answers, and with 1 when a clause does not hold', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'password'), 'shop-secret');
    const account = ['--account', '1', '--bank', 'MB', '--holder', 'A', '--password-file', join(folder, 'password')];
    const judge = (url: string) => [
      'judge',
      'service',
      '--service',
      url,
      '--username',
      'u',
      '--only',
      'TOK-1',
      ...account,
    ];
    const nobody = await payboxToEnd(...judge(`http://127.0.0.1:${await freePort()}/vqr`));
    expect(nobody).toMatchObject({ code: 3, output: expect.stringMatching(/^PAYBOX-BENCH END .*missing=1 exit=3$/m) });
    const url = await http((_request, response) => response.end('{}'));
    const full = await payboxToEnd(...judge(url), '--junit', '/dev/full');
    expect(full).toMatchObject({ code: 2, output: expect.stringMatching(/^PAYBOX-BENCH END .*exit=2$/m) });
    expect(full.output).toMatch(/--junit \/dev\/full cannot be written: ENOSPC/);
    const wrong = await payboxToEnd(...judge(url));
    expect(wrong.code).toBe(1);
    expect(wrong.output).toMatch(
      /^PAYBOX-BENCH RESULT outcome=failed name="TOK-1 .*reason="the answer has no access_token"$/m,
    );
    expect(wrong.output).toMatch(
      /^TOK-1 +Basic credentials get a bearer token for 300 seconds +failed +the answer has no access_token$/m,
    );
  });

  it('paybox judge service reports how many checks a Ctrl-C has left without a verdict', async () => {
    const folder = await temporaryFolder();
    const junit = join(folder, 'junit.xml');
    await writeFile(join(folder, 'password'), 'shop-secret');
    const account = ['--account', '1', '--bank', 'MB', '--holder', 'A', '--password-file', join(folder, 'password')];
    const { promise: asked, resolve } = Promise.withResolvers<void>();
    const url = await http(() => resolve());
    const given = ['--service', url, '--username', 'u', ...account, '--only', 'TOK', '--junit', junit];
    const running = paybox('judge', 'service', ...given);
    await asked;
    expect(await running.stop('SIGINT')).toBe(130);
    expect(running.output()).toMatch(/^PAYBOX-BENCH END passed=0 failed=0 skipped=\d+ missing=1 exit=130$/m);
    const text = await readFile(junit, 'utf8');
    expect(text).toMatch(/errors="1"/);
    expect(text).toMatch(/name="… \d+ checks".*\n?.*the run was ended before their verdicts/);
  });

  it('paybox judge service judges our own gateway and agent by default', async () => {
    const folder = await temporaryFolder();
    const reports = ['--junit', join(folder, 'j.xml'), '--tap', join(folder, 't.tap')];
    const service = await payboxToEnd('judge', 'service', '--strict', '--only', 'GEN', ...reports);
    expect(service.code).toBe(0);
    expect(service.output).toMatch(/^PAYBOX-BENCH START checks=\d+ target="our own gateway"/m);
    expect(service.output).toMatch(/^PAYBOX-BENCH END passed=\d+ failed=0 skipped=0 missing=0 exit=0$/m);
    expect(await readFile(join(folder, 't.tap'), 'utf8')).toMatch(/^ok 1 - GEN-1 /m);
    const { code, output } = await payboxToEnd('judge', 'box', '--strict', '--only', 'TOP,BOX-HTTP', ...reports);
    expect(code).toBe(0);
    expect(output).toMatch(/^not judged$/m);
    expect(output).toMatch(/^TOP-5 +what a broker does with a box that reads nothing$/m);
    expect(output).toMatch(/^BOX-HTTP-1, .* +what a box does over HTTP$/m);
    expect(output).toMatch(/^PAYBOX-BENCH START checks=\d+ target="our own agent over MQTT, our own agent over HTTP"/m);
    expect(output).toMatch(/^PAYBOX-BENCH END passed=\d+ failed=0 skipped=0 missing=0 exit=0$/m);
    expect(await readFile(join(folder, 'j.xml'), 'utf8')).toContain('failures="0"');
  });
});
