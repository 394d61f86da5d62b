import { type AddressInfo, createServer, type Socket } from 'node:net';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { NamedSockets } from '../../src/gateway/store/engines/named-socket.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { HostResolver } from '../../src/lib/resolver.ts';
import { eventually } from '../support/net.ts';

it('fails all who wait for a connection to a server that hangs, and those after them, and does not end the process', async () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => accepted.push(socket));
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const names = new HostResolver({ clock: systemClock });
  onTestFinished(() => {
    names.close();
    for (const socket of accepted) socket.destroy();
    server.close();
  });
  const sockets = new NamedSockets(names);
  const { port } = server.address() as AddressInfo;
  const pool = new pg.Pool({ host: '127.0.0.1', port, max: 1, stream: () => sockets.make() });
  const fails = () =>
    pool.connect().then(
      () => 'connected',
      () => 'failed',
    );
  // The first connects, the others queue behind it: the pool opens a connection for the next one when the first has failed.
  const waiting = [fails(), fails(), fails()];
  await eventually('a connection', () => accepted.length > 0);
  sockets.abandon();
  expect(await Promise.all(waiting)).toEqual(['failed', 'failed', 'failed']);
  expect(await fails()).toBe('failed');
  expect(accepted).toHaveLength(1);
});
