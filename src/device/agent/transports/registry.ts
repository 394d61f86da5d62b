import { z } from 'zod';
import { ConfigError } from '../../../lib/errors.ts';
import { suggestion } from '../../../lib/suggestion.ts';
import type { UrlSchemes } from '../../../lib/tls.ts';
import type { GatewayAddress, Transport } from '../contract.ts';
import { httpTransport } from './http.ts';
import { mqttTransport } from './mqtt.ts';
import { vietqrTransport } from './vietqr.ts';

export type BoxTransport = Transport<GatewayAddress>;

/** All transports; the first is the default of commands. */
const ALL: readonly BoxTransport[] = [mqttTransport, httpTransport, vietqrTransport];

/** The URL schemes of all transports. */
export const LINK_SCHEMES: UrlSchemes = Object.assign({}, ...ALL.map(({ schemes }) => schemes));

/** All transports by their names in `link.transport` of the configuration. */
export const TRANSPORTS: ReadonlyMap<string, BoxTransport> = new Map(ALL.map((it) => [it.name, it]));

/** The transports to a gateway of this project, by name. There the box proves itself by its secret. */
export const GATEWAY_TRANSPORTS: ReadonlyMap<string, BoxTransport> = new Map(
  [...TRANSPORTS].filter(([, { ownLogin }]) => ownLogin === undefined),
);

const otherServices = ALL.flatMap(({ name, ownLogin }) => (ownLogin === undefined ? [] : [{ name, ...ownLogin }]));
const serviceNames = otherServices.map(({ name }) => name).join(' or ');
const bootLink = ({ name, boot }: (typeof otherServices)[number]) =>
  z.strictObject({ transport: z.literal(name), ...boot });

/** The `link` of a boot file, for a box at another service. */
export const BOOT_LINK = z.discriminatedUnion(
  'transport',
  otherServices.map(bootLink) as [ReturnType<typeof bootLink>],
  {
    error: ({ code }) =>
      code === 'invalid_union'
        ? `expected ${serviceNames}; without link the address of the gateway says how it is reached`
        : undefined,
  },
);

/** Names of the options in the `link` of a boot file that are secrets. */
export const BOOT_SECRETS: ReadonlySet<string> = new Set(otherServices.flatMap(({ fromFiles }) => fromFiles));

/** Returns the transport to a gateway that a command's `option` names. Throws ConfigError that lists them. */
export function transportNamed(option: string, name = ALL[0]?.name ?? ''): BoxTransport {
  const transport = GATEWAY_TRANSPORTS.get(name);
  if (transport === undefined)
    throw new ConfigError(
      `${option} ${name}: expected ${[...GATEWAY_TRANSPORTS.keys()].join(' or ')}${suggestion(name, GATEWAY_TRANSPORTS.keys())}`,
    );
  return transport;
}

/** Returns the dialect of other makers that a command's `option` names. Throws ConfigError that lists them. */
export function dialectNamed(option: string, name: string): BoxTransport {
  const dialects = [...TRANSPORTS.keys()].filter((it) => !GATEWAY_TRANSPORTS.has(it));
  const transport = dialects.includes(name) ? TRANSPORTS.get(name) : undefined;
  if (transport === undefined)
    throw new ConfigError(`${option} ${name}: expected ${dialects.join(' or ')}${suggestion(name, dialects)}`);
  return transport;
}

/** Returns the transport to a gateway at this address, by its scheme. */
export function transportFor(url: string): BoxTransport | undefined {
  const scheme = URL.parse(url)?.protocol.slice(0, -1) ?? '';
  return [...GATEWAY_TRANSPORTS.values()].find(({ schemes }) => Object.hasOwn(schemes, scheme));
}
