import { z } from 'zod';
import { untilAborted } from '../../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf } from '../../../lib/errors.ts';
import { authorizationHeader } from '../../../lib/http-client.ts';
import { isPanelName } from '../../panels/emulator.ts';
import { BoxClient, type BoxStatus } from '../clients/box.ts';
import { type Account, GatewayClient, gatewayAbout } from '../clients/gateway.ts';
import { jsonOf, request } from '../clients/http.ts';
import type { Capability, Probe, TargetKind } from '../target.ts';
import { realTime, waitUntilRight } from '../test-time.ts';

export interface GatewayOptions {
  /** The origin of the running gateway. */
  gateway: string;
  /** The partner's user name. The bench requests missing values from the gateway. */
  username?: string | undefined;
  password?: string | undefined;
  account?: string | undefined;
  bank?: string | undefined;
  holder?: string | undefined;
  adminToken?: string | undefined;
}

export interface ExternalOptions extends GatewayOptions {
  /** The origins of the boxes' pages. */
  boxes: readonly string[];
  /** The boxes' `http.token`. */
  boxToken?: string | undefined;
  probe: Probe;
}

/** Returns a target of a gateway and boxes that already run, anywhere, in real time. */
export function externalTarget(options: ExternalOptions): TargetKind {
  const cannot = () => {
    throw new PayboxError('TARGET', 'a running box or gateway is not turned off by the bench', { severity: 'fatal' });
  };
  return {
    name: 'at',
    capabilities: new Set(),
    askCapabilities: () => capabilitiesAt(options),
    boxesMax: options.boxes.length,
    open: async ({ signal = new AbortController().signal }) => ({
      name: 'at',
      isExternal: true,
      time: realTime,
      probe: options.probe,
      gateway: await untilAborted(signal, connectToGateway(options)),
      boxes: await untilAborted(signal, clearBoxesOf(options)),
      powerBox: async () => cannot(),
      powerGateway: async () => cannot(),
      close: async () => undefined,
    }),
  };
}

/** Returns the capabilities of the running parts. */
async function capabilitiesAt(options: ExternalOptions): Promise<Set<Capability>> {
  const [gateway, boxes] = await Promise.all([connectToGateway(options), boxesOf(options)]);
  const [ofGateway, ofBoxes, statuses] = await Promise.all([
    gateway.faults(),
    Promise.all(boxes.map((box) => box.faults())),
    Promise.all(boxes.map((box) => box.status())),
  ]);
  const abilities = new Set<Capability>();
  if (ofGateway !== undefined) abilities.add('order faults at the gateway');
  if (ofBoxes.every((it) => it !== undefined)) abilities.add('order faults at boxes');
  if (statuses.every(isOnSerialLine)) abilities.add('disturb a serial line');
  return abilities;
}

function boxesOf({ boxes, boxToken }: ExternalOptions): Promise<BoxClient[]> {
  return Promise.all(boxes.map((url) => BoxClient.find(url, boxToken)));
}

/** Returns the boxes after it has cleared what an earlier order left on their screens. */
async function clearBoxesOf(options: ExternalOptions): Promise<BoxClient[]> {
  const boxes = await boxesOf(options);
  await Promise.all(boxes.map(clearScreen));
  return boxes;
}

function isOnSerialLine(status: BoxStatus): boolean {
  const { data } = z.looseObject({ display: z.looseObject({ driver: z.string() }) }).safeParse(status);
  return data !== undefined && isPanelName(data.display.driver);
}

/**
 * Connects to a gateway. Throws MissingPeerError when it does not answer, ConfigError when it hides a value that must
 * then be configured.
 */
export async function connectToGateway(options: GatewayOptions): Promise<GatewayClient> {
  const { adminToken } = options;
  const { origin } = new URL(options.gateway);
  const url = `${origin}/_mock/about`;
  const told = gatewayAbout.parse(jsonOf(url, await request(url, { headers: authorizationHeader(adminToken) })));
  const given = (option: string, value: string | null | undefined) => {
    if (value !== undefined && value !== null) return value;
    throw new ConfigError(`${option} is needed: the gateway at ${origin} does not show it`);
  };
  const account: Account = {
    bankAccount: given('--account', options.account ?? told.account?.bankAccount),
    bankCode: given('--bank', options.bank ?? told.account?.bankCode),
    userBankName: given('--holder', options.holder ?? told.account?.userBankName),
  };
  const partner = {
    username: given('--username', options.username ?? told.partner?.username),
    password: given('--password-file', options.password ?? told.partner?.password),
  };
  const path = new URL(told.baseUrl).pathname.replace(/\/+$/, '');
  return new GatewayClient({ origin, baseUrl: `${origin}${path}`, partner, account, adminToken });
}

/** Paid screens, and the screens of orders that are over, stay for less time than this by default. */
const CLEAR_TIMEOUT_MS = 20_000;
/** In these states an earlier order or payment has the screen. */
const BUSY = ['showing', 'paid', 'expired'];

/**
 * Clears an unpaid QR or a payment from the screen of a running box, as a person does by its key. Otherwise a scenario
 * would take it for its own. Throws PayboxError that says what to do where the key does not work.
 */
async function clearScreen(box: BoxClient): Promise<void> {
  const look = async () => {
    const { state } = await box.status();
    return BUSY.includes(state) ? `${box.terminalCode} is ${state}` : undefined;
  };
  const busy = await look();
  if (busy === undefined) return;
  const problem = await box.press('dismiss').then(
    () => waitUntilRight(realTime, CLEAR_TIMEOUT_MS, look, AbortSignal.timeout(2 * CLEAR_TIMEOUT_MS)),
    (error: unknown) => `${busy}, and its key does not work: ${reasonOf(error)}`,
  );
  if (problem === undefined) return;
  const fix = `cancel the order in the console or press the box's key, wait until ${box.url} shows none, and run again`;
  throw new PayboxError('TARGET', problem, { severity: 'fatal', fix });
}
