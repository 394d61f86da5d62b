import { createSocket } from 'node:dgram';
import { onTestFinished } from 'vitest';

const [A, AAAA] = [1, 28];

/** Answer for a name: addresses, `unknown` (NXDOMAIN), or `silent`, which is also the default. */
export type Zone = Record<string, { v4?: string; v6?: string; ttl?: number } | 'unknown' | 'silent'>;

/** A real name server on loopback, written without the project's code. `asked` lists the name of each question. */
export async function startNameServer(zone: Zone, at: { host?: string; port?: number } = {}) {
  const { host = '127.0.0.1', port = 0 } = at;
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const { name, type, end } = questionOf(query);
    asked.push(name);
    const entry = zone[name] ?? 'silent';
    if (entry === 'silent') return;
    const address = entry === 'unknown' ? undefined : type === A ? entry.v4 : type === AAAA ? entry.v6 : undefined;
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(entry === 'unknown' ? 0x81_83 : 0x81_80, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(address === undefined ? 0 : 1, 6);
    const answer = address === undefined ? [] : [recordOf(type, address, entry === 'unknown' ? 0 : (entry.ttl ?? 60))];
    socket.send(Buffer.concat([header, query.subarray(12, end), ...answer]), from.port, from.address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.bind(port, host, resolve);
  });
  onTestFinished(() => void socket.close());
  return { server: `${host}:${socket.address().port}`, asked, zone };
}

function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function recordOf(type: number, address: string, ttl: number): Buffer {
  const data = type === A ? Buffer.from(address.split('.').map(Number)) : ipv6(address);
  const head = Buffer.alloc(12);
  head.writeUInt16BE(0xc0_0c, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt32BE(ttl, 6);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}

/** Bytes of an IPv6 address with at most one `::`. */
function ipv6(address: string): Buffer {
  const [left = '', right = ''] = address.split('::');
  const words = (part: string) => part.split(':').filter((it) => it !== '');
  const [before, after] = [words(left), words(right)];
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return Buffer.from([...before, ...zeros, ...after].map((it) => it.padStart(4, '0')).join(''), 'hex');
}
