import { isIP } from 'node:net';
import { parseDocument, stringify, YAMLSeq } from 'yaml';
import { ConfigError } from '../../lib/errors.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import type { BoxName } from '../../protocol/fields.ts';
import { GATEWAY_LOGIN } from './brokers.ts';

/** The addresses of the gateway and its broker. */
export interface Addresses {
  /** The names and IP addresses in the servers' certificate. Boxes use the first. */
  hosts: readonly string[];
  httpPort: number;
  mqttPort: number;
}

/** Returns whether gateway and broker listen on this machine only. */
export function isOnlyHere({ hosts }: Addresses): boolean {
  return hosts.every(isLoopbackHost);
}

/** Returns the broker's address for boxes. */
export function brokerUrl(at: Addresses): string {
  return `mqtts://${urlHost(at)}:${at.mqttPort}`;
}

/**
 * Returns a gateway's configuration with TLS, in the folder of its certificates. It has no boxes, partners and
 * accounts.
 */
export function gatewayConfig(at: Addresses, brokerPassword: string): string {
  const host = isOnlyHere(at) ? '127.0.0.1' : '0.0.0.0';
  return `# paybox gateway --config gateway.yaml, with boxes over mutual TLS. It contains the boxes' secrets.
# Partners, accounts, the account of each box and every further key: see device-config/gateway.yaml.
http:
  host: ${host}
  port: ${at.httpPort}
  tls: { cert: cert.pem, key: key.pem }
mqtt:
  embedded:
    host: ${host}
    port: ${at.mqttPort}
    tls: { cert: cert.pem, key: key.pem, clientCa: ca.pem }
# With a broker of its own, in place of embedded:
#   url: ${brokerUrl(at)}
#   username: ${GATEWAY_LOGIN}
#   password: ${brokerPassword}
#   tls: { ca: ca.pem, cert: client-cert.pem, key: client-key.pem }
# As the service of the package, in /etc/paybox-gateway: dataDir: /var/lib/paybox-gateway
dataDir: data
boxes: []
`;
}

/** The screen of a box whose display nobody named: its own page. */
export const PAGE_ONLY: readonly object[] = [{ driver: 'browser' }];

/** Returns a box's configuration, in the folder of its secret and certificate. */
export function agentConfig(
  { terminalCode, serialNumber }: BoxName,
  at: Addresses,
  displays: readonly object[],
): string {
  return `# paybox agent --config agent.yaml: the box ${terminalCode} over mutual TLS.
# Displays, voice and every further key: see device-config/agent-tls.yaml. The journal is in /var/lib/paybox where this file
# is in /etc/paybox, as the service has it, else in data beside it; dataDir names another folder.
box:
  terminalCode: ${terminalCode}
  serialNumber: ${serialNumber}
  secretFile: secret
link:
  transport: mqtt
  url: ${brokerUrl(at)}
  tls: { ca: ca.pem, cert: cert.pem, key: key.pem }
# Over HTTPS, in place of these:
#   transport: http
#   url: https://${urlHost(at)}:${at.httpPort}
#   tls: { ca: ca.pem }
# What the box shows with. browser is its own page alone: a box with a screen names that one, as framebuffer.
${stringify({ displays })}`;
}

/** A box to add to gateway and brokers. Without a serial number it is one that they already have. */
export interface BoxEntry {
  terminalCode: string;
  serialNumber?: string;
  secret: string;
}

/**
 * Returns a gateway's configuration with boxes added, or with their new secrets. A person's other lines stay. Throws
 * ConfigError if it is not YAML, or another box has the serial number.
 */
export function withBoxes(config: string, told: readonly BoxEntry[], name: string): string {
  const document = parseDocument(config);
  if (document.errors.length > 0) throw new ConfigError(`${name}: not valid YAML`, 'correct it, and run this again');
  if (!(document.get('boxes') instanceof YAMLSeq)) document.set('boxes', document.createNode([]));
  const boxes = document.get('boxes');
  if (!(boxes instanceof YAMLSeq)) throw new ConfigError(`${name}: boxes: expected a list`);
  boxes.flow = false;
  const places = (key: string) => new Map(boxes.items.map((_, i) => [boxes.getIn([i, key]), i]));
  const [byCode, bySerial] = [places('terminalCode'), places('serialNumber')];
  for (const box of told) {
    const at = byCode.get(box.terminalCode);
    if (at !== undefined) {
      boxes.setIn([at, 'secret'], box.secret);
    } else if (box.serialNumber !== undefined && bySerial.has(box.serialNumber)) {
      throw new ConfigError(`${name}: serialNumber ${box.serialNumber} is already taken`, 'each box has its own');
    } else {
      byCode.set(box.terminalCode, boxes.items.length);
      if (box.serialNumber !== undefined) bySerial.set(box.serialNumber, boxes.items.length);
      boxes.add(document.createNode(box));
    }
  }
  return document.toString();
}

function urlHost({ hosts: [host = 'localhost'] }: Addresses): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
