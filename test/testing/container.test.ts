import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { makeLibrary } from '../../scripts/package.ts';
import { PartnerClient } from '../../src/bench/engine/clients/partner.ts';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import type * as Container from '../../src/bench/library/container.ts';
import { DEMO } from '../../src/commands/actions/demo.ts';
import { isStrongSecret } from '../../src/protocol/secret.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { CLI, type Running, run, START_MS } from '../support/processes.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const FAKE = 'paybox: testcontainers of a test';

/** What a container is to wait for, as far as a program without an engine can be asked. */
interface Waiting {
  kind: 'all' | 'http' | 'log';
  all?: Waiting[];
  path?: string;
  port?: number;
  line?: RegExp;
}

const Wait = {
  forAll: (all: Waiting[]): Waiting => ({ kind: 'all', all }),
  forHttp(path: string, port: number, options: { abortOnContainerExit?: boolean } = {}): Waiting {
    expect(Object.keys(options)).toEqual(['abortOnContainerExit']);
    return { kind: 'http', path, port };
  },
  forLogMessage(line: RegExp, times = 1): Waiting {
    expect([line, times]).toEqual([expect.any(RegExp), 1]);
    return { kind: 'log', line };
  },
};

/** Runs `paybox up` as the image does, for the calls of testcontainers that it knows; any other call is a TypeError. */
class GenericContainer {
  static images: string[] = [];
  #ports: number[] = [];
  #env: Record<string, string> = {};
  #command = ['up'];
  #waiting: Waiting | undefined;

  constructor(image: string) {
    GenericContainer.images.push(image);
  }

  withExposedPorts(...ports: number[]): this {
    expect(ports.every(Number.isInteger)).toBe(true);
    this.#ports.push(...ports);
    return this;
  }

