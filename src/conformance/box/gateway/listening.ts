import type { Server } from 'node:net';
import { ConfigError, reasonOf, systemCodeOf } from '../../../lib/errors.ts';
import type { ListenAddress } from './endpoint.ts';

/** Opens a server; the port that it got. Throws ConfigError that names the option. */
export async function openServer(server: Server, { host, port }: ListenAddress, option: string): Promise<number> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        resolve();
      });
    });
  } catch (error) {
    const code = systemCodeOf(error);
    if (code === 'EADDRINUSE') {
      throw new ConfigError(`${option}: port ${port} is already in use on ${host}`, `choose another ${option}`);
    }
    const fix = 'name an address of this machine with --listen, and ports that may be opened';
    throw new ConfigError(`${option}: ${host}:${port} cannot be opened: ${reasonOf(error)}`, fix);
  }
  const address = server.address();
  return address === null || typeof address === 'string' ? port : address.port;
}
