import { z } from 'zod';
import { ConfigError, PayboxError } from '../../lib/errors.ts';
import { BoxAt, type BoxStatus } from '../clients/box.ts';
import { type Account, GatewayAt, gatewayAbout } from '../clients/gateway.ts';
import { ask, jsonOf, ownersHeaders } from '../clients/http.ts';
import { realPace } from '../pace.ts';
import { isPanelName } from '../panels/names.ts';
import type { Probe } from '../probes.ts';
import type { Ability, TargetKind } from '../target.ts';

export interface GatewayOptions {
  /** The origin of a gateway that runs. */
  gateway: string;
  /** What is left out is asked of the gateway. */
  username?: string | undefined;
  password?: string | undefined;
  account?: string | undefined;
  bank?: string | undefined;
  holder?: string | undefined;
  adminToken?: string | undefined;
}

export interface AtOptions extends GatewayOptions {
  /** The origins of the pages of boxes that run. */
  boxes: readonly string[];
  /** Their `http.token`. */
  boxToken?: string | undefined;
  probe: Probe;
}

/** A gateway and boxes that run already, wherever they are, in everybody's time. */
export function atTarget(options: AtOptions): TargetKind {
  const cannot = () => {
    throw new PayboxError('TARGET', 'a running box or gateway is not turned off by the bench', { severity: 'fatal' });
  };
  return {
    name: 'at',
    abilities: new Set(),
    findAbilities: () => abilitiesAt(options),
    boxesMax: options.boxes.length,
    open: async () => ({
      name: 'at',
      goesOn: true,
      pace: realPace,
      probe: options.probe,
      gateway: await gatewayOf(options),
      boxes: await boxesOf(options),
      powerBox: async () => cannot(),
      powerGateway: async () => cannot(),
      close: async () => undefined,
    }),
  };
}

/** What can be ordered of what runs there. */
async function abilitiesAt(options: AtOptions): Promise<Set<Ability>> {
  const [gateway, boxes] = await Promise.all([gatewayOf(options), boxesOf(options)]);
  const [ofGateway, ofBoxes, statuses] = await Promise.all([
    gateway.faults(),
    Promise.all(boxes.map((box) => box.faults())),
    Promise.all(boxes.map((box) => box.status())),
  ]);
  const abilities = new Set<Ability>();
  if (ofGateway !== undefined) abilities.add('order faults at the gateway');
  if (ofBoxes.every((it) => it !== undefined)) abilities.add('order faults at boxes');
  if (statuses.every(isOnSerialLine)) abilities.add('disturb a serial line');
  return abilities;
}

function boxesOf({ boxes, boxToken }: AtOptions): Promise<BoxAt[]> {
  return Promise.all(boxes.map((url) => BoxAt.find(url, boxToken)));
}

function isOnSerialLine(status: BoxStatus): boolean {
  const { data } = z.looseObject({ display: z.looseObject({ driver: z.string() }) }).safeParse(status);
  return data !== undefined && isPanelName(data.display.driver);
}

/** Throws MissingPeerError when nobody answers, ConfigError when the gateway does not tell what it must be told. */
export async function gatewayOf(options: GatewayOptions): Promise<GatewayAt> {
  const { adminToken } = options;
  const { origin } = new URL(options.gateway);
  const url = `${origin}/_mock/about`;
  const told = gatewayAbout.parse(jsonOf(url, await ask(url, { headers: ownersHeaders(adminToken) })));
  const given = (option: string, value: string | null | undefined) => {
    if (value !== undefined && value !== null) return value;
    throw new ConfigError(`${option} is needed: the gateway at ${origin} does not tell it`);
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
  return new GatewayAt({ origin, baseUrl: `${origin}${path}`, partner, account, adminToken });
}