  withEnvironment(env: Record<string, string>): this {
    expect(Object.values(env).every((value) => typeof value === 'string')).toBe(true);
    Object.assign(this.#env, env);
    return this;
  }

  withCommand(command: string[]): this {
    this.#command = command;
    return this;
  }

  withWaitStrategy(waiting: Waiting): this {
    this.#waiting = waiting;
    return this;
  }

  async start(): Promise<Started> {
    const [gateway = 0, box = 0, mqtt = 0] = await freePorts(3);
    const [name, ...options] = this.#command;
    // As /usr/bin/paybox of the image, on other ports.
    expect(name).toBe('up');
    const own = ['--host', '0.0.0.0', '--data', await temporaryFolder(), '--no-open'];
    const ports = ['--http-port', `${gateway}`, '--box-port', `${box}`, '--mqtt-port', `${mqtt}`];
    const running = run(CLI, ['up', ...own, ...ports, ...options], this.#env);
    const inside = new Map([
      [8800, gateway],
      [8810, box],
    ]);
    const mapped = new Map(this.#ports.map((port) => [port, inside.get(port) ?? expect.unreachable()]));
    const started = new Started(running, mapped);
    await started.ready(this.#waiting);
    return started;
  }
}

class Started {
  readonly running: Running;
  readonly #mapped: ReadonlyMap<number, number>;

  constructor(running: Running, mapped: ReadonlyMap<number, number>) {
    this.running = running;
    this.#mapped = mapped;
  }

  /** Throws as testcontainers does where the container ends first. */
  async ready(waiting: Waiting | undefined): Promise<void> {
    const { kind, all = [], line, path, port = 0 } = waiting ?? expect.unreachable('a wait strategy');
    if (kind === 'all') await Promise.all(all.map((one) => this.ready(one)));
    else {
      await eventually(`container: ${kind}`, () => this.#is({ line, url: `${this.#origin(port)}${path}` }), START_MS);
    }
  }

  async #is({ line, url }: { line: RegExp | undefined; url: string }): Promise<boolean> {
    if (this.running.child.exitCode !== null) throw new Error(`container exited: ${this.running.output()}`);
    if (line !== undefined)
      return this.running
        .output()
        .split('\n')
        .some((one) => line.test(one));
    return (await fetch(url).catch(() => undefined))?.ok === true;
  }

  #origin(port: number): string {
    return port === 0 ? '' : `http://${this.getHost()}:${this.getMappedPort(port)}`;
  }

  getHost(): string {
    return '127.0.0.1';
  }

  getMappedPort(port: number): number {
    return this.#mapped.get(port) ?? expect.unreachable(`port ${port} is not exposed`);
  }

  async stop(): Promise<void> {
    expect(await this.running.stop()).toBe(0);
  }
}

class AbstractStartedContainer {
  readonly #started: Started;

  constructor(started: Started) {
    this.#started = started;
  }

  getHost = () => this.#started.getHost();
  getMappedPort = (port: number) => this.#started.getMappedPort(port);
  stop = () => this.#started.stop();
}

/** The module as it is packed; its folder has a testcontainers, or none. */
async function packed(testcontainers: boolean) {
  const folder = await temporaryFolder();
  await makeLibrary(join(folder, 'lib/testing'));
  await copyFile(join(ROOT, 'package.json'), join(folder, 'package.json'));
  await writeFile(join(folder, 'lib/package.json'), '{"type":"commonjs"}');
  if (testcontainers) {
    await mkdir(join(folder, 'node_modules/testcontainers'), { recursive: true });
    const code = `module.exports = globalThis[Symbol.for(${JSON.stringify(FAKE)})];`;
    await writeFile(join(folder, 'node_modules/testcontainers/index.js'), code);
  }
  const load = createRequire(join(folder, 'lib/testing/index.cjs'));
  const library = load('./index.cjs') as typeof import('../../src/bench/library/index.ts');
  return { ...library, container: () => load('./container.cjs') as typeof Container };
}

/** A shop's server that notes the callbacks it takes. */
async function shop() {
  const taken: unknown[] = [];
  const server = createServer(async (request, response) => {
    taken.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
    const object = { reftransactionid: 'ref-1' };
    response.end(JSON.stringify({ error: false, errorReason: '000', toastMessage: '', object }));
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return { taken, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/sync` };
}

/** A sale by the service, as a back end makes it; the answer of send-qr. */
async function sell({ serviceUrl, partner, account, box }: Container.StartedPayboxContainer, content: string) {
  const service = new PartnerClient({ baseUrl: serviceUrl, ...partner });
  const token = await service.token();
  const { qrCode } = await service.generate(token, { ...account, amount: 50_000, content, orderId: content });
  const { bankAccount, bankCode } = account;
  return service.sendQr(token, { bankAccount, bankCode, amount: '50000', content, qrCode, ...box, orderId: content });
}

beforeEach(() => {
  GenericContainer.images = [];
  Object.assign(globalThis, { [Symbol.for(FAKE)]: { GenericContainer, AbstractStartedContainer, Wait } });
});

describe('the module testcontainers of the package', () => {
  it('starts the image of its version, sells, is paid, and calls the shop back', async () => {
    const { container, NotAsExpected, PayboxRefusal } = await packed(true);
    const { taken, url } = await shop();
    const paybox = await new (container().PayboxContainer)().withCallbackUrl(url).start();
    const { version } = createRequire(import.meta.url)('../../package.json') as { version: string };
    expect(GenericContainer.images).toEqual([`paybox:${version}`]);
    expect(isStrongSecret(paybox.adminToken)).toBe(true);
    await paybox.expect({ state: 'idle', online: true });
    expect(await sell(paybox, 'DH1')).toEqual({ status: 'SUCCESS', message: '' });
    await paybox.expect({ state: 'showing', text: '50.000 ₫' });
    const { transactionId } = await paybox.pay({ amount: 50_000, content: 'DH1' });
    await paybox.expect({ state: 'paid' });
    await eventually('the callback', () => taken.length > 0);
    expect(taken).toMatchObject([{ transactionid: transactionId, amount: 50_000 }]);
    expect((await fetch(paybox.consoleUrl)).ok).toBe(true);
    for (const wrong of [{ state: 'showing' as const }, { online: false }, { text: '60.000 ₫' }]) {
      await expect(paybox.expect({ ...wrong, withinMs: 100 })).rejects.toThrow(NotAsExpected);
    }
    await expect(paybox.pay({ amount: 0, content: 'DH1' })).rejects.toThrow(PayboxRefusal);
    await paybox.stop();
  });

  it('takes another image and a token, and tells the identities of paybox up', async () => {
    const { PayboxContainer } = (await packed(true)).container();
    const token = 'Kq3vN8tYw2Lx7RbZs5Hd9GmC';
    const paybox = await new PayboxContainer('registry.example/paybox:1').withAdminToken(token).start();
    expect(GenericContainer.images).toEqual(['registry.example/paybox:1']);
    const { terminalCode, serialNumber } = DEMO.box;
    const { partner, account, box } = paybox;
    expect({ partner, account, box }).toEqual({ ...DEMO, box: { terminalCode, serialNumber } });
    const status = (authorization: string) => fetch(`${paybox.boxUrl}/status`, { headers: { authorization } });
    expect([(await status(`Bearer ${token}`)).status, (await status('Bearer no')).status]).toEqual([200, 401]);
    await paybox.stop();
  });

  it('does not start with a token that can be guessed', async () => {
    const { PayboxContainer } = (await packed(true)).container();
    const started = new PayboxContainer().withAdminToken('secret').start();
    await expect(started).rejects.toThrow(/container exited: .*PAYBOX_ADMIN_TOKEN: expected a secret of 128 bits/);
  });

  it('is missing without testcontainers, and the library is not', async () => {
    const { container, openPaybox } = await packed(false);
    expect(openPaybox).toBeTypeOf('function');
    expect(container).toThrow("Cannot find module 'testcontainers'");
  });
});
