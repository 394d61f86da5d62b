import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { ACCOUNT, getJson, PARTNER, Shop } from '../e2e/walk.ts';
import { freePort } from '../support/net.ts';
import { type ReceivedCallback, startPartnerServer } from '../support/partner-server.ts';
import { paybox, payboxToEnd, readyFile } from '../support/processes.ts';

export const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' };
/** Emulation is slow. */
export const CONFIRM_TIMEOUT_MS = 60_000;

/** A gateway on this machine with one account, one box and one partner, who is called back. */
export interface Service {
  shop: Shop;
  received: ReceivedCallback[];
  /** The box's paybox.yaml. */
  boxFile: string;
  /** Whether the box is connected. */
  online(): Promise<boolean>;
  /** When the box has reported the payment; null before. */
  reportedAt(transactionId: string): Promise<string | null>;
}

/** What a gateway on this machine has beside its boxes' side; its callers need no TLS here. */
function partnersSide(httpPort: number, callback?: object) {
  return {
    http: { port: httpPort },
    confirmTimeoutMs: CONFIRM_TIMEOUT_MS,
    dataDir: 'gateway',
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback }],
    accounts: [ACCOUNT],
  };
}

/** A gateway for one box, with its files in `folder`. */
export async function startGateway(folder: string, callback?: object) {
  const [httpPort, mqttPort] = [await freePort(), await freePort()];
  const boxes = [{ ...BOX, account: ACCOUNT.bankAccount }];
  const config = { ...partnersSide(httpPort, callback), mqtt: { embedded: { port: mqttPort } }, boxes };
  const baseUrl = await startedWith(config, folder);
  return { baseUrl, httpPort, mqttPort };
}

async function startedWith(config: object, folder: string): Promise<string> {
  writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify(config));
  const ready = join(folder, 'gateway.json');
  const gateway = paybox('gateway', '--config', join(folder, 'gateway.yaml'), '--ready-file', ready);
  return (await readyFile<{ baseUrl: string }>(ready, gateway)).baseUrl;
}

/** How a guest finds the machine that it runs on. */
const HOST_OF_GUEST = '10.0.2.2';
const FOR_TESTS = { paidHoldSeconds: 60 };
/** The image's own voice, at a machine without a loudspeaker. */
const VOICE = { driver: 'espeak', options: { player: { kind: 'aplay', device: 'null' } } };

export async function startService(folder: string): Promise<Service> {
  const { url, received } = await startPartnerServer();
  const { baseUrl, httpPort, mqttPort } = await startGateway(folder, { url, auth: { kind: 'none' } });
  const gateway = `mqtt://${HOST_OF_GUEST}:${mqttPort}`;
  const boxFile = JSON.stringify({ ...BOX, gateway, allowPlain: true, display: 'framebuffer', ...FOR_TESTS });
  return serviceAt(baseUrl, httpPort, received, boxFile);
}

/** As startService, with what `paybox provision` makes for gateway and box: mutual TLS, and the very file for the card. */
export async function startProvisionedService(folder: string): Promise<Service> {
  const { url, received } = await startPartnerServer();
  const [httpPort, mqttPort] = [await freePort(), await freePort()];
  const [made, card] = [join(folder, 'made'), join(folder, 'card')];
  mkdirSync(card);
  const box = ['--box', `${BOX.terminalCode}:${BOX.serialNumber}`, '--boot', card, '--display', 'framebuffer'];
  const at = ['--host', HOST_OF_GUEST, '--mqtt-port', `${mqttPort}`];
  const { code, output } = await payboxToEnd('provision', '--out', made, ...at, ...box);
  if (code !== 0) throw new Error(`paybox provision: ${output}`);
  const given = parse(readFileSync(join(made, 'gateway/gateway.yaml'), 'utf8')) as { boxes: object[] };
  const boxes = given.boxes.map((it) => ({ ...it, account: ACCOUNT.bankAccount }));
  const config = { ...given, ...partnersSide(httpPort, { url, auth: { kind: 'none' } }), boxes };
  const baseUrl = await startedWith(config, join(made, 'gateway'));
  const boxFile = `${readFileSync(join(card, 'paybox.yaml'), 'utf8')}${stringify({ ...FOR_TESTS, voice: VOICE })}`;
  return serviceAt(baseUrl, httpPort, received, boxFile);
}

async function serviceAt(
  baseUrl: string,
  httpPort: number,
  received: ReceivedCallback[],
  boxFile: string,
): Promise<Service> {
  const shop = new Shop(baseUrl);
  await shop.login();
  const mock = `http://127.0.0.1:${httpPort}/_mock`;
  return {
    shop,
    received,
    boxFile,
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
