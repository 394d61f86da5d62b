import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Random } from '../../../lib/random.ts';
import { BoxAt } from '../../box-at.ts';
import { screenProbe } from '../../probe.ts';
import { agentConfigFor, type Place } from '../../targets/identities.ts';
import type { Starter } from '../../targets/own.ts';
import { freePorts } from '../../targets/ports.ts';
import { untilAtWork } from '../../targets/running.ts';
import { type CallbackAuth, startListener } from './listener.ts';
import { ServiceSubject } from './subject.ts';

const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
const SECOND_ACCOUNT = { bankAccount: 'SHOP2ACC', bankCode: 'VCB', userBankName: 'TRAN THI B' };
const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const UNLINKED_BOX = { terminalCode: 'VVB000002', serialNumber: 'VVB900002' };
const BOX_ON = { terminalCode: 'VVB000003', serialNumber: 'VVB900003' };
const SECRET_BYTES = 24;
const SIGNING_BYTES = 32;
const LOOPBACK = '127.0.0.1';
const BASE_PATH = '/vqr';
const AMOUNTS = 50_000_000;
const TAG_CHARS = 4;

/** What may be other than it is, so that a judge can be judged. */
export interface OwnServiceChanges {
  /** Of the gateway's configuration. */
  config?: object;
  /** Where partners reach the service that is at this origin. */
  service?(origin: string): Promise<string>;
  /** Where the service reaches the partner that is at this address. */
  partner?(url: string): Promise<string>;
}

/** A service that was started to be judged. */
export interface OwnService {
  subject: ServiceSubject;
  close(): Promise<void>;
}

/** Starts a gateway with everything that a check needs: partners, a box to play, and one that is no sandbox. */
export async function openOwnService(
  starter: Starter,
  random: Random,
  changes: OwnServiceChanges = {},
): Promise<OwnService> {
  const { pace } = starter;
  const folder = await mkdtemp(join(tmpdir(), 'paybox-conformance-'));
  const secret = () => random.secret(SECRET_BYTES);
  const partner = { username: 'bench', password: secret() };
  const second = { username: 'second', password: secret() };
  const boxSecret = secret();
  const boxOn = { ...BOX_ON, secret: secret() };
  const callbackAuth: CallbackAuth = { kind: 'token', username: 'service', password: secret() };
  const signingSecret = `whsec_${Buffer.from(random.secret(SIGNING_BYTES), 'base64url').toString('base64')}`;
  const listener = await startListener({ host: LOOPBACK, port: 0 }, pace.clock, callbackAuth);
  const [port = 0, outsidePort = 0, boxPort = 0] = await freePorts(3);
  const callbackUrl = (await changes.partner?.(listener.url)) ?? listener.url;
  const callback = { url: callbackUrl, auth: { ...callbackAuth, url: listener.tokenUrl }, signingSecret };
  const configOf = (at: number, name: string) => ({
    http: { port: at },
    mqtt: null,
    basePath: BASE_PATH,
    dataDir: join(folder, name),
    partners: [
      { ...partner, accounts: [ACCOUNT.bankAccount], callback },
      { ...second, accounts: [SECOND_ACCOUNT.bankAccount] },
    ],
    accounts: [ACCOUNT, SECOND_ACCOUNT],
    boxes: [
      { ...BOX, secret: boxSecret, account: ACCOUNT.bankAccount },
      { ...boxOn, account: ACCOUNT.bankAccount },
      { ...UNLINKED_BOX, secret: secret() },
    ],
    ...changes.config,
  });
  const parts: { end(how: 'off'): Promise<void> }[] = [];
  const close = async () => {
    await pace.during(async () => {
      for (const part of parts.reverse()) await part.end('off');
      await listener.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    });
    pace.close();
  };
  try {
    parts.push(await pace.during(() => starter.gateway(configOf(port, 'sandbox'))));
    parts.push(await pace.during(() => starter.gateway({ ...configOf(outsidePort, 'outside'), sandbox: false })));
    const place: Place = { httpPort: port, mqttPort: 0, transport: 'http', folder };
    const startAgent = () => starter.agent(agentConfigFor(place, boxOn, boxPort), boxOn.terminalCode);
    parts.push(await pace.during(startAgent));
    const page = new BoxAt(`http://${LOOPBACK}:${boxPort}`, boxOn);
    await untilAtWork(page, pace);
    const origin = (await changes.service?.(`http://${LOOPBACK}:${port}`)) ?? `http://${LOOPBACK}:${port}`;
    const baseUrl = `${origin}${BASE_PATH}`;
    const subject = new ServiceSubject({
      access: { baseUrl, ...partner },
      account: ACCOUNT,
      pace,
      ...uniqueOf(random),
      sandbox: true,
      outside: { baseUrl: `http://${LOOPBACK}:${outsidePort}${BASE_PATH}`, ...partner },
      box: BOX,
      boxSecret,
      confirm: 'displayed',
      boxOn: BOX_ON,
      seeQr: async () => (await screenProbe.see(page))?.qr,
      unlinkedBox: UNLINKED_BOX.terminalCode,
      second: { baseUrl, ...second },
      secondAccount: SECOND_ACCOUNT.bankAccount,
      listener,
      callbackAuth,
      signingSecret,
      slow: true,
      guesses: true,
    });
    return { subject, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What keeps the orders of two runs apart. */
export function uniqueOf(random: Random): { tag: string; firstAmount: number } {
  const tag = random.uuid().replaceAll('-', '').slice(0, TAG_CHARS).toUpperCase();
  return { tag, firstAmount: 1 + Math.floor(random.fraction() * AMOUNTS) };
}
