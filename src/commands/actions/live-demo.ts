import { join } from 'node:path';
import { adminTokenFile } from '../../gateway/access/root-token.ts';
import { type GatewayConfig, parseGatewayConfig } from '../../gateway/config/config.ts';
import type { Random } from '../../lib/random.ts';
import { newSecret } from '../../protocol/secret.ts';
import { DEMO } from './demo.ts';

/** The shop receives news of money from this source, the public service. */
const SOURCE = 'vietqr';
/** A live gateway accepts no identity of the demo. */
export const LIVE_ACCOUNT = { bankAccount: '0987654321', bankCode: 'MB', userBankName: 'TRAN THI B' };

export interface LiveDemoPorts {
  httpPort: number;
  mqttPort: number;
  servicePort: number;
}

/** Holds two gateways: a live shop, and the sandbox of the public service, which reports payments to the shop. */
export interface LiveDemo {
  shop: GatewayConfig;
  service: GatewayConfig;
  /** The box of the shop. */
  box: { terminalCode: string; serialNumber: string; secret: string };
  /** The file with the shop's first token, once it has started. The shop allows no calls without a token. */
  tokenFile: string;
}

/**
 * Makes the configurations of `paybox up --live-demo`. Each start has new secrets, because a live gateway refuses
 * samples.
 */
export function liveDemo(
  { httpPort, mqttPort, servicePort, dataDir }: LiveDemoPorts & { dataDir: string },
  random: Random,
): LiveDemo {
  const { terminalCode, serialNumber } = DEMO.box;
  const box = { terminalCode, serialNumber, secret: newSecret(random) };
  const login = { username: 'service', password: newSecret(random) };
  const { bankAccount } = LIVE_ACCOUNT;
  const hook = `http://127.0.0.1:${httpPort}/hooks/${SOURCE}`;
  const shop = parseGatewayConfig(
    {
      mode: 'live',
      http: { port: httpPort },
      mqtt: { embedded: { port: mqttPort } },
      dataDir: join(dataDir, 'shop'),
      accounts: [LIVE_ACCOUNT],
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
      accounts: [LIVE_ACCOUNT],
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
  return { shop, service, box, tokenFile: adminTokenFile(shop.dataDir) };
}
