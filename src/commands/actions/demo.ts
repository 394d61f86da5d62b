import { join } from 'node:path';
import { type AgentConfig, parseAgentConfig } from '../../device/agent/config.ts';
import { transportNamed } from '../../device/agent/transports/registry.ts';
import { DISPLAY_DRIVERS } from '../../device/display/registry.ts';
import { keptAdminToken } from '../../gateway/access/root-token.ts';
import type { CallbackInput } from '../../gateway/config/callback-config.ts';
import { type GatewayConfig, parseGatewayConfig } from '../../gateway/config/config.ts';
import { ConfigError } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import { suggestion } from '../../lib/suggestion.ts';
import { isStrongSecret, newSecret, SECRET_EXPECTED } from '../../protocol/secret.ts';

/** Addresses at which gateway and box page may listen. The broker is for the box of this process, and stays here. */
const [HERE, EVERYWHERE] = ['127.0.0.1', '0.0.0.0'];

/** Sample identities of `paybox up`. They are public. */
export const DEMO = {
  partner: { username: 'demo', password: 'demo-secret' },
  account: { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
} as const;

interface Ports {
  /** Where other machines reach gateway and box page. */
  exposed?: Exposed | undefined;
  httpPort: number;
  mqttPort: number;
  boxPort: number;
  transport?: string | undefined;
}

/** A demo that other machines reach: it has none of the secrets that everybody knows. */
export interface Exposed {
  /** Opens the gateway's own routes and the pages of the box. */
  adminToken: string;
  boxSecret: string;
}

/**
 * Returns token and secret of a demo that listens at `host`. Undefined if only this machine can reach it. The admin
 * token is that of PAYBOX_ADMIN_TOKEN, or else one stored in `dataDir`, readable by its owner only. Throws ConfigError
 * if that file cannot be read or made, or if the token is easy to guess.
 */
export function exposedAt(host: string, dataDir: string, random: Random): Exposed | undefined {
  if (host === HERE) return undefined;
  if (host !== EVERYWHERE)
    throw new ConfigError(`--host ${host}: expected ${HERE}, or ${EVERYWHERE} for all addresses`);
  const given = process.env.PAYBOX_ADMIN_TOKEN || undefined;
  const adminToken = given ?? keptAdminToken(dataDir, random).value;
  if (!isStrongSecret(adminToken)) throw new ConfigError(`PAYBOX_ADMIN_TOKEN: ${SECRET_EXPECTED}`);
  return { adminToken, boxSecret: newSecret(random) };
}

/** Makes the configuration of the gateway of `paybox up`. */
export function demoGatewayConfig(options: Ports & { dataDir: string; callback: CallbackInput }): GatewayConfig {
  const { bankAccount } = DEMO.account;
  const { exposed } = options;
  const box = exposed === undefined ? DEMO.box : { ...DEMO.box, secret: exposed.boxSecret };
  return parseGatewayConfig(
    {
      http: { port: options.httpPort, ...(exposed !== undefined && { host: EVERYWHERE, allowPlain: true }) },
      mqtt: { embedded: { port: options.mqttPort } },
      dataDir: join(options.dataDir, 'gateway'),
      enrolment: exposed === undefined ? 'open' : 'code',
      adminToken: exposed?.adminToken,
      partners: [{ ...DEMO.partner, accounts: [bankAccount], callback: options.callback }],
      accounts: [DEMO.account],
      boxes: [{ ...box, account: bankAccount }],
    },
    'paybox up',
  );
}

interface DemoBox {
  terminalCode: string;
  serialNumber: string;
  secret: string;
}

/**
 * Makes the configuration of the box of `paybox up`. An own `box` belongs to a live gateway, which has no faults.
 * Throws ConfigError for an unknown display or transport.
 */
export function demoAgentConfig(
  options: Ports & { dataDir: string; display?: string; onTerminal: boolean; box?: DemoBox | undefined },
): AgentConfig {
  const first = options.display ?? 'browser';
  if (!DISPLAY_DRIVERS.has(first)) {
    const hint = suggestion(first, DISPLAY_DRIVERS.keys());
    throw new ConfigError(`--display ${first}: expected browser, terminal or png${hint}`);
  }
  const own = first === 'png' ? { path: join(options.dataDir, 'screen.png') } : {};
  const alsoTerminal = options.display === undefined && options.onTerminal;
  const transport = transportNamed('--transport', options.transport);
  const { exposed } = options;
  const url = transport.urlOf({ origin: `http://${HERE}:${options.httpPort}`, brokerPort: options.mqttPort });
  const sample = exposed === undefined ? DEMO.box : { ...DEMO.box, secret: exposed.boxSecret };
  return parseAgentConfig(
    {
      box: options.box ?? sample,
      link: { transport: transport.name, url },
      displays: [{ driver: first, ...own }, ...(alsoTerminal ? [{ driver: 'terminal' }] : [])],
      http: { port: options.boxPort, ...(exposed !== undefined && { host: EVERYWHERE, token: exposed.adminToken }) },
      voice: { driver: 'page' },
      dataDir: join(options.dataDir, 'box'),
      faults: options.box === undefined,
    },
    'paybox up',
  );
}
