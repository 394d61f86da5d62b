import { BlockList, isIP, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';

type Networks = readonly (readonly [network: string, prefix: number])[];

/** Addresses of cloud metadata services, which hold secrets, and addresses that no partner can have. */
const LOCAL = everywhere([
  // Link-local addresses, with the metadata services of most clouds.
  ['169.254.0.0', 16],
  ['fe80::', 10],
  // Metadata services with other addresses: Alibaba, Oracle, Azure (WireServer), then AWS, Google, Oracle, Scaleway.
  ['100.100.100.200', 32],
  ['192.0.0.192', 32],
  ['168.63.129.16', 32],
  ['fd00:ec2::', 32],
  ['fd20:ce::254', 128],
  ['fd00:c1::a9fe:a9fe', 128],
  ['fd00:42::42', 128],
  // Multicast and reserved addresses.
  ['224.0.0.0', 3],
  ['ff00::', 8],
]);

/** The other networks in the IANA registries of special-purpose addresses, without private ones. No host has these. */
const SPECIAL = everywhere([
  // Documentation has these (RFC 5737, RFC 3849, RFC 9637), and so do benchmarks (RFC 2544).
  ['192.0.2.0', 24],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['2001:db8::', 32],
  ['3fff::', 20],
  ['198.18.0.0', 15],
  // Protocols: RFC 6890, AS112 (RFC 7534, RFC 7535), AMT (RFC 7450), relays of 6to4 (RFC 7526).
  ['192.0.0.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.175.48.0', 24],
  ['2620:4f:8000::', 48],
  // RFC 2928: Teredo, which embeds IPv4 addresses, and benchmarks, AMT, AS112, ORCHID and drones.
  ['2001::', 23],
]);

/**
 * Networks of IPv6 in which hosts can be. Everything else is one of three things:
 * - It is not assigned.
 * - It was withdrawn: fec0::/10 (RFC 3879), IPv4 as ::/96 (RFC 4291) and ::ffff:0:0:0/96 (RFC 2765).
 * - It leads to the gateway's own network: 64:ff9b:1::/48 (RFC 8215).
 */
const OF_HOSTS = blockList([
  ['2000::', 3],
  // Private networks are allowed here as in IPv4: a partner may be in the gateway's own network.
  ['fc00::', 7],
  ['::', 127],
  // IPv4 addresses as IPv6 writes them, and IPv4 addresses behind a NAT64 (RFC 6052).
  ['::ffff:0:0', 96],
  ['64:ff9b::', 96],
]);

/** Loopback and unspecified addresses. `isOwn` adds the addresses of this machine's interfaces. */
const OWN: Networks = [
  ['127.0.0.0', 8],
  ['0.0.0.0', 8],
  ['::', 127],
];
/** The private networks of RFC 1918 and RFC 6598. */
const PRIVATE: Networks = [
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
];
const OWN_LIST = blockList(OWN);
/** NAT64 and 6to4 embed public addresses only (RFC 6052, section 3.1; RFC 3056, section 2). */
const NOT_EMBEDDED = blockList([...OWN, ...PRIVATE].flatMap(embedded));

/** The ports on which the gateway itself listens. */
export type OwnPorts = ReadonlySet<number>;

/** Returns whether a URL names this machine. It does not resolve names. */
export function isOwnHost(url: URL): boolean {
  const host = hostOf(url);
  return host === 'localhost' || isOwn(host);
}

/**
 * Returns why an IP address in a URL is forbidden for callbacks; undefined if it is allowed. A name is checked later, when it is
 * resolved.
 */
export function addressProblem(url: URL): string | undefined {
  const host = hostOf(url);
  return isIP(host) === 0 ? undefined : specialProblem(host);
}

export function portOf(url: URL): number {
  return url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
}

/** Returns the ports of these addresses. */
export function portsOf(...addresses: (string | undefined)[]): number[] {
  return addresses.flatMap((address) => (address === undefined ? [] : [portOf(new URL(address))]));
}

/** Returns the host of a URL without the brackets of IPv6 and without the final dot of a name. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$|\.$/g, '');
}

/**
 * Returns why a connection to this address is forbidden; undefined if it is allowed. Callbacks must not reach the gateway or its
 * cloud.
 */
export function destinationProblem(address: string, port: number, ownPorts: OwnPorts): string | undefined {
  const problem = specialProblem(address);
  if (problem !== undefined) return problem;
  if (ownPorts.has(port) && isOwn(address)) return `${address} port ${port} is the gateway itself`;
  return undefined;
}

/** Returns the lookup for a connection to this URL. It finds allowed addresses only. Throws for a forbidden URL. */
export function lookupFor(to: URL, ownPorts: OwnPorts, lookup: LookupFunction): LookupFunction {
  const host = hostOf(to);
  // Node does not look up an IP address in the URL, so it is checked here.
  const problem = isIP(host) === 0 ? undefined : destinationProblem(host, portOf(to), ownPorts);
  if (problem !== undefined) throw new Error(`${to.host} is not allowed: ${problem}`);
  return checkedLookup(portOf(to), ownPorts, lookup);
}

/**
 * Makes a lookup for one connection that checks every address it returns. So the name cannot change its address between
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

function specialProblem(address: string): string | undefined {
  if (isIn(LOCAL, address)) return `${address} is a link-local, metadata or multicast address`;
  if (isIP(address) === 6 && !isIn(OF_HOSTS, address)) return `${address} is not an address of a host`;
  if (isIn(NOT_EMBEDDED, address)) return `${address} is a private IPv4 address inside of IPv6`;
  // Some networks give special-purpose addresses to their hosts, and this machine may have one.
  return isIn(SPECIAL, address) && !isOwn(address) ? `${address} is a special-purpose address` : undefined;
}

function isOwn(address: string): boolean {
  if (isIP(address) === 0) return false;
  if (isIn(OWN_LIST, address)) return true;
  const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const networks = own.map((it) => [withoutZone(it.address), it.family === 'IPv6' ? 128 : 32] as const);
  // A BlockList compares addresses, because one address can be written in several ways.
  return isIn(everywhere(networks), address);
}

function isIn(list: BlockList, address: string): boolean {
  return list.check(withoutZone(address), isIP(address) === 6 ? 'ipv6' : 'ipv4');
}

/** Returns the address without the interface that an IPv6 address may name. */
function withoutZone(address: string): string {
  return address.replace(/%.*$/, '');
}

/** Returns an IPv4 network as NAT64 (RFC 6052) and 6to4 (RFC 3056) write it in IPv6. */
function embedded([network, prefix]: Networks[number]): Networks {
  if (isIP(network) !== 4) return [];
  const groups = (Buffer.from(network.split('.').map(Number)).toString('hex').match(/.{4}/g) ?? []).join(':');
  return [
    [`64:ff9b::${groups}`, 96 + prefix],
    [`2002:${groups}::`, 16 + prefix],
  ];
}

/** Makes a list of these networks. It has the IPv4 networks also as IPv6 embeds them. */
function everywhere(networks: Networks): BlockList {
  return blockList([...networks, ...networks.flatMap(embedded)]);
}

/** Makes a list of these networks. BlockList itself matches `::ffff:1.2.3.4` with networks of IPv4. */
function blockList(networks: Networks): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, isIP(network) === 6 ? 'ipv6' : 'ipv4');
  return list;
}
