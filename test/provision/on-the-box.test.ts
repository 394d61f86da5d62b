import { appendFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { CLI, payboxToEnd, run } from '../support/processes.ts';
import { SOURCE_CLI } from '../support/program-code.ts';

const UNIT = await readFile(resolve(import.meta.dirname, '../../systemd/paybox-agent.service'), 'utf8');
const [, configuration = ''] = /^ExecStart=.* --config (\S+)/m.exec(UNIT) ?? [];
const [, state = ''] = /^StateDirectory=(.*)$/m.exec(UNIT) ?? [];
/** Any user but root, as that of the unit. */
const USER = '64999';
const isRoot = process.getuid?.() === 0;

/**
 * Runs the agent as its unit has it, on the file systems of this machine with an overlay: everything is read-only but the
 * unit's StateDirectory, and the user is not root.
 */
async function asTheUnit(folder: string, box: string) {
  const layer = (name: string) => join(folder, name);
  for (const name of ['etc', 'etc-work', 'lib', 'lib-work']) await mkdir(layer(name));
  const steps = [
    `mount -t overlay overlay -o lowerdir=/etc,upperdir=${layer('etc')},workdir=${layer('etc-work')} /etc`,
    `mount -t overlay overlay -o lowerdir=/var/lib,upperdir=${layer('lib')},workdir=${layer('lib-work')} /var/lib`,
    `rm -rf /etc/paybox /var/lib/${state}`,
    `cp -r ${box} /etc/paybox && chown -R ${USER}:${USER} /etc/paybox`,
    'mount -o remount,ro,bind /etc',
    `mkdir -m 700 /var/lib/${state} && chown ${USER} /var/lib/${state}`,
    `exec setpriv --reuid=${USER} --regid=${USER} --clear-groups --no-new-privs ${process.execPath} ${SOURCE_CLI} agent --config ${configuration}`,
  ];
  return run('unshare', ['--mount', '--propagation', 'private', 'sh', '-ec', steps.join('\n')], {
    HOME: '/nonexistent',
  });
}

it.skipIf(!isRoot)(
  `a box that paybox provision made works as its unit runs it, with the first push${isRoot ? '' : ' (needs root)'}`,
  async () => {
    const folder = await temporaryFolder();
    const [http, mqtt, pages] = [await freePort(), await freePort(), await freePort()];
    const out = join(folder, 'made');
    const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`];
    const made = await payboxToEnd(
      'provision',
      '--out',
      out,
      '--box',
      'VVB000001:VVB900001',
      '--host',
      '127.0.0.1',
      ...ports,
    );
    expect(made.output).toContain('sudo install -g paybox-agent -m 0640 VVB000001/* /etc/paybox');
    expect(made.output).toContain('its screen is its own page only');
    const file = join(out, 'gateway/gateway.yaml');
    const account = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
    const given = parse(await readFile(file, 'utf8')) as { boxes: object[] };
    const boxes = given.boxes.map((it) => ({ ...it, account: account.bankAccount }));
    const partners = [{ username: 'shop', password: 'shop-secret', accounts: [account.bankAccount] }];
    await writeFile(file, stringify({ ...given, boxes, partners, accounts: [account] }));
    run(CLI, ['gateway', '--config', file]);

    const box = join(folder, 'box');
    await cp(join(out, 'boxes/VVB000001'), box, { recursive: true });
    await appendFile(join(box, 'agent.yaml'), `http: { port: ${pages} }\n`);
    const agent = await asTheUnit(folder, box);
    const status = async () =>
      (await fetch(`http://127.0.0.1:${pages}/status`).then(
        (it) => it.json(),
        () => undefined,
      )) as { state: string; journal: { ok: boolean } } | undefined;
    await eventually('the box', async () => (await status())?.state === 'idle' || undefined).catch((error: unknown) => {
      throw new Error(`${agent.output()}`, { cause: error });
    });
    expect((await status())?.journal).toMatchObject({ ok: true });
    const secret = join(folder, 'password');
    await writeFile(secret, 'shop-secret');
    const at = [
      '--gateway',
      `https://127.0.0.1:${http}`,
      '--ca',
      join(out, 'ca.pem'),
      '--username',
      'shop',
      '--password-file',
      secret,
    ];
    const pushed = await payboxToEnd('push', '--amount', '50000', '--content', 'DH1', ...at);
    expect(pushed).toEqual({ code: 0, output: expect.stringContaining('SUCCESS: VVB000001 shows the QR') });
    expect(await readFile(join(folder, 'lib', state, 'journal.db'))).toBeDefined();
  },
);

it('writes the display that is named into the configuration and onto the card, with the options that it needs and no other', async () => {
  const folder = await temporaryFolder();
  const out = join(folder, 'made');
  const made = await payboxToEnd('provision', '--out', out, '--box', 'VVB000001:VVB900001', '--display', 'nextion');
  expect([made.code, made.output]).toEqual([0, expect.not.stringContaining('its own page only')]);
  const agent = join(out, 'boxes/VVB000001/agent.yaml');
  const written = parse(await readFile(agent, 'utf8')) as { displays: object[] };
  expect(written.displays).toEqual([{ driver: 'nextion', path: expect.stringMatching(/^\/dev\//) }]);
  expect(made.output).toContain(`correct that in ${agent}`);
  expect(await payboxToEnd('config', 'check', agent)).toMatchObject({ code: 0 });
  const card = join(folder, 'card');
  await mkdir(card);
  const at = ['--gateway', 'https://gateway.example', '--box', 'VVB000001:VVB900001', '--display', 'framebuffer'];
  expect(await payboxToEnd('provision', '--out', card, ...at)).toMatchObject({ code: 0 });
  const onCard = parse(await readFile(join(card, 'paybox.yaml'), 'utf8')) as { display: object };
  expect(onCard.display, 'no screen of another board, and none that is dark at night').toEqual({
    driver: 'framebuffer',
  });
  const wrong = await payboxToEnd('provision', '--out', out, '--box', 'VVB000002:VVB900002', '--display', 'nexton');
  expect(wrong).toEqual({ code: 2, output: expect.stringContaining('did you mean nextion?') });
});
