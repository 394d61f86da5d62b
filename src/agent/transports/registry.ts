import type { Transport } from '../contract.ts';
import { httpTransport } from './http.ts';
import { mqttTransport } from './mqtt.ts';

/** What the options of every transport have in common. */
export interface GatewayAddress {
  url: string;
}

/** The ways to reach a gateway, by the name that `link.transport` of the configuration gives them. */
export const TRANSPORTS: ReadonlyMap<string, Transport<GatewayAddress>> = new Map(
  [mqttTransport, httpTransport].map((transport): [string, Transport<GatewayAddress>] => [transport.name, transport]),
);
