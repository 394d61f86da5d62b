import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { ACCOUNT, getJson, PARTNER } from '../e2e/walk.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { startPartnerServer } from '../support/partner-server.ts';
import { type AgentAt, type GatewayAt, payboxToEnd, START_MS, startConfigured } from '../support/processes.ts';
import { spyOnProcesses } from './processes-spy.ts';

const [ADMIN, PASSWORD, BEARER, BOX1_SECRET] = [
  'Hidden-admin-token-7731',
  'hidden-partner-password-7732',
  'hidden-callback-bearer-7733',
  'Hidden-box-secret-7734',
];
const WHSEC = `whsec_${Buffer.from('hidden-signing-secret-of-32-byte').toString('base64')}`;
const [BOX1, BOX2] = [1, 2].map((n) => ({ terminalCode: `VVB00000${n}`, serialNumber: `VVB90000${n}` }));
const basicOf = (username: string, password: string) => Buffer.from(`${username}:${password}`).toString('base64');

/** Writes for its owner only, as a careful operator does. */
async function kept(file: string, text: string): Promise<string> {
  await writeFile(file, text, { mode: 0o600 });
  return file;
}

async function newFolder(...path: [string, string]): Promise<string> {
  await mkdir(join(...path));
  return join(...path);
}

async function programs(folder: string) {
  const partner = await startPartnerServer();
  const [http, mqtt] = [await freePort(), await freePort()];
  const callback = { url: partner.url, auth: { kind: 'bearer', token: BEARER }, signingSecret: WHSEC };
  const config = {
    ...{ http: { port: http }, mqtt: { embedded: { port: mqtt } }, dataDir: 'gateway', adminToken: ADMIN },
    ...{ accounts: [ACCOUNT], confirmTimeoutMs: 30_000 },
    partners: [{ username: PARTNER.username, password: PASSWORD, accounts: [ACCOUNT.bankAccount], callback }],
    boxes: [{ ...BOX1, secret: BOX1_SECRET }, BOX2].map((box) => ({ ...box, account: ACCOUNT.bankAccount })),
  };
  const { running: gateway, file: gatewayFile, at } = await startConfigured<GatewayAt>('gateway', config, folder);
  const origin = new URL(at.baseUrl).origin;
  const box = async (name: string, identity: object, more: object) => {
    const config = { box: identity, http: { port: await freePort() }, dataDir: 'data', ...more };
    const { running, file, at } = await startConfigured<AgentAt>('agent', config, await newFolder(folder, name));
    return { agent: running, boxUrl: at.boxUrl, file };
  };
  const link = { transport: 'mqtt', url: `mqtt://127.0.0.1:${mqtt}` };
  const box1 = await box('box1', { ...BOX1, secret: BOX1_SECRET }, { link });
  const box2 = await box('box2', BOX2 ?? {}, { link: { transport: 'http', url: origin } });
  return { partner, gateway, gatewayFile, baseUrl: at.baseUrl, origin, box1, box2 };
}

const isOnline = async (boxUrl: string) => (await getJson<{ online: boolean }>(`${boxUrl}/status`)).online;

