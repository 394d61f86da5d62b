import { isIPv6 } from 'node:net';

/**
 * The name of the network that an address counts as: itself, or for IPv6 the whole /64, which is what a single client
 * usually has. An IPv4 address written as IPv6 is the same as that IPv4 address.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = '', tail] = address.split('%', 1)[0]?.split('::') ?? [];
  const groups = (text: string | undefined) => (text ? text.split(':') : []);
  const missing = tail === undefined ? 0 : Math.max(0, 8 - groups(head).length - groups(tail).length);
  const all = [...groups(head), ...Array<string>(missing).fill('0'), ...groups(tail)];
  return `${all
    .slice(0, 4)
    .map((it) => Number.parseInt(it, 16).toString(16))
    .join(':')}::/64`;
}
