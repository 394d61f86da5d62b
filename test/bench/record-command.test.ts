// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';

/** `paybox up` on free ports. */
async function upIn(folder: string) {
  const [http, mqtt, box] = [await freePort(), await freePort(), await freePort()];
  const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`, '--box-port', `${box}`];
  const ready = join(folder, 'ready.json');
  const up = paybox('up', '--data', join(folder, 'up'), ...ports, '--no-open', '--ready-file', ready);
  await readyFile(ready, up);
  return { gateway: `http://127.0.0.1:${http}`, box: `http://127.0.0.1:${box}` };
}

describe('paybox bench record', () => {
  it('records until Ctrl-C what people do at a stand, and the file replays', async () => {
    const folder = await temporaryFolder();
    const { gateway, box } = await upIn(folder);
    const out = join(folder, 'session.yaml');
    const nothing = await payboxToEnd('bench', 'record', '--gateway', gateway, '--out', out, '--once');
    expect(nothing.code).toBe(1);
    expect(nothing.output).toContain(`nothing was recorded at ${gateway}: no order, payment or cancellation`);

    const recording = paybox('bench', 'record', '--gateway', gateway, '--box', box, '--out', out);
    await expect.poll(() => recording.output(), { timeout: 40_000 }).toContain('recording; Ctrl-C ends it');
    const service = ['--url', `${gateway}/vqr`, '--amount', '50000', '--content', 'DH001'];
    expect((await payboxToEnd('push', ...service, '--order', 'DH001')).code).toBe(0);
    await expect.poll(() => recording.output(), { timeout: 20_000 }).toMatch(/1 push, 2 screens/);
    expect((await payboxToEnd('pay', ...service)).code).toBe(0);
    await expect.poll(() => recording.output(), { timeout: 20_000 }).toMatch(/1 payment, 1 callback, 3 screens/);
    expect(await recording.stop('SIGINT')).toBe(0);
    expect(recording.output()).toMatch(/session\.yaml: \d+ steps; replay it with: paybox bench run /);

    const text = await readFile(out, 'utf8');
    expect(text).toContain('push: { amount: 50000, content: DH001, order: DH001 }');
    expect(text).toMatch(/expect: \{ screen: paid, qr: none, text: 50\.000 ₫, report: \{ payment: /);
    const replayed = await payboxToEnd('bench', 'run', out);
    expect(replayed.output).toContain('passed=1 failed=0');

    const again = await payboxToEnd('bench', 'record', '--gateway', gateway, '--out', out);
    expect(again.code).toBe(2);
    expect(again.output).toContain('is there already');
    const once = ['bench', 'record', '--gateway', gateway, '--out', out, '--once', '--replace'];
    expect((await payboxToEnd(...once)).code).toBe(0);
    expect(await readFile(out, 'utf8')).toContain('report: { payment: "${payment1.transactionId}" }');

    const other = await payboxToEnd('bench', 'record', '--gateway', box, '--out', join(folder, 'x.yaml'));
    expect(other.code).toBe(2);
    expect(other.output).toMatch(/is no gateway that can be recorded: it has no \/_mock\/wire \(it answered 404\)/);
  });

  it.each([
    [
      'a gateway that is not there',
      3,
      ['--gateway', 'http://127.0.0.1:9'],
      /nothing answers at http:\/\/127\.0\.0\.1:9/,
    ],
    [
      'a box that is not there',
      3,
      ['--gateway', 'http://127.0.0.1:9', '--box', 'http://127.0.0.1:9'],
      /nothing answers/,
    ],
    ['what is no origin', 2, ['--gateway', 'gateway'], /--gateway gateway: expected an origin, as http:/],
    ['no gateway', 2, [], /required option '--gateway <url>'/],
    [
      'a box with --once',
      2,
      ['--gateway', 'http://127.0.0.1:9', '--box', 'x', '--once'],
      /--box does not go with --once/,
    ],
    [
      'a file elsewhere',
      2,
      ['--gateway', 'http://127.0.0.1:9', '--out', 'no/such/x.yaml'],
      /--out .* cannot be written: ENOENT/,
    ],
    [
      'another kind of file',
      2,
      ['--gateway', 'http://127.0.0.1:9', '--out', 'x.json'],
      /expected a file that ends in \.yaml/,
    ],
    [
      'an admin token on an open way',
      2,
      ['--gateway', 'http://192.0.2.1', '--admin-token-file', 'TOKEN'],
      /the admin token would be sent where others can read it/,
    ],
  ])('ends for %s with %i, and writes nothing', async (_what, code, args, message) => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'token'), 'secret\n');
    const out = join(folder, 'x.yaml');
    const named = args.map((it) => (it === 'TOKEN' ? join(folder, 'token') : it.replace('no/such', `${folder}/none`)));
    const given = args.includes('--out') ? named : [...named, '--out', out];
    const ended = await payboxToEnd('bench', 'record', ...given);
    expect(ended.output).toMatch(message);
    expect(ended.code).toBe(code);
    await expect(access(out)).rejects.toThrow(/ENOENT/);
  });
});
