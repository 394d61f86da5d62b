import type { Random } from '../../../lib/random.ts';
import { newSecret } from '../../../protocol/secret.ts';

const PARTNER = { username: 'bench', password: 'bench-secret' };
const ACCOUNT = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };
/** The waits are short, because scenarios of partner faults run in real time at some targets. */
const CALLBACK_RETRY_WAITS_MS = [200, 400, 800, 1_600, 3_200];

/** The sample secrets that the gateway and all boxes of a dialect share. They meet on loopback only. */
const SHARED = {
  salts: { checkSumSalt: 'bench-check-sum-salt', boxIdSalt: 'bench-box-id-salt' },
  login: { username: 'bench-boxes', password: 'bench-secret-of-all-boxes' },
};

/** How boxes connect to their gateway. */
export interface Transport {
  readonly name: string;
  /** The login of a dialect of other makers: its boxes enrol by their MAC addresses and share this login. */
  readonly ownLogin?: object;
  urlOf(gateway: { origin: string; brokerPort: number }): string;
}

/** The ports and folders of the parts that the bench starts. */
export interface TargetLayout {
  httpPort: number;
  mqttPort: number;
  transport: Transport;
  folder: string;
}

/** A box with generated identity. */
export interface GeneratedBox {
  terminalCode: string;
  serialNumber: string;
  secret?: string;
}

/** Makes boxes VVB000001 and following. Boxes that are not enrolled have no secret. */
export function generateBoxes(count: number, enrolled: boolean, random: Random): GeneratedBox[] {
  return Array.from({ length: count }, (_, index) => {
    const number = String(index + 1).padStart(5, '0');
    const box = { terminalCode: `VVB0${number}`, serialNumber: `VVB9${number}` };
    return enrolled ? { ...box, secret: newSecret(random) } : box;
  });
}

/** Returns the configuration of the bench's own gateway. */
export function gatewayConfigFor(
  place: Omit<TargetLayout, 'transport'> & { transport?: Transport },
  boxes: readonly GeneratedBox[],
  callbackUrl: string,
): object {
  const { transport: { name: dialect, ownLogin } = {} } = place;
  const account = ACCOUNT.bankAccount;
  return {
    http: { port: place.httpPort },
    mqtt: { embedded: { port: place.mqttPort } },
    dataDir: `${place.folder}/gateway`,
    callbackRetryWaitsMs: CALLBACK_RETRY_WAITS_MS,
    partners: [{ ...PARTNER, accounts: [ACCOUNT.bankAccount], callback: { url: callbackUrl } }],
    accounts: [ACCOUNT],
    boxes: boxes.map(({ secret, ...box }) => {
      if (ownLogin === undefined) return { ...box, ...(secret && { secret }), account };
      return { ...box, dialect, macAddr: macOf(box), account };
    }),
    ...(ownLogin === undefined ? {} : { vietqrBoxes: { ...SHARED.salts, login: SHARED.login } }),
  };
}

/** Returns the configuration of a bench box. Without a secret the box enrols over HTTP. */
export function agentConfigFor(
  place: TargetLayout,
  box: GeneratedBox,
  boxPort: number,
  display: object = { driver: 'browser' },
): object {
  const gateway = `http://127.0.0.1:${place.httpPort}`;
  const { transport, mqttPort: brokerPort } = place;
  const { secret, ...codes } = box;
  const isShared = transport.ownLogin !== undefined;
  return {
    box: isShared || secret === undefined ? codes : box,
    link: {
      transport: transport.name,
      url: transport.urlOf({ origin: gateway, brokerPort }),
      ...(isShared && dialectLogin(box)),
    },
    ...(isShared || secret !== undefined ? {} : { enrolment: { url: gateway } }),
    displays: [display],
    http: { port: boxPort },
    dataDir: `${place.folder}/${box.terminalCode}`,
    faults: true,
  };
}

/** Returns a local MAC address whose last six digits are those of the box code. */
function macOf({ terminalCode }: GeneratedBox): string {
  return `02:00:5E:${terminalCode.slice(3).replaceAll(/..(?=..)/g, '$&:')}`;
}

/** Returns how a box of a dialect introduces itself. */
export function dialectLogin(box: GeneratedBox) {
  return { macAddr: macOf(box), ...SHARED.salts, ...SHARED.login };
}

/** Returns how the bench calls its own gateway. */
export function gatewayAccess({ httpPort }: Pick<TargetLayout, 'httpPort'>) {
  const origin = `http://127.0.0.1:${httpPort}`;
  return { origin, baseUrl: `${origin}/vqr`, partner: PARTNER, account: ACCOUNT };
}
