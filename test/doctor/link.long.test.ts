import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { Aedes } from 'aedes';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { createAuthority, issue, validFor } from '../../src/device/setup/pki.ts';
import { ACCOUNT, getJson } from '../e2e/walk.ts';
import { eventually, freePort, temporaryFolder } from '../support/net.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';
import { provisioned } from '../support/provisioned.ts';

interface Finding {
  check: string;
  result: string;
  found: string;
  fix: string;
}

const DAY_MS = 86_400_000;
const DISPLAYS = [{ driver: 'png', path: 'screen.png', width: 480, height: 320 }];

async function findings(file: string) {
  const { code, output } = await payboxToEnd('doctor', '--config', file, '--json');
  const all = JSON.parse(output) as Finding[];
  return { code, output, all, of: (check: string) => all.find((finding) => finding.check === check) };
}

/** A gateway over TLS with a broker of its own, as `paybox provision` sets both up, and its first box. */
async function network() {
  const [mqttPort, httpPort] = [await freePort(), await freePort()];
  const made = await provisioned(mqttPort, httpPort);
  const file = join(made.path, 'gateway/gateway.yaml');
  const config = parse(await readFile(file, 'utf8'));
  const boxes = config.boxes.map((box: object, i: number) =>
    i === 0 ? { ...box, account: ACCOUNT.bankAccount } : box,
  );
  await writeFile(file, JSON.stringify({ ...config, accounts: [ACCOUNT], boxes }));
  const ready = join(made.path, 'gateway.json');
  await readyFile(ready, paybox('gateway', '--config', file, '--ready-file', ready));
  const box = await made.box(1);
  const { terminalCode, serialNumber, files } = box;
  const gateway = `https://localhost:${httpPort}`;
  /** The box's configuration with a change; its file. */
  const boxWith = async (change: object) => {
    const name = join(box.folder, 'changed.yaml');
    const all = {
      box: { terminalCode, serialNumber, secretFile: 'secret' },
      link: { transport: 'mqtt', url: `mqtts://localhost:${mqttPort}`, tls: files },
      displays: DISPLAYS,
      http: { port: await freePort() },
      dataDir: join(made.path, 'box'),
    };
    await writeFile(name, JSON.stringify({ ...all, ...change }));
    return name;
  };
  const wrongSecret = { box: { terminalCode, serialNumber, secret: 'Not-the-secret-of-this-box-at-all' } };
  const http = { link: { transport: 'http', url: gateway, tls: { ca: files.ca } } };
  return { box, boxWith, files, gateway, wrongSecret, http };
}

