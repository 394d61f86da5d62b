import { spawnSync } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import {
  type AgentAt,
  type GatewayAt,
  payboxToEnd,
  type Running,
  START_MS,
  startConfigured,
} from '../support/processes.ts';
import { provisioned } from '../support/provisioned.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { ACCOUNT, getJson, PARTNER } from './walk.ts';

const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const FORMAT = /^[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}$/;

interface Status {
  state: string;
  online: boolean;
  enrolment: { code: string; url: string } | null;
}

/** A gateway that knows the box without a secret, in a process of its own. */
async function startGateway(folder: string, tls?: object) {
  const config = {
    http: { port: await freePort(), ...(tls && { tls }) },
    mqtt: { embedded: { port: await freePort() } },
    dataDir: 'gateway',
    // Nobody answers there, which is its own affair.
    partners: [
      { ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: `http://127.0.0.1:${await freePort()}/` } },
    ],
    accounts: [ACCOUNT],
    boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
  };
  const { running, at } = await startConfigured<GatewayAt>('gateway', config, folder);
  return { running, ...at, origin: new URL(at.baseUrl).origin };
}

/** The box as it stands in the shop: its process, its pages, its folder. */
async function startBox(folder: string, link: object, enrolment?: object) {
  const config = {
    box: BOX,
    link,
    ...(enrolment && { enrolment }),
    http: { port: await freePort() },
    dataDir: 'box',
    paidHoldSeconds: 1,
  };
  const { running, at } = await startConfigured<AgentAt>('agent', config, folder);
  const { boxUrl } = at;
  const status = () => getJson<Status>(`${boxUrl}/status`);
  const becomes = (state: string) =>
    eventually(`the box is ${state}`, async () => (await status()).state === state, START_MS);
  /** What a phone reads off its screen. */
  const scan = () =>
    eventually('a QR on the screen', async () => {
      const { enrolment } = await status();
      const picture = await fetch(`${boxUrl}/screen.png`);
      if (enrolment === null || !picture.ok) return undefined;
      const read = readQr(new Uint8Array(await picture.arrayBuffer()));
      return read === enrolment.url ? enrolment : undefined;
    });
  return { running, boxUrl, status, becomes, scan };
}

/** Undefined while there is none on the picture. */
function readQr(png: Uint8Array): string | undefined {
  try {
    const [read, again] = decodeQrTwice(png);
    return read === again ? read : undefined;
  } catch {
    return undefined;
  }
}

const enrol = (origin: string, ...args: string[]) => payboxToEnd('enrol', '--gateway', origin, ...args);

async function pushAndPay(baseUrl: string, content: string) {
  const order = ['--amount', '50000', '--content', content, '--gateway', baseUrl];
  expect(await payboxToEnd('push', ...order)).toMatchObject({ code: 0 });
  expect(await payboxToEnd('pay', ...order)).toMatchObject({ code: 0 });
}

describe.each(['mqtt', 'http'])('a box without a secret over %s', (transport) => {
  it('ENR-1 ENR-3 ENR-5 ENR-6 is enrolled by the code on its screen, works, starts again by itself, and enrols anew', async () => {
    const folder = await temporaryFolder();
    const gateway = await startGateway(folder);
    const link = { transport, url: transport === 'mqtt' ? gateway.mqttUrl : gateway.origin };
    const at = transport === 'mqtt' ? { url: gateway.origin } : undefined;
    const box = await startBox(folder, link, at);

    const { code, url } = await box.scan();
    expect(code).toMatch(FORMAT);
    expect(url).toBe(`${gateway.origin}/#enrol/${BOX.terminalCode}/${code}`);
    expect(await (await fetch(`${box.boxUrl}/screen.txt`)).text()).toContain(code);
    const listed = await enrol(gateway.origin);
    expect(listed).toMatchObject({
      code: 0,
      output: expect.stringContaining(`${BOX.terminalCode} ${BOX.serialNumber}`),
    });
    expect(await enrol(gateway.origin, '--box', BOX.terminalCode, '--code', '0000-0000-0000')).toMatchObject({
      code: 1,
      output: expect.stringContaining('read the code on the screen of the box again'),
    });
    expect(await box.status()).toMatchObject({ online: false, enrolment: { code } });
    expect(await enrol(gateway.origin, '--box', BOX.terminalCode, '--code', code.toLowerCase())).toMatchObject({
      code: 0,
    });
    await box.becomes('idle');
    await pushAndPay(gateway.baseUrl, 'DH001');

    const file = join(folder, 'box/secret');
    const secret = (await readFile(file, 'utf8')).trim();
    expect([(await stat(file)).mode & 0o777, secret.length]).toEqual([0o600, 43]);
    await box.running.stop();
    const again = await startBox(folder, link, at);
    await again.becomes('idle');
    expect(again.running.output()).not.toContain('enrolment-started');
    await pushAndPay(gateway.baseUrl, 'DH002');
    expect(await readFile(file, 'utf8')).toBe(`${secret}\n`);

    const unpaid = ['--gateway', gateway.origin, '--amount', '50000', '--content', 'DH003'];
    expect(await payboxToEnd('push', ...unpaid)).toMatchObject({ code: 0 });
    await again.becomes('showing');
    expect(await enrol(gateway.origin, '--forget', BOX.terminalCode)).toMatchObject({ code: 0 });
    const next = await again.scan();
    expect(next.code).not.toBe(code);
    expect(await enrol(gateway.origin, '--box', BOX.terminalCode, '--code', next.code)).toMatchObject({ code: 0 });
    await again.becomes('idle');
    expect((await readFile(file, 'utf8')).trim()).not.toBe(secret);
    const told = outputOf(gateway.running, box.running, again.running) + JSON.stringify(await again.status());
    expect(told).toContain('box-enrolled');
    for (const hidden of [secret, code, next.code]) expect(told).not.toContain(hidden);
  });
});

