import { join } from 'node:path';
import { type GatewayConfig, parseGatewayConfig } from '../../gateway/config.ts';
import type { Random } from '../../lib/random.ts';
import { DEMO } from './demo.ts';

/** The source of the shop: the public service, which tells it of money. */
const SOURCE = 'vietqr';
const SECRET_BYTES = 24;

export interface LiveDemoPorts {
  httpPort: number;
  mqttPort: number;
  servicePort: number;
}

/** Two gateways: a shop that is live, and the sandbox of the public service, which tells the shop of payments. */
export interface LiveDemo {
  shop: GatewayConfig;
  service: GatewayConfig;
  /** The box of the shop. */
  box: { terminalCode: string; serialNumber: string; secret: string };
}

/**
 * Configurations of `paybox up --live-demo`. Their secrets are new ones at each start, because a live gateway takes no
 * sample.
 */
export function liveDemo(
  { httpPort, mqttPort, servicePort, dataDir }: LiveDemoPorts & { dataDir: string },
  random: Random,
): LiveDemo {
  const { terminalCode, serialNumber } = DEMO.box;
  const box = { terminalCode, serialNumber, secret: random.secret(SECRET_BYTES) };
  const login = { username: 'service', password: random.secret(SECRET_BYTES) };
  const { bankAccount } = DEMO.account;
  const hook = `http://127.0.0.1:${httpPort}/hooks/${SOURCE}`;
  const shop = parseGatewayConfig(
    {
      mode: 'live',
      http: { port: httpPort },
      mqtt: { embedded: { port: mqttPort } },
      dataDir: join(dataDir, 'shop'),
      accounts: [DEMO.account],
      boxes: [{ ...box, account: bankAccount }],
      sources: [{ kind: 'vietqr', name: SOURCE, ...login }],
    },
    'paybox up --live-demo',
  );
  const service = parseGatewayConfig(
    {
      http: { port: servicePort },
      mqtt: null,
      dataDir: join(dataDir, 'service'),
      accounts: [DEMO.account],
      partners: [
        {
          ...DEMO.partner,
          accounts: [bankAccount],
          callback: {
            url: `${hook}/bank/api/transaction-sync`,
            auth: { kind: 'token', url: `${hook}/api/token_generate`, ...login },
          },
        },
      ],
    },
    'paybox up --live-demo',
  );
  return { shop, service, box };
}
