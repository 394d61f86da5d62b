import { spawn } from 'node:child_process';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { openHttp } from '../../src/lib/http-client.ts';

const LISTENER = `const server = require('node:net').createServer();
server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => process.stdout.write(String(server.address().port)));`;
const QUEUE_MAX = 8;

/** The port of a program that listens, accepts nothing, and whose queue is full. */
async function fullListener(): Promise<number> {
  const child = spawn(process.execPath, ['-e', LISTENER], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const port = Number(await new Promise((resolve) => child.stdout.once('data', resolve)));
  child.kill('SIGSTOP');
  for (let waiting = 0; waiting < QUEUE_MAX; waiting += 1) {
    const socket = connect({ port, host: '127.0.0.1' });
    onTestFinished(() => {
      socket.destroy();
    });
    const connected = new Promise((resolve) => socket.once('connect', () => resolve(true)));
    if ((await Promise.race([connected, delay(500)])) === undefined) return port;
  }
  throw new Error('the queue of the listener is never full');
}

it.skipIf(process.platform !== 'linux')('gives up to connect in time where nobody accepts', async () => {
  const port = await fullListener();
  const asked = openHttp(`http://127.0.0.1:${port}`, { agent: false, connectTimeoutMs: 200 });
  await expect(asked).rejects.toMatchObject({ code: 'ETIMEDOUT' });
});
