import { ConfigError } from '../../lib/errors.ts';
import type { GatewayAddress, Transport } from '../contract.ts';
import { httpTransport } from './http.ts';
import { mqttTransport } from './mqtt.ts';

export type BoxTransport = Transport<GatewayAddress>;

/** Every way to reach a gateway; the first is what commands use where none is named. */
const ALL: readonly BoxTransport[] = [mqttTransport, httpTransport];

/** By the name that `link.transport` of the configuration gives them. */
export const TRANSPORTS: ReadonlyMap<string, BoxTransport> = new Map(ALL.map((it) => [it.name, it]));

/** The transport that an `option` of a command names. Throws ConfigError that lists them. */
export function transportNamed(option: string, name = ALL[0]?.name ?? ''): BoxTransport {
  const transport = TRANSPORTS.get(name);
  if (transport === undefined)
    throw new ConfigError(`${option} ${name}: expected ${[...TRANSPORTS.keys()].join(' or ')}`);
  return transport;
}

/** The transport that goes to an address, by its scheme. */
export function transportFor(url: string): BoxTransport | undefined {
  const scheme = URL.parse(url)?.protocol.slice(0, -1) ?? '';
  return ALL.find(({ schemes }) => schemes.includes(scheme));
}
