import { join } from 'node:path';
import { type AgentConfig, parseAgentConfig } from '../../agent/config.ts';
import { transportNamed } from '../../agent/transports/registry.ts';
import { DISPLAY_DRIVERS } from '../../display/registry.ts';
import type { CallbackInput } from '../../gateway/callback-config.ts';
import { type GatewayConfig, parseGatewayConfig } from '../../gateway/config.ts';
import { ConfigError } from '../../lib/errors.ts';

/** Sample identities of `paybox up`. They are public. */
export const DEMO = {
  partner: { username: 'demo', password: 'demo-secret' },
  account: { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' },
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
  /** For a second emulator, which enrols by itself. */
  secondBox: { terminalCode: 'VVB000002', serialNumber: 'VVB900002' },
} as const;

interface Ports {
  httpPort: number;
  mqttPort: number;
  boxPort: number;
  transport?: string | undefined;
}

/** Configuration of the gateway of `paybox up`. */
export function demoGatewayConfig(options: Ports & { dataDir: string; callback: CallbackInput }): GatewayConfig {
  const { bankAccount } = DEMO.account;
  return parseGatewayConfig(
    {
      http: { port: options.httpPort },
      mqtt: { embedded: { port: options.mqttPort } },
      dataDir: join(options.dataDir, 'gateway'),
      enrolment: 'open',
      partners: [{ ...DEMO.partner, accounts: [bankAccount], callback: options.callback }],
      accounts: [DEMO.account],
      boxes: [DEMO.box, DEMO.secondBox].map((box) => ({ ...box, account: bankAccount })),
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
 * Configuration of the box of `paybox up`; a `box` of its own is one of a live gateway, which has no faults. Throws
 * ConfigError for an unknown display or transport.
 */
export function demoAgentConfig(
  options: Ports & { dataDir: string; display?: string; onTerminal: boolean; box?: DemoBox | undefined },
): AgentConfig {
  const first = options.display ?? 'browser';
  if (!DISPLAY_DRIVERS.has(first)) throw new ConfigError(`--display ${first}: expected browser, terminal or png`);
  const own = first === 'png' ? { path: join(options.dataDir, 'screen.png') } : {};
  const alsoTerminal = options.display === undefined && options.onTerminal;
  const transport = transportNamed('--transport', options.transport);
  const url = transport.urlOf({ origin: `http://127.0.0.1:${options.httpPort}`, brokerPort: options.mqttPort });
  return parseAgentConfig(
    {
      box: options.box ?? DEMO.box,
      link: { transport: transport.name, url },
      displays: [{ driver: first, ...own }, ...(alsoTerminal ? [{ driver: 'terminal' }] : [])],
      http: { port: options.boxPort },
      voice: { driver: 'page' },
      dataDir: join(options.dataDir, 'box'),
      faults: options.box === undefined,
    },
    'paybox up',
  );
}
