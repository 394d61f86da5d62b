import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ACCOUNT, getJson, PARTNER, Shop } from '../e2e/walk.ts';
import { freePort } from '../support/net.ts';
import { type ReceivedCallback, startPartnerServer } from '../support/partner-server.ts';
import { paybox, readyFile } from '../support/processes.ts';

export const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
/** Emulation is slow. */
export const CONFIRM_TIMEOUT_MS = 60_000;

/** A gateway on this machine with one account, one box and one partner, who is called back. */
export interface Service {
  shop: Shop;
  received: ReceivedCallback[];
  /** The box's paybox.yaml. */
  boxFile: object;
  /** Whether the box is connected. */
  online(): Promise<boolean>;
  /** When the box has reported the payment; null before. */
  reportedAt(transactionId: string): Promise<string | null>;
}

/** A gateway for one box, with its files in `folder`. */
export async function startGateway(folder: string, callback?: object) {
  const [httpPort, mqttPort] = [await freePort(), await freePort()];
  const config = {
    http: { port: httpPort },
    mqtt: { embedded: { port: mqttPort } },
    confirmTimeoutMs: CONFIRM_TIMEOUT_MS,
    dataDir: 'gateway',
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback }],
    accounts: [ACCOUNT],
    boxes: [{ ...BOX, account: ACCOUNT.bankAccount }],
  };
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(config));
  const ready = join(folder, 'gateway.json');
  const gateway = paybox('gateway', '--config', join(folder, 'gateway.yaml'), '--ready-file', ready);
  const { baseUrl } = await readyFile<{ baseUrl: string }>(ready, gateway);
  return { baseUrl, httpPort, mqttPort };
}

export async function startService(folder: string): Promise<Service> {
  const { url, received } = await startPartnerServer();
  const { baseUrl, httpPort, mqttPort } = await startGateway(folder, { url, auth: { kind: 'none' } });
  const shop = new Shop(baseUrl);
  await shop.login();
  const mock = `http://127.0.0.1:${httpPort}/_mock`;
  return {
    shop,
    received,
    boxFile: {
      ...BOX,
      // How a guest finds the machine that it runs on.
      gateway: `mqtt://10.0.2.2:${mqttPort}`,
      allowPlain: true,
      display: 'framebuffer',
      paidHoldSeconds: 60,
    },
    online: async () => (await getJson<{ online: boolean }>(`${mock}/boxes/${BOX.terminalCode}`)).online,
    reportedAt: async (transactionId) => {
      const payments = await getJson<{ transactionId: string; boxes: { reportedAt: string | null }[] }[]>(
        `${mock}/payments`,
      );
      const payment = payments.find((it) => it.transactionId === transactionId);
      return payment?.boxes[0]?.reportedAt ?? null;
    },
  };
}
