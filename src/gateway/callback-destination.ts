import { BlockList, isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';

/**
 * IPv6 networks that contain IPv4 addresses: NAT64 (RFC 6052, RFC 8215), SIIT and the old form of RFC 4291; 6to4 (RFC
 * 3056).
 */
const IPV4_INSIDE = [
  { before: '64:ff9b::', bits: 96, after: '' },
  { before: '64:ff9b:1::', bits: 96, after: '' },
  { before: '::ffff:0:', bits: 96, after: '' },
  { before: '::', bits: 96, after: '' },
  { before: '2002:', bits: 16, after: '::' },
];

/** Addresses of cloud metadata services, which have secrets, and addresses that no partner can have. */
const FORBIDDEN = blockList([
  // Link-local, with the metadata services of most clouds.
  ['169.254.0.0', 16],
  ['fe80::', 10],
  // Metadata services with addresses of their own: Alibaba, Oracle, Azure (WireServer), then AWS, Google, Oracle, Scaleway.
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  ['168.63.129.16', 32],
  ['fd00:ec2::', 32],
  ['fd20:ce::254', 128],
  ['fd00:c1::a9fe:a9fe', 128],
  ['fd00:42::42', 128],
  // Multicast and reserved.
  ['224.0.0.0', 3],
  ['ff00::', 8],
]);
/** Loopback and unspecified addresses. The other addresses of this machine are those of its interfaces. */
const OWN = blockList([
  ['127.0.0.0', 8],
  ['0.0.0.0', 8],
  ['::', 127],
]);

/** Ports on which the gateway itself listens. */
export type OwnPorts = () => readonly number[];

/** Whether a URL names this machine. Names are not resolved. */
export function isOwnHost(url: URL): boolean {
  const host = hostOf(url);
  return host === 'localhost' || isOwn(host);
}

/**
 * Why an IP address in a URL is forbidden for callbacks; `undefined` if it is allowed. A name is checked when it is
 * resolved.
 */
export function addressProblem(url: URL): string | undefined {
  const host = hostOf(url);
  return isIP(host) !== 0 && isIn(FORBIDDEN, host)
    ? `${host} is a link-local, metadata or multicast address`
    : undefined;
}

export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}

/** The host of a URL without the brackets of IPv6 and the final dot of a name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$|\.$/g, '');
}

/**
 * Why a connection to this address is forbidden; `undefined` if allowed: callbacks reach partners, not the gateway or
 * its cloud.
 */
export function destinationProblem(address: string, port: number, ownPorts: OwnPorts): string | undefined {
  if (isIn(FORBIDDEN, address)) return `${address} is a link-local, metadata or multicast address`;
  if (ownPorts().includes(port) && isOwn(address)) return `${address} port ${port} is the gateway itself`;
  return undefined;
}

/**
 * The lookup of a connection to this URL that reaches allowed addresses only. Throws when the URL itself has a forbidden
 * address.
 */
export function lookupFor(to: URL, ownPorts: OwnPorts, lookup: LookupFunction): LookupFunction {
  const host = hostOf(to);
  // An IP address in the URL is not looked up, so it is checked here.
  const problem = isIP(host) === 0 ? undefined : destinationProblem(host, portOf(to), ownPorts);
  if (problem !== undefined) throw new Error(`${to.host} is not allowed: ${problem}`);
  return checkedLookup(portOf(to), ownPorts, lookup);
}

/**
 * A lookup for one connection that checks every address it returns. So the name cannot get another address between
 * check and connection.
 */
function checkedLookup(port: number, ownPorts: OwnPorts, lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found, family) => {
      if (error) return callback(error, []);
      const addresses = Array.isArray(found) ? found : [{ address: found, family: family ?? isIP(found) }];
      for (const { address } of addresses) {
        const problem = destinationProblem(address, port, ownPorts);
        if (problem !== undefined) return callback(new Error(`${hostname} is not allowed: ${problem}`), []);
      }
      const [first] = addresses;
      if (options.all === true || first === undefined) return callback(null, addresses);
      return callback(null, first.address, first.family);
    });
  };
}

function isOwn(address: string): boolean {
  if (isIP(address) === 0) return false;
  if (isIn(OWN, address)) return true;
  return Object.values(networkInterfaces()).some((all) => all?.some((it) => it.address === address));
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/**
 * A block list of these networks. An IPv4 network is also blocked as IPv6 writes it; BlockList itself knows
 * `::ffff:1.2.3.4`.
 */
function blockList(subnets: readonly (readonly [string, number])[]): BlockList {
  const list = new BlockList();
  for (const [net, prefix] of subnets) {
    if (isIP(net) === 6) {
      list.addSubnet(net, prefix, 'ipv6');
      continue;
    }
    list.addSubnet(net, prefix, 'ipv4');
    const groups = (Buffer.from(net.split('.').map(Number)).toString('hex').match(/.{4}/g) ?? []).join(':');
    for (const { before, bits, after } of IPV4_INSIDE)
      list.addSubnet(`${before}${groups}${after}`, bits + prefix, 'ipv6');
  }
  return list;
}