describe('paybox doctor on the way to the gateway', () => {
  it('doctor finds the way to the gateway in order, and says how long certificates hold', async () => {
    const { boxWith, http } = await network();
    const mqtt = await findings(await boxWith({}));
    expect(mqtt.code, mqtt.output).toBe(0);
    expect(mqtt.of('gateway DNS')).toMatchObject({ result: 'ok', found: expect.stringContaining('localhost is ') });
    expect(mqtt.of('gateway certificate')?.found).toMatch(/^it is valid until \d{4}-\d\d-\d\d, 7\d\d days$/);
    expect(mqtt.of('gateway cert file')?.found).toMatch(/cert\.pem is valid until/);
    expect(mqtt.of('gateway ca file')?.result).toBe('ok');
    expect(mqtt.of('login')?.found).toBe('the broker accepts it, and the gateway is present');
    const { code, of } = await findings(await boxWith(http));
    expect(code).toBe(0);
    expect(of('login')).toMatchObject({ result: 'ok', found: 'the gateway takes it' });
  });

  it('doctor finds a secret that is not the one of the box, over both transports', async () => {
    const { boxWith, wrongSecret, http } = await network();
    for (const link of [{}, http]) {
      const { code, of } = await findings(await boxWith({ ...wrongSecret, ...link }));
      expect(code).toBe(1);
      expect(of('gateway certificate')?.result).toBe('ok');
      expect(of('login')).toMatchObject({ result: 'failed', fix: expect.stringContaining('box.secret') });
    }
  });

  it('doctor finds a CA that is another one, and a certificate file that is not there', async () => {
    const { boxWith, files, http } = await network();
    const other = await createAuthority('another', validFor(Date.now(), 1));
    const ca = `${files.ca}.other`;
    await writeFile(ca, other.cert);
    const { code, of } = await findings(await boxWith({ link: { ...http.link, tls: { ca } } }));
    expect(code).toBe(1);
    expect(of('gateway certificate')).toMatchObject({ result: 'failed', fix: expect.stringContaining('link.tls.ca') });
    expect(of('login')).toBeUndefined();
    const absent = await findings(await boxWith({ link: { ...http.link, tls: { ca: `${ca}.none` } } }));
    expect(absent.of('gateway ca file')).toMatchObject({ result: 'failed', found: expect.stringContaining('ENOENT') });
  });

  it('doctor takes nothing from an agent that runs, and asks it for what it has open', async () => {
    const { boxWith } = await network();
    const file = await boxWith({});
    const ready = `${file}.ready`;
    const { boxUrl } = await readyFile<{ boxUrl: string }>(
      ready,
      paybox('agent', '--config', file, '--ready-file', ready),
    );
    const status = () => getJson<{ online: boolean; link: { connectedAt: string } }>(`${boxUrl}/status`);
    await eventually('online', async () => (await status()).online, 40_000);
    const before = (await status()).link.connectedAt;
    const { code, of, output } = await findings(file);
    expect(code, output).toBe(0);
    expect(of('agent')).toMatchObject({ result: 'ok', found: expect.stringMatching(/^version .*, idle, online$/) });
    expect(of('journal')?.found).toBe('the agent writes it');
    expect(of('display png')?.found).toBe('the agent draws on it, 480×320 pixels');
    expect(of('QR of 280 characters')?.result).toBe('ok');
    expect(of('login')?.result).toBe('ok');
    expect(await status()).toMatchObject({ online: true, link: { connectedAt: before } });
  });

  it('doctor says that a box is not enrolled, and whether it could', async () => {
    const { boxWith, box, http } = await network();
    const { terminalCode, serialNumber } = box;
    const file = await boxWith({ box: { terminalCode, serialNumber }, ...http });
    const { code, of } = await findings(file);
    expect(code).toBe(0);
    expect(of('secret')).toMatchObject({ result: 'warning', fix: expect.stringContaining('paybox enrol') });
    expect(of('gateway health')).toMatchObject({ result: 'ok' });
    expect(of('login')).toBeUndefined();
    const dataDir = parse(await readFile(file, 'utf8')).dataDir;
    await mkdir(dataDir, { recursive: true });
    await writeFile(join(dataDir, 'secret'), `${box.secret}\n`);
    expect((await findings(file)).of('login')).toMatchObject({ result: 'ok' });
    await writeFile(join(dataDir, 'secret'), 'x\n');
    expect((await findings(file)).of('secret')).toMatchObject({
      result: 'failed',
      fix: expect.stringContaining('enrols'),
    });
  });

  it.each([
    ['has run out', -2 * DAY_MS, 'failed', /CERT_HAS_EXPIRED/, /clock/],
    ['runs out soon', 10 * DAY_MS, 'warning', /valid until .*, (9|10) days/, /--rotate/],
  ])('tells of a certificate that %s', async (_what, leftMs, result, found, fix) => {
    const folder = await temporaryFolder();
    const nowMs = Date.now();
    const authority = await createAuthority('test', validFor(nowMs, 1));
    const purpose = { kind: 'server', hosts: ['localhost'] } as const;
    const { cert, key } = await issue(authority, 'localhost', purpose, {
      fromMs: nowMs - 9 * DAY_MS,
      untilMs: nowMs + leftMs,
    });
    const server = createServer({ cert, key }, (socket) => socket.on('error', () => undefined).end());
    await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await writeFile(join(folder, 'ca.pem'), authority.cert);
    const config = {
      box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
      link: { transport: 'http', url: `https://localhost:${port}`, tls: { ca: 'ca.pem' } },
      displays: DISPLAYS,
      http: { port: await freePort() },
      dataDir: 'box',
    };
    await writeFile(join(folder, 'box.yaml'), JSON.stringify(config));
    const { of } = await findings(join(folder, 'box.yaml'));
    expect(of('gateway certificate')).toMatchObject({
      result,
      found: expect.stringMatching(found),
      fix: expect.stringMatching(fix),
    });
  });

  it('doctor says that a broker has no gateway', async () => {
    const { boxWith, box } = await network();
    const broker = await Aedes.createBroker();
    const server = createTcpServer(broker.handle);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => void broker.close(() => server.close(() => resolve()))));
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { terminalCode, serialNumber, secret } = box;
    const link = { transport: 'mqtt', url: `mqtt://127.0.0.1:${port}` };
    const { of } = await findings(await boxWith({ box: { terminalCode, serialNumber, secret }, link }));
    expect(of('login')).toMatchObject({
      result: 'failed',
      found: 'the broker accepts the login, but does not say that the gateway is present',
      fix: expect.stringContaining('start the gateway'),
    });
  });

  it('doctor names a host that nobody knows', async () => {
    const { boxWith } = await network();
    const { of, all } = await findings(await boxWith({ link: { transport: 'http', url: 'https://nowhere.invalid' } }));
    expect(of('gateway DNS')).toMatchObject({ result: 'failed', found: expect.stringContaining('nowhere.invalid') });
    expect(all.some(({ check }) => check === 'gateway')).toBe(false);
  });
});
