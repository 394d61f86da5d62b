import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from './net.ts';
import { startProxy } from './proxy.ts';

/** Records what one end of a connection observes. */
function watch(socket: Socket) {
  const seen = { text: '', ended: false, error: '', closed: false };
  socket.on('data', (bytes) => (seen.text += String(bytes)));
  socket.on('end', () => (seen.ended = true));
  socket.on('error', (error) => (seen.error = String(error)));
  socket.on('close', () => (seen.closed = true));
  return seen;
}

/** Both ends of a connection through a proxy. */
async function connected() {
  const server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const proxy = await startProxy({ port: typeof address === 'object' && address !== null ? address.port : 0 });
  onTestFinished(async () => {
    await proxy.close();
    server.close();
  });
  const dial = async () => {
    const accepted = new Promise<Socket>((resolve) => server.once('connection', resolve));
    const near = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
    const far = await accepted;
    return { near, far, atNear: watch(near), atFar: watch(far) };
  };
  return { proxy, dial, ...(await dial()) };
}

describe('the proxy', () => {
  it('holds bytes and ends while it is stalled, each way for itself', async () => {
    const { proxy, near, far, atNear, atFar } = await connected();
    proxy.stall(['up']);
    near.end('up');
    far.write('down');
    await eventually('the other way', () => atNear.text === 'down');
    expect(atFar).toMatchObject({ text: '', ended: false });
    proxy.resume();
    await eventually('what was held', () => atFar.text === 'up' && atFar.ended);
  });

  it('cuts both ends with a reset', async () => {
    const { proxy, atNear, atFar } = await connected();
    proxy.cut();
    await eventually('the ends', () => atNear.closed && atFar.closed);
    expect([atNear.error, atFar.error]).toEqual([
      expect.stringContaining('ECONNRESET'),
      expect.stringContaining('ECONNRESET'),
    ]);
    await eventually('no connection', () => proxy.open === 0);
  });

  it('ends one way and leaves the other', async () => {
    const { proxy, near, atNear, atFar } = await connected();
    proxy.halfClose('down');
    await eventually('the end', () => atNear.ended);
    near.write('still here');
    await eventually('the other way', () => atFar.text === 'still here');
    expect(atFar.ended).toBe(false);
  });

  it('abandons what is open and takes what is new', async () => {
    const { proxy, dial, near, atFar } = await connected();
    proxy.abandon();
    near.end('lost');
    const second = await dial();
    second.near.write('new');
    await eventually('the new one', () => second.atFar.text === 'new');
    expect(atFar).toEqual({ text: '', ended: false, error: '', closed: false });
    expect(proxy.dialled).toBe(2);
  });

  it('delays and throttles without changing the order', async () => {
    const { proxy, near, atFar } = await connected();
    const startedMs = performance.now();
    proxy.delay(50, 50);
    proxy.throttle(100_000, ['up']);
    for (let n = 0; n < 20; n += 1) near.write(`${n},`.padEnd(1_000));
    near.end();
    await eventually('the end', () => atFar.ended);
    expect(atFar.text.replaceAll(' ', '')).toBe(Array.from({ length: 20 }, (_, n) => `${n},`).join(''));
    expect(performance.now() - startedMs).toBeGreaterThan(150);
  });
});