it('ENR-5 a box without a secret is enrolled over HTTPS, by a gateway with a certificate of its own authority', async () => {
  const made = await provisioned();
  const folder = await temporaryFolder();
  const [ca, cert, key] = ['ca.pem', 'gateway/cert.pem', 'gateway/key.pem'].map((name) => join(made.path, name));
  const gateway = await startGateway(folder, { cert, key });
  expect(gateway.origin).toMatch(/^https:/);
  const box = await startBox(folder, { transport: 'http', url: gateway.origin, tls: { ca } });
  const { code } = await box.scan();
  const accepting = ['--box', BOX.terminalCode, '--code', code];
  expect(await enrol(gateway.origin, ...accepting)).toMatchObject({
    code: 3,
    output: expect.stringContaining('--ca names the CA'),
  });
  expect(await enrol(gateway.origin, ...accepting, '--ca', ca ?? '')).toMatchObject({ code: 0 });
  await box.becomes('idle');
  const order = ['--gateway', gateway.origin, '--amount', '50000', '--content', 'DH1'];
  for (const command of ['push', 'pay']) {
    expect(await payboxToEnd(command, ...order)).toMatchObject({
      code: 3,
      output: expect.stringContaining('--ca names the CA'),
    });
    expect(await payboxToEnd(command, ...order, '--ca', ca ?? '')).toMatchObject({ code: 0 });
  }
});

function outputOf(...programs: Running[]): string {
  return programs.map((it) => it.output()).join('');
}

describe('paybox enrol', () => {
  it.each([
    ['a code without its box', ['--code', '7K2M-Q0XA-94TZ']],
    ['a code that is none', ['--box', 'VVB000001', '--code', 'hello']],
    ['a box that is none', ['--forget', 'VVB1']],
    ['two things at once', ['--forget', 'VVB000001', '--reject', 'VVB000002']],
    ['an address that is none', ['--gateway', 'gateway']],
    [
      'a token that would be sent plainly',
      ['--gateway', 'http://192.0.2.1', '--admin-token-file', import.meta.filename],
    ],
  ])('ends with 2 and says what is wrong for %s', async (_what, args) => {
    const { code, output } = await payboxToEnd('enrol', ...args);
    expect([code, output]).toEqual([2, expect.stringMatching(/expected|others can read/)]);
  });

  it.each([
    ['hello\n', 2, 'expected 12 letters and digits'],
    ['7K2M-Q0XA-94TZ\n', 3, 'start the gateway'],
  ])('reads the code from standard input, where no list of processes shows it: %j', async (input, status, said) => {
    const args = ['src/cli.js', 'enrol', '--gateway', `http://127.0.0.1:${await freePort()}`, '--box', 'VVB000001'];
    const ended = spawnSync(process.execPath, [...args, '--code', '-'], { input, encoding: 'utf8', timeout: 60_000 });
    expect([ended.status, ended.stderr]).toEqual([status, expect.stringContaining(said)]);
    expect(ended.stderr).not.toContain(input.trim());
  });

  it('paybox enrol ends with 3 where no gateway answers', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    expect(await enrol(url)).toMatchObject({ code: 3, output: expect.stringContaining('start the gateway') });
  });

  it('paybox enrol reads the admin token from a file, which no list of processes shows', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'token');
    await writeFile(file, 'A-long-admin-token-of-a-test\n');
    const adminToken = 'A-long-admin-token-of-a-test';
    const config = { http: { port: 0 }, mqtt: null, dataDir: 'data', adminToken };
    const { origin } = new URL((await startConfigured<GatewayAt>('gateway', config, folder)).at.baseUrl);
    expect(await enrol(origin)).toMatchObject({ code: 1, output: expect.stringContaining('--admin-token-file') });
    expect(await enrol(origin, '--admin-token-file', file)).toEqual({ code: 0, output: 'no box asks to enrol\n' });
  });
});