it.skipIf(process.platform !== 'linux')(
  'THR-22 no secret is told by a program, its pages, its commands, its errors, a list of processes, or a file that others may read',
  async () => {
    const folder = await temporaryFolder();
    await chmod(folder, 0o755);
    const spy = spyOnProcesses();
    const { partner, gateway, gatewayFile, baseUrl, origin, box1, box2 } = await programs(folder);
    const outputs: string[] = [];
    const command = async (expected: number, ...args: string[]) => {
      const { code, output } = await payboxToEnd(...args);
      outputs.push(output);
      expect([args[0], code, output]).toEqual([args[0], expected, output]);
    };
    const admin = ['--gateway', origin, '--admin-token-file', await kept(join(folder, 'admin'), `${ADMIN}\n`)];
    const wrong = ['--gateway', origin, '--admin-token-file', await kept(join(folder, 'wrong'), `${ADMIN}x\n`)];
    const { code } = await eventually('a code', async () => {
      return (await getJson<{ enrolment: { code: string } | null }>(`${box2.boxUrl}/status`)).enrolment ?? undefined;
    });
    await command(0, 'enrol', ...admin);
    await command(1, 'enrol', ...wrong);
    await command(1, 'enrol', ...admin, '--box', 'VVB000002', '--code', '0000-0000-0000');
    await command(0, 'enrol', ...admin, '--box', 'VVB000002', '--code', code);
    await command(0, 'keys', ...admin);
    await command(0, 'keys', ...admin, '--rotate');
    for (const { boxUrl } of [box1, box2]) await eventually('online', () => isOnline(boxUrl), START_MS);

    const password = await kept(join(folder, 'password'), `${PASSWORD}\n`);
    const asPartner = ['--gateway', baseUrl, '--password-file', password, '--amount', '50000', '--json'];
    for (const box of ['VVB000001', 'VVB000002'])
      await command(0, 'push', ...asPartner, '--content', box, '--box', box);
    await command(0, 'pay', ...asPartner, '--content', 'VVB000001');
    await eventually('the callback', () => partner.received.length > 0);
    const other = [
      '--password-file',
      await kept(join(folder, 'other'), `${PASSWORD}x\n`),
      '--amount',
      '1',
      '--content',
      'A',
    ];
    expect((await payboxToEnd('push', '--gateway', baseUrl, ...other)).output).not.toContain(PASSWORD);

    for (const file of [gatewayFile, box1.file, box2.file]) {
      await command(0, 'config', 'check', file);
      await command(0, 'config', 'print', file);
      const text = await readFile(file, 'utf8');
      const broken = [
        `${text}\n: :`,
        text.slice(0, -3),
        text.replaceAll('"', '"\t'),
        text.replace(/"dataDir":"\w+"/, '"x":1'),
      ];
      for (const content of broken)
        await command(2, 'config', 'check', await kept(join(folder, 'broken.yaml'), content));
    }
    outputs.push((await payboxToEnd('doctor', '--config', box1.file, '--json')).output);

    const pages: string[] = [];
    const look = async (url: string, headers: Record<string, string> = {}) => {
      pages.push(`${url} ${await (await fetch(url, { headers })).text()}`);
    };
    for (const { boxUrl } of [box1, box2]) {
      for (const path of ['/', '/status', '/metrics', '/healthz', '/screen.txt']) await look(`${boxUrl}${path}`);
    }
    for (const path of ['/', '/metrics', '/healthz', '/openapi.json', '/_mock/boxes']) await look(`${origin}${path}`);
    const lists = [
      'boxes',
      'boxes/VVB000001',
      'boxes/VVB000002',
      'orders',
      'payments',
      'callbacks',
      'enrolments',
      'keys',
    ];
    for (const list of lists) await look(`${origin}/_mock/${list}`, { authorization: `Bearer ${ADMIN}` });
    for (const authorization of [`Basic ${basicOf('VVB000001', `${BOX1_SECRET}x`)}`, `Bearer ${ADMIN}x`, 'Bearer x']) {
      for (const path of [
        '/_mock/boxes',
        '/box/v1/stream',
        '/vqr/api/token_generate',
        '/vqr/api/qr/generate-customer',
      ]) {
        await look(`${origin}${path}`, { authorization });
      }
    }

    for (const program of [box1.agent, box2.agent, gateway]) {
      expect(await program.stop('SIGTERM')).toBe(0);
      outputs.push(program.output());
    }
    const agreed = (await readFile(join(folder, 'box2/data/secret'), 'utf8')).trim();
    const stored = settingsIn(join(folder, 'gateway/gateway.sqlite'));
    expect(stored.length).toBeGreaterThanOrEqual(2);
    const secrets = [
      ADMIN,
      PASSWORD,
      BEARER,
      WHSEC,
      BOX1_SECRET,
      agreed,
      ...stored,
      basicOf(PARTNER.username, PASSWORD),
    ];
    secrets.push(loginOf(BOX1_SECRET), loginOf(agreed), basicOf('VVB000002', loginOf(agreed)));

    const told = { output: outputs, page: pages, process: [...spy.seen].filter((it) => !it.includes(code)) };
    expect(spy.count()).toBeGreaterThan(20);
    for (const [where, texts] of Object.entries(told)) {
      const leaks = texts.filter((text) => secrets.some((secret) => text.includes(secret)));
      expect([where, leaks]).toEqual([where, []]);
    }
    // The code is for the eyes of its owner: it is on the screen, and in no log.
    expect(`${gateway.output()}${box2.agent.output()}`).not.toContain(code);
    const files = await readdir(folder, { recursive: true, withFileTypes: true });
    for (const file of files.filter((it) => it.isFile())) {
      const path = join(file.parentPath, file.name);
      const bytes = await readFile(path);
      if (!secrets.some((secret) => bytes.includes(secret))) continue;
      expect([path, ((await stat(path)).mode & 0o777).toString(8)]).toEqual([path, '600']);
    }
  },
);

/** What the store keeps as settings: keys and salts. */
function settingsIn(file: string): string[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db
      .prepare('SELECT value FROM settings')
      .all()
      .map((row) => String(row.value))
      .filter((it) => it.length >= 32);
  } finally {
    db.close();
  }
}
