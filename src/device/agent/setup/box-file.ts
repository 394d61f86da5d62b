import { createPrivateKey, X509Certificate } from 'node:crypto';
import { stringify } from 'yaml';
import { z } from 'zod';
import { BOX_FILE, checkConfig } from '../../../lib/config-file.ts';
import { ConfigError } from '../../../lib/errors.ts';
import { isPlainText } from '../../../lib/text.ts';
import { textOfFile } from '../../../lib/text-file.ts';
import { isExposed, isTlsUrl } from '../../../lib/tls.ts';
import { parseYaml } from '../../../lib/yaml-text.ts';
import { boxCode, LIMITS } from '../../../protocol/fields.ts';
import { isStrongSecret, SECRET_EXPECTED } from '../../../protocol/secret.ts';
import { DISPLAY_DRIVERS } from '../../display/registry.ts';
import { agentConfigSchema } from '../config.ts';
import { BOOT_LINK, BOOT_SECRETS, GATEWAY_TRANSPORTS, LINK_SCHEMES, transportFor } from '../transports/registry.ts';
import { gatewayOrigin } from '../transports/tls.ts';
import { KEPT, withKept, withoutSecrets, withSecretsAs } from './box-secrets.ts';
import { BOX_FILE_BYTES_MAX } from './machine.ts';

const FIX = `correct it on the boot partition and restart the box; \`paybox config schema box\` prints every key`;
const SSID_BYTES_MAX = 32;
const SCHEMES = [...GATEWAY_TRANSPORTS.values()].map(({ schemes }) => Object.keys(schemes));
const TLS_EXAMPLES = SCHEMES.map((schemes) => schemes.find((it) => LINK_SCHEMES[it]?.isTls));

const agentKeys = agentConfigSchema.shape;
const { host, port, tokenFile } = agentKeys.http.unwrap().shape;
/**
 * The card has the path of the token's file. It does not have the token, because anybody can read a file on this card.
 */
const pages = z.strictObject({ host, port, tokenFile });
const displays = agentKeys.displays.unwrap();
const display = displays.element;
const text = (what: string) => z.string(`expected ${what}, in quotes where it is a number`);

const wifi = z.strictObject({
  ssid: text('the name of the network')
    .min(1)
    .refine((it) => Buffer.byteLength(it) <= SSID_BYTES_MAX, `expected at most ${SSID_BYTES_MAX} bytes`)
    .refine(isPlainText, 'expected no control character and no invisible one'),
  psk: text('the password of the network')
    .regex(/^([ -~]{8,63}|[0-9A-Fa-f]{64}|kept)$/, 'expected a WPA password of 8 to 63 characters')
    .optional()
    .describe('left out for an open network'),
  country: z
    .string()
    .regex(/^[A-Z]{2}$/, 'expected a country as VN: Wi-Fi channels differ from one to the other')
    .default('VN'),
});

