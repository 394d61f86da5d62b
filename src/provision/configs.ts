import { isIP } from 'node:net';
import { parseDocument, YAMLSeq } from 'yaml';
import { ConfigError } from '../lib/errors.ts';
import { isLoopbackHost } from '../lib/tls.ts';
import { GATEWAY_LOGIN } from './brokers.ts';

/** Where boxes find the gateway and its broker. */
export interface Addresses {
  /** Names and IP addresses in the servers' certificate; the first is the one that boxes use. */
  hosts: readonly string[];
  httpPort: number;
  mqttPort: number;
}

export interface BoxName {
  terminalCode: string;
  serialNumber: string;
}

/** Whether nobody beyond this machine is to reach gateway and broker. */
export function isOnlyHere({ hosts }: Addresses): boolean {
  return hosts.every(isLoopbackHost);
}

/** Where boxes find the broker. */
export function brokerUrl(at: Addresses): string {
  return `mqtts://${urlHost(at)}:${at.mqttPort}`;
}

/** A gateway's configuration over TLS, beside its certificates; without boxes, partners and accounts. */
export function gatewayConfig(at: Addresses, brokerPassword: string): string {
  const host = isOnlyHere(at) ? '127.0.0.1' : '0.0.0.0';
  return `# paybox gateway --config gateway.yaml, with boxes over mutual TLS. It holds the boxes' secrets.
# Partners, accounts and every further key: see device-config/gateway.yaml.
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
dataDir: data
boxes: []
`;
}

/** A box's configuration, beside its secret and its certificate. */
export function agentConfig({ terminalCode, serialNumber }: BoxName, at: Addresses): string {
  return `# paybox agent --config agent.yaml: the box ${terminalCode} over mutual TLS.
# Displays, voice and every further key: see device-config/agent-tls.yaml.
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
dataDir: data
`;
}

/**
 * A gateway's configuration with a box put in, or with its new secret; whatever else a person wrote there stays.
 * Throws ConfigError where it is no YAML, or gives the serial number to another box.
 */
export function withBox(config: string, box: BoxName | { terminalCode: string }, secret: string, name: string): string {
  const document = parseDocument(config);
  if (document.errors.length > 0) throw new ConfigError(`${name}: not valid YAML`, 'correct it, and run this again');
  if (!(document.get('boxes') instanceof YAMLSeq)) document.set('boxes', document.createNode([]));
  const boxes = document.get('boxes');
  if (!(boxes instanceof YAMLSeq)) throw new ConfigError(`${name}: boxes: expected a list`);
  boxes.flow = false;
  const place = (key: string, value: string) => boxes.items.findIndex((_, i) => boxes.getIn([i, key]) === value);
  const at = place('terminalCode', box.terminalCode);
  if (at >= 0) {
    boxes.setIn([at, 'secret'], secret);
  } else if ('serialNumber' in box && place('serialNumber', box.serialNumber) >= 0) {
    throw new ConfigError(`${name}: serialNumber ${box.serialNumber} is already taken`, 'each box has its own');
  } else {
    boxes.add(document.createNode({ ...box, secret }));
  }
  return document.toString();
}

function urlHost({ hosts: [host = 'localhost'] }: Addresses): string {
  return isIP(host) === 6 ? `[${host}]` : host;
}
