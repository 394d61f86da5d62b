import { type AddressInfo, createServer } from 'node:net';
import { join, resolve } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { freePorts } from '../../src/bench/engine/free-ports.ts';
import { temporaryFolder } from '../support/net.ts';
import { CLI, paybox, type Running, readyFile, run } from '../support/processes.ts';
import { PROGRAMS, without } from '../support/programs.ts';

const DRIVE = resolve(import.meta.dirname, '../scenarios/drive');
const { missing, note } = without(PROGRAMS.python);

/** The environment of a machine that has everything go through a proxy, which here only counts who comes. */
async function proxyEnvironment() {
  const proxy = { connections: 0 };
  const server = createServer((socket) => {
    proxy.connections += 1;
    socket.destroy();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { proxy, env: { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url, NO_PROXY: '', no_proxy: '' } };
}

async function ended(running: Running) {
  return { code: await running.ended, output: running.output() };
}

it('commands reach the gateway of this machine past a proxy that Node is told to use', async () => {
  const { proxy, env } = await proxyEnvironment();
  const folder = await temporaryFolder();
  const [http, mqtt, box] = await freePorts(3);
  const ports = ['--http-port', `${http}`, '--mqtt-port', `${mqtt}`, '--box-port', `${box}`];
  const ready = join(folder, 'ready.json');
  const up = run(CLI, ['up', '--no-open', '--data', join(folder, 'data'), ...ports, '--ready-file', ready], env);
  await readyFile(ready, up);
  const order = ['--gateway', `http://localhost:${http}`, '--amount', '50000', '--content', 'DH1'];
  expect(await ended(run(CLI, ['push', ...order], env))).toMatchObject({ code: 0 });
  expect(await ended(run(CLI, ['pay', ...order], env))).toMatchObject({ code: 0 });
  const boxes = run(CLI, ['admin', 'boxes', 'list', '--gateway', `http://127.0.0.1:${http}`], env);
  expect(await ended(boxes)).toMatchObject({ code: 0, output: expect.stringContaining('VVB000001') });
  expect(proxy.connections).toBe(0);
});

it.skipIf(missing)(`the client in Python reaches the bench of this machine past a proxy${note}`, async () => {
  const { proxy, env } = await proxyEnvironment();
  const ready = join(await temporaryFolder(), 'ready.json');
  const { url } = await readyFile<{ url: string }>(
    ready,
    paybox('bench', 'serve', '--port', '0', '--ready-file', ready),
  );
  const code = 'import paybox_bench; print(len(paybox_bench.Bench().scenarios()))';
  const asked = await ended(run('python3', ['-c', code], { ...env, PYTHONPATH: DRIVE, PAYBOX_BENCH_URL: url }));
  expect(asked).toEqual({ code: 0, output: expect.stringMatching(/^[1-9]\d*\n$/) });
  expect(proxy.connections).toBe(0);
});