function schemaOf<Shown extends z.ZodType>(oneDisplay: Shown) {
  return z
    .strictObject({
      terminalCode: boxCode,
      serialNumber: boxCode,
      gateway: z
        .url({
          protocol: new RegExp(`^(${SCHEMES.flat().join('|')})$`),
          error: `expected an ${TLS_EXAMPLES.map((it) => `${it}://`).join(' or ')} address`,
          abort: true,
        })
        .max(LIMITS.urlMax)
        .describe('where the gateway is, or its broker'),
      enrolment: gatewayOrigin
        .optional()
        .describe('the gateway over HTTP, for a box without secret whose gateway address is a broker'),
      link: BOOT_LINK.optional().describe(
        'for the public service in its MQTT dialect, in place of a gateway of paybox',
      ),
      secret: text('the secret')
        .max(200)
        .refine((it) => it === KEPT || isStrongSecret(it), SECRET_EXPECTED)
        .optional()
        .describe('without it the box shows a code that is entered at its gateway'),
      ca: text('a certificate, PEM').refine(isCertificate, 'expected a certificate, PEM').optional(),
      cert: text('a certificate, PEM').refine(isCertificate, 'expected a certificate, PEM').optional(),
      key: text('a private key, PEM').refine(isKey, 'expected a private key, PEM, without a password').optional(),
      allowPlain: z
        .boolean()
        .optional()
        .describe('allow another machine without TLS; others on the network can read and change messages'),
      display: oneDisplay.optional().describe('framebuffer if left out'),
      displays: displays.optional().describe('several, the first confirms'),
      wifi: wifi.optional(),
      http: pages.optional(),
      voice: agentKeys.voice,
      light: agentKeys.light,
      buttons: agentKeys.buttons,
      paidHoldSeconds: agentKeys.paidHoldSeconds.unwrap().optional(),
      endedHoldSeconds: agentKeys.endedHoldSeconds.unwrap().optional(),
      onStop: agentKeys.onStop.unwrap().optional(),
      sandboxMark: agentKeys.sandboxMark.unwrap().optional(),
    })
    .superRefine((file, context) => {
      const complain = (key: string, message: string) =>
        context.addIssue({ code: 'custom', path: [key], message, input: file });
      const { gateway, enrolment, secret, ca, cert, key, allowPlain } = file;
      const isPublic = file.link !== undefined;
      const canEnrol = transportFor(gateway)?.canEnrol === true;
      if (canEnrol && !gatewayOrigin.safeParse(gateway).success) {
        complain('gateway', 'expected an origin only, as https://gateway.example: no user name, path or query');
      }
      for (const [name, url] of Object.entries({ gateway, enrolment })) {
        if (url !== undefined && isExposed(url, LINK_SCHEMES) && allowPlain !== true) {
          complain(name, 'expected an address with TLS for another machine, or allowPlain: true');
        }
      }
      const needsTls = [ca, cert, key].some((it) => it !== undefined);
      if (needsTls && !isTlsUrl(gateway, LINK_SCHEMES))
        complain('gateway', 'expected an address with TLS beside ca, cert or key');
      if ((cert === undefined) !== (key === undefined)) complain('cert', 'expected cert and key together');
      if (cert !== undefined && key !== undefined && key !== KEPT && !belongTogether(cert, key)) {
        complain('key', 'expected the private key of cert');
      }
      if (isPublic && canEnrol) complain('gateway', 'expected the address of a broker beside link');
      for (const [name, value] of Object.entries(isPublic ? { secret, enrolment } : {})) {
        if (value !== undefined) complain(name, 'expected none beside link: that service knows no secret of the box');
      }
      if (secret === undefined && enrolment === undefined && !canEnrol && !isPublic) {
        complain('enrolment', 'expected the address of the gateway, https://…, because the box has no secret yet');
      }
      if (file.display !== undefined && file.displays !== undefined)
        complain('displays', 'expected display or displays');
    });
}

const driverNames = [...DISPLAY_DRIVERS.keys()];

/** Schema of `paybox.yaml`, for people and editors. */
export const boxFileSchema = schemaOf(z.union([z.enum(driverNames), display]));
const checked = schemaOf(display);

export type BoxSettings = z.input<typeof checked>;

/** A valid `paybox.yaml`. */
export interface BoxFile {
  settings: BoxSettings;
  /** The same file with every secret replaced by `kept`. */
  withoutSecrets: string;
}

/**
 * Parses the bytes of a `paybox.yaml`. `before` has the previous settings, for secrets given as `kept`. Throws
 * ConfigError with file, line and expected value.
 */
export function readBoxFile(bytes: Uint8Array, before: BoxSettings | undefined): BoxFile {
  const { source, yaml, given, value } = parsed(bytes);
  const settings = withKept(given, before, yaml.lineOf);
  return { settings, withoutSecrets: withoutSecrets(source, value, yaml) };
}

/** Returns the settings in a `paybox.yaml`, with every secret masked. Throws as `readBoxFile` does. */
export function maskedBoxFile(bytes: Uint8Array): BoxSettings {
  const { given } = parsed(bytes);
  return withSecretsAs(given, '***');
}

