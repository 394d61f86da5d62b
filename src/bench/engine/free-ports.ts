import { randomInt } from 'node:crypto';
import { createServer, type Server } from 'node:net';

/**
 * These ports are below those that systems give to outgoing connections. An outgoing connection could take such a port
 * before its user does.
 */
const [PORT_MIN, PORT_MAX] = [11_000, 32_767];
const TRIES_MAX = 1_000;

/**
 * Returns this many different loopback TCP ports that were free just now, each in 11,000 to 32,767. Throws the error of
 * the last try when it finds none in 1,000 tries.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers: Server[] = [];
  const ports: number[] = [];
  let error: unknown;
  for (let tries = 0; ports.length < count && tries < TRIES_MAX; tries += 1) {
    const port = randomInt(PORT_MIN, PORT_MAX + 1);
    const server = createServer();
    error = await new Promise<unknown>((resolve) => {
      server.once('error', resolve);
      server.listen(port, '127.0.0.1', () => resolve(undefined));
    });
    if (error !== undefined) continue;
    servers.push(server);
    ports.push(port);
  }
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  if (ports.length < count) throw error;
  return ports;
}
