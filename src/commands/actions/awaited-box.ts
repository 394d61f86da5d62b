import { probeOf, screenProbe } from '../../bench/engine/probes.ts';
import { isAnyHost, ownAddress } from '../../bench/judges/box/external-box.ts';
import { ConfigError } from '../../lib/errors.ts';
import { systemRandom } from '../../lib/random.ts';
import { remark } from '../shared/output.ts';
import { boxTokenOf } from '../shared/secrets.ts';
import { authorityIn, tlsIdentitiesOf } from './bench-tls.ts';

/** Options of `paybox judge box` and `paybox judge dialect` about a box that connects from outside. */
export interface AwaitedBoxOptions {
  boxPage?: string;
  boxTokenFile?: string;
  listen?: string;
  mqttPort?: number;
  httpPort?: number;
  /** A folder made by `paybox provision`. */
  tls?: string;
  probe?: string;
  restartCommand?: string;
  /** Seconds. */
  within?: number;
}

const LOOPBACK = '127.0.0.1';
const MQTT_PORT = 18_840;
const HTTP_PORT = 8_840;
const WITHIN_SECONDS = 120;

/**
 * Returns how a box from outside connects and is seen, whatever it speaks. Throws ConfigError that names the option.
 */
export function awaitedBox(given: AwaitedBoxOptions) {
  const { boxPage: url, probe, listen: host = LOOPBACK, restartCommand } = given;
  if (url !== undefined && !/^https?:\/\/[^@]+$/.test(url)) {
    throw new ConfigError(`--box-page ${url}: expected the origin of the box's pages, as http://192.168.1.20:8810`);
  }
  const token = boxTokenOf(given);
  const pages = url === undefined ? undefined : screenProbe();
  const authority = given.tls === undefined ? undefined : authorityIn(given.tls);
  return async (signal: AbortSignal) => ({
    tls: authority && (await tlsIdentitiesOf(authority, isAnyHost(host) ? ownAddress() : host)),
    place: { host, mqttPort: given.mqttPort ?? MQTT_PORT, httpPort: given.httpPort ?? HTTP_PORT },
    url,
    token,
    probe: probe === undefined ? pages : probeOf(probe),
    restartCommand,
    withinMs: (given.within ?? WITHIN_SECONDS) * 1000,
    random: systemRandom,
    signal,
    onListening: (lines: string[]) => void remark(lines.join('\n')),
    onProgress: (text: string) => void remark(`… ${text}`),
  });
}
