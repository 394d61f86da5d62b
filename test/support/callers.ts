import { request } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { onTestFinished } from 'vitest';

export interface AnswerFrom {
  status: number | undefined;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

/** Asks from an address of this machine of its own, as another machine would. */
export function askFrom(
  from: string,
  url: string,
  how: { method?: string; headers?: Record<string, string | string[]>; body?: string } = {},
): Promise<AnswerFrom> {
  const { method = 'POST', headers = {}, body } = how;
  return new Promise((resolve, reject) => {
    const asking = request(url, { method, headers, localAddress: from, agent: false }, async (answer) => {
      resolve({ status: answer.statusCode, headers: answer.headers, body: await text(answer) });
    });
    asking.on('error', reject);
    asking.end(body);
  });
}

export const basicOf = (user: string, password: string) =>
  `Basic ${Buffer.from(`${user}:${password}`, 'utf8').toString('base64')}`;

const SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** A PROXY header of version 2, as the specification has it, written by hand. */
export function proxyV2({
  command = 0x21,
  family,
  source = '',
  addresses = addressesOf(source),
  extra = Buffer.alloc(0),
}: {
  command?: number;
  family?: number;
  source?: string;
  addresses?: Buffer;
  extra?: Buffer;
}): Buffer {
  const rest = Buffer.concat([addresses, extra]);
  const head = Buffer.from([command, family ?? (source === '' ? 0 : source.includes(':') ? 0x21 : 0x11), 0, 0]);
  head.writeUInt16BE(rest.length, 2);
  return Buffer.concat([SIGNATURE, head, rest]);
}

/** Source, destination and their ports; an IPv6 address with all of its eight groups. */
function addressesOf(source: string): Buffer {
  if (source === '') return Buffer.alloc(0);
  const ports = Buffer.from([0xc0, 0x01, 0x1f, 0x90]);
  if (!source.includes(':')) {
    return Buffer.concat([Buffer.from(source.split('.').map(Number)), Buffer.from([127, 0, 0, 1]), ports]);
  }
  const groups = source.split(':').map((it) => it.padStart(4, '0'));
  return Buffer.concat([Buffer.from(groups.join(''), 'hex'), Buffer.alloc(16, 1), ports]);
}

/**
 * A proxy of this machine that passes connections on to a port, each after a PROXY header for the address from which it
 * came. The port on which it listens.
 */
export async function proxyBefore(port: number, local = '127.0.0.1'): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect({ port, host: '127.0.0.1', localAddress: local });
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined).once('close', () => [near, far].map((it) => it.destroy()));
    }
    far.write(proxyV2({ source: near.remoteAddress ?? '' }));
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
