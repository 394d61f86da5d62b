import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../../lib/random.ts';
import { BoxClient } from '../../engine/clients/box.ts';
import { freePorts } from '../../engine/free-ports.ts';
import { screenProbe } from '../../engine/probes.ts';
import { agentConfigFor, type TargetLayout, type Transport } from '../../engine/targets/config.ts';
import type { Part, Starter } from '../../engine/targets/managed.ts';
import { PART_BYTES, waitUntilReady } from '../../engine/targets/managed.ts';
import { makeWorkFolder, memoryFolder } from '../../engine/work-folder.ts';
import { type CallbackListener, startListener } from './callback-listener.ts';
import { ServiceSubject } from './subject.ts';

/** The box reaches the gateway over HTTP. */
const AT_ORIGIN: Transport = { name: 'http', urlOf: ({ origin }) => origin };

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
/** Real time: in a process with much else to do, skipped time goes on slowly. */
const ANSWER_TIMEOUT_MS = 50_000;
/** Two gateways and a box. */
const PARTS = 3;

/** Changes that make the service wrong, to test the judge. */
export interface EmulatedServiceChanges {
  /** Starts no box; the bench still simulates one. */
  isWithoutBox?: boolean;
  /** Skips the checks that take minutes: in virtual time they still take work. */
  isQuick?: boolean;
  /** Fields of the gateway's configuration. */
  config?: object;
  /** Replaces the origin at which partners reach the service. */
  service?(origin: string): Promise<string>;
  /** Replaces the URL at which the service reaches the partner. */
  partner?(url: string): Promise<string>;
}

export interface EmulatedService {
  subject: ServiceSubject;
  close(): Promise<void>;
}

/** Starts everything that checks need: a gateway, partners, boxes, and a second gateway that is not a sandbox. */
export async function openEmulatedService(
  starter: Starter,
  random: Random,
  changes: EmulatedServiceChanges = {},
): Promise<EmulatedService> {
  const { time } = starter;
  const folder = await makeWorkFolder('conformance', () => memoryFolder(PARTS * PART_BYTES));
  const made = identitiesOf(random);
  const listener = await startListener({ host: LOOPBACK, port: 0 }, time.clock, made.callbackAuth);
  const ends: (() => Promise<void>)[] = [
    () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
    listener.close,
  ];
  const close = async () => {
    await time.inRealTime(async () => {
      for (const end of ends.reverse()) await end();
    });
    time.close();
  };
  const start = async (starting: () => Promise<Part>) => {
    const part = await time.inRealTime(starting);
    ends.push(() => part.end('off'));
  };
  try {
    const [port = 0, outsidePort = 0, boxPort = 0] = await freePorts(3);
    const callbackUrl = (await changes.partner?.(listener.url)) ?? listener.url;
    const config = { ...configOf(made, { ...listener, url: callbackUrl }), ...changes.config };
    const outside = { ...config, http: { port: outsidePort }, dataDir: join(folder, 'outside'), sandbox: false };
    await start(() => starter.gateway({ ...config, http: { port }, dataDir: join(folder, 'sandbox') }));
    await start(() => starter.gateway(outside));
    const place: TargetLayout = { httpPort: port, mqttPort: 0, transport: AT_ORIGIN, folder };
    const page = new BoxClient(`http://${LOOPBACK}:${boxPort}`, made.boxOn);
    if (changes.isWithoutBox !== true) {
      await start(() => starter.agent(agentConfigFor(place, made.boxOn, boxPort), made.boxOn.terminalCode));
      await time.inRealTime(() => waitUntilReady(page, time));
    }
    const origin = `http://${LOOPBACK}:${port}`;
    const baseUrl = `${(await changes.service?.(origin)) ?? origin}${BASE_PATH}`;
    const probe = screenProbe();
    const subject = new ServiceSubject({
      access: { baseUrl, ...made.partner },
      account: ACCOUNT,
      time,
      answerTimeoutMs: ANSWER_TIMEOUT_MS,
      ...uniqueOrders(random),
      sandbox: true,
      outside: { baseUrl: `http://${LOOPBACK}:${outsidePort}${BASE_PATH}`, ...made.partner },
      box: BOX,
      boxSecret: made.boxSecret,
      confirm: 'displayed',
      ...(changes.isWithoutBox === true ? {} : { boxOn: BOX_ON, seeQr: async () => (await probe.capture(page))?.qr }),
      unlinkedBox: UNLINKED_BOX.terminalCode,
      second: { baseUrl, ...made.second },
      secondAccount: SECOND_ACCOUNT.bankAccount,
      secondBank: SECOND_ACCOUNT.bankCode,
      listener,
      callbackAuth: made.callbackAuth,
      signingSecret: made.signingSecret,
      slow: changes.isQuick !== true,
      guessPasswords: true,
    });
    return { subject, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Identities = ReturnType<typeof identitiesOf>;

/** Identities with random secrets. */
function identitiesOf(random: Random) {
  const secret = () => random.secret(SECRET_BYTES);
  const callbackAuth = { kind: 'token', username: 'service', password: secret() } as const;
  return {
    partner: { username: 'bench', password: secret() },
    second: { username: 'second', password: secret() },
    boxSecret: secret(),
    boxOn: { ...BOX_ON, secret: secret() },
    unlinkedSecret: secret(),
    callbackAuth,
    signingSecret: `whsec_${Buffer.from(random.secret(SIGNING_BYTES), 'base64url').toString('base64')}`,
  };
}

function configOf(made: Identities, { url, tokenUrl }: CallbackListener): object {
  const { partner, second, boxSecret, boxOn, unlinkedSecret, callbackAuth, signingSecret } = made;
  const account = ACCOUNT.bankAccount;
  return {
    mqtt: null,
    basePath: BASE_PATH,
    partners: [
      { ...partner, accounts: [account], callback: { url, auth: { ...callbackAuth, url: tokenUrl }, signingSecret } },
      { ...second, accounts: [SECOND_ACCOUNT.bankAccount] },
    ],
    accounts: [ACCOUNT, SECOND_ACCOUNT],
    boxes: [
      { ...BOX, secret: boxSecret, account },
      { ...boxOn, account },
      { ...UNLINKED_BOX, secret: unlinkedSecret },
    ],
  };
}

/** Makes the orders of this run differ from those of other runs. */
export function uniqueOrders(random: Random): { tag: string; firstAmount: number } {
  const tag = random.uuid().replaceAll('-', '').slice(0, TAG_CHARS).toUpperCase();
  return { tag, firstAmount: 1 + Math.floor(random.fraction() * AMOUNTS) };
}
