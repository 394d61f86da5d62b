import { ConfigError } from '../../lib/errors.ts';
import type { GatewayAddress, Transport } from '../contract.ts';
import { httpTransport } from './http.ts';
import { mqttTransport } from './mqtt.ts';

export type BoxTransport = Transport<GatewayAddress>;

/** All transports; the first is the default of commands. */
const ALL: readonly BoxTransport[] = [mqttTransport, httpTransport];

/** By name, as in `link.transport` of the configuration. */
export const TRANSPORTS: ReadonlyMap<string, BoxTransport> = new Map(ALL.map((it) => [it.name, it]));

/** The transport that a command's `option` names. Throws ConfigError that lists them. */
export function transportNamed(option: string, name = ALL[0]?.name ?? ''): BoxTransport {
  const transport = TRANSPORTS.get(name);
  if (transport === undefined)
    throw new ConfigError(`${option} ${name}: expected ${[...TRANSPORTS.keys()].join(' or ')}`);
  return transport;
}

/** The transport for an address, by its scheme. */
export function transportFor(url: string): BoxTransport | undefined {
  const scheme = URL.parse(url)?.protocol.slice(0, -1) ?? '';
  return ALL.find(({ schemes }) => schemes.includes(scheme));
}