function parsed(bytes: Uint8Array) {
  const source = textOf(bytes);
  const yaml = parseYaml(source, BOX_FILE);
  const { value } = yaml;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ConfigError(`${BOX_FILE}:1: expected lines as terminalCode: VVB000001`, FIX);
  }
  const given = withDisplay(value);
  checkConfig(checked, given, BOX_FILE, FIX, yaml.lineOf);
  return { source, yaml, value, given: given as BoxSettings };
}

/** Replaces a driver's name alone by its default options. */
function withDisplay(value: object): object {
  if (!('display' in value) || typeof value.display !== 'string') return value;
  return { ...value, display: { driver: value.display } };
}

function textOf(bytes: Uint8Array): string {
  if (bytes.length > BOX_FILE_BYTES_MAX) {
    throw new ConfigError(`${BOX_FILE}: expected at most ${BOX_FILE_BYTES_MAX} bytes`, FIX);
  }
  return textOfFile(bytes, BOX_FILE);
}

function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem) !== undefined;
  } catch {
    return false;
  }
}

function isKey(pem: string): boolean {
  try {
    return pem === KEPT || createPrivateKey(pem) !== undefined;
  } catch {
    return false;
  }
}

function belongTogether(cert: string, key: string): boolean {
  return isCertificate(cert) && isKey(key) && new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
}

/** Files of a box's configuration, by their names in its folder. */
export interface BoxFiles {
  'agent.yaml': string;
  [file: string]: string;
}

/** Returns the agent's configuration and the files that it names, in `folder` relative to it. `dataDir` is absolute. */
export function agentFilesOf(settings: BoxSettings, folder: string, dataDir: string): BoxFiles {
  const { terminalCode, serialNumber, gateway, enrolment, secret, allowPlain, wifi: _, ca, cert, key } = settings;
  const { display: one, displays: several, ...rest } = settings;
  const pems = { ca, cert, key };
  const own = Object.entries(pems).filter((it): it is [string, string] => it[1] !== undefined);
  const tls = Object.fromEntries(own.map(([name]) => [name, `${folder}/${name}.pem`]));
  const plain = allowPlain === undefined ? {} : { allowPlain };
  const guard = { ...plain, ...(own.length === 0 ? {} : { tls }) };
  const enrols = secret === undefined && enrolment !== undefined;
  const enrolmentTls = enrols && enrolment.startsWith('https:') && ca !== undefined ? { tls: { ca: tls.ca } } : {};
  const { http, voice, light, buttons, paidHoldSeconds, endedHoldSeconds, onStop, sandboxMark } = rest;
  const { link, linkFiles } = linkOf(settings, folder);
  const config = {
    box: { terminalCode, serialNumber, ...(secret === undefined ? {} : { secretFile: `${folder}/secret` }) },
    link: { transport: transportFor(gateway)?.name, url: gateway, ...guard, ...link },
    ...(enrols ? { enrolment: { url: enrolment, ...plain, ...enrolmentTls } } : {}),
    displays: several ?? [one ?? { driver: 'framebuffer' }],
    http,
    voice,
    light,
    buttons,
    paidHoldSeconds,
    endedHoldSeconds,
    onStop,
    sandboxMark,
    dataDir,
  };
  return {
    'agent.yaml': `${MADE}${stringify(config)}`,
    ...(secret === undefined ? {} : { [`${folder}/secret`]: `${secret}\n` }),
    ...Object.fromEntries(own.map(([name, pem]) => [`${folder}/${name}.pem`, pem])),
    ...linkFiles,
  };
}

/** Returns the options of a link to the public service, and the files with its secrets. */
function linkOf({ link }: BoxSettings, folder: string) {
  const given = Object.entries(link ?? {});
  const options = given.map(([name, value]) =>
    BOOT_SECRETS.has(name) ? [`${name}File`, `${folder}/${name}`] : [name, value],
  );
  const secrets = given.filter(([name]) => BOOT_SECRETS.has(name));
  return {
    link: Object.fromEntries(options) as object,
    linkFiles: Object.fromEntries(secrets.map(([name, value]) => [`${folder}/${name}`, `${value}\n`])),
  };
}

const MADE = `# Made from ${BOX_FILE} of the boot partition. When that file changes, it replaces this one.\n`;
