import { resolve } from 'node:path';
import { z } from 'zod';
import { type ConfigFile, checkConfig, readConfigFile, readSecretFile } from '../../lib/config-file.ts';
import { assertKind } from '../../lib/config-kind.ts';
import { HTTP_SCHEMES } from '../../lib/tls.ts';
import { type BoxName, boxCode } from '../../protocol/fields.ts';
import { strongSecret } from '../../protocol/secret.ts';
import { DISPLAY_DRIVERS } from '../display/registry.ts';
import { type LightOptions, lightOptions } from '../voice/light.ts';
import { type VoiceOptions, voiceOptions } from '../voice/registry.ts';
import type { GatewayAddress } from './contract.ts';
import type { LocalHttpOptions } from './pages/server.ts';
import { type ButtonOptions, buttonOptions } from './peripherals/buttons.ts';
import type { OnStop } from './screen/screen.ts';
import { TRANSPORTS } from './transports/registry.ts';
import { checkTls, gatewayOrigin, tlsOptions } from './transports/tls.ts';

const FIX =
  'see device-config/, on a device /usr/share/doc/paybox-agent/examples, for valid examples, and `paybox config schema agent` for every key';
const DISPLAYS_MAX = 8;
const HOLD_SECONDS_MAX = 3_600;

const holdSeconds = z.number().min(0).max(HOLD_SECONDS_MAX);

/** Returns one schema for all entries of a registry: the key with the entry's name, beside that entry's own options. */
function oneOf(key: string, registry: ReadonlyMap<string, { name: string; options: z.ZodType }>) {
  const members = [...registry.values()].map(({ name, options }) => {
    if (!(options instanceof z.ZodObject)) throw new Error(`${key} ${name}: its options are not an object`);
    return options.safeExtend({ [key]: z.literal(name) });
  });
  const [first, ...others] = members;
  if (first === undefined) throw new Error(`no ${key} is registered`);
  const names = [...registry.keys()].join(', ');
  return z.discriminatedUnion(key, [first, ...others], { error: () => `expected one of ${names}` });
}

const box = z
  .strictObject({
    terminalCode: boxCode,
    serialNumber: boxCode,
    secret: strongSecret.optional().describe('the secret by which the gateway knows the box'),
    secretFile: z.string().min(1).optional().describe('a file that holds the secret instead'),
  })
  .refine((it) => it.secret === undefined || it.secretFile === undefined, 'expected either secret or secretFile')
  .describe('without secret and secretFile the box enrols: it shows a code that is entered at its gateway');

const enrolment = z.strictObject({ url: gatewayOrigin, ...tlsOptions }).superRefine(checkTls(HTTP_SCHEMES));

/** The configuration of a box; `paybox config schema` prints it. Unknown keys are errors. */
export const agentConfigSchema = z
  .strictObject({
    box,
    link: oneOf('transport', TRANSPORTS).describe('how the gateway is reached'),
    enrolment: enrolment.optional().describe('where a box without a secret enrols; link.url where the transport can'),
    displays: z
      .array(oneOf('driver', DISPLAY_DRIVERS))
      .min(1)
      .max(DISPLAYS_MAX)
      .default([{ driver: 'browser', ...(DISPLAY_DRIVERS.get('browser')?.options.parse({}) as object) }])
      .describe('the first is the one that confirms a push'),
    http: z
      .strictObject({
        host: z.string().min(1).max(255).default('127.0.0.1'),
        port: z.int().min(0).max(65_535).default(8810),
        token: strongSecret
          .optional()
          .describe('required for the pages; whoever has it can see everything and press keys'),
        tokenFile: z.string().min(1).optional().describe('a file that holds the token instead'),
      })
      .refine((it) => it.token === undefined || it.tokenFile === undefined, 'expected either token or tokenFile')
      .prefault({})
      .describe("the box's own pages; without a token other machines see the screen only"),
    voice: voiceOptions.optional().describe('says payments aloud'),
    light: lightOptions.optional().describe('flashes on a payment'),
    buttons: buttonOptions.optional().describe('push buttons of the box'),
    dataDir: z
      .string()
      .min(1)
      .optional()
      .describe(
        'a folder for the journal and other lasting data, relative to the configuration file; if left out, data beside it, or /var/lib/paybox for a file in /etc/paybox',
      ),
    paidHoldSeconds: holdSeconds.default(10).describe('how long a payment stays on the screen'),
    endedHoldSeconds: holdSeconds.default(5).describe('how long an expired or cancelled order stays on the screen'),
    onStop: z
      .enum(['blank', 'leave'])
      .default('blank')
      .describe('what the displays show once the agent has been stopped; a QR is always removed'),
    sandboxMark: z
      .boolean()
      .default(true)
      .describe('whether every screen says SANDBOX where the gateway is a sandbox and asks for it'),
    faults: z
      .boolean()
      .default(false)
      .describe('for test benches only: everyone who can reach the pages can inject faults, at /_mock/faults'),
  })
  .superRefine(({ box, link, enrolment }, context) => {
    const transport = TRANSPORTS.get(link.transport ?? '');
    if (transport?.ownLogin !== undefined) {
      const message = 'expected none: another service than a gateway of paybox knows no secret of the box';
      for (const [path, given] of [
        [['box', 'secret'], box.secret],
        [['box', 'secretFile'], box.secretFile],
        [['enrolment'], enrolment],
      ] as const) {
        if (given !== undefined) context.addIssue({ code: 'custom', path: [...path], message, input: given });
      }
      return;
    }
    if (enrolment !== undefined || box.secret !== undefined || box.secretFile !== undefined) return;
    if (transport?.canEnrol === true) return;
    const message = 'expected box.secret, box.secretFile, or enrolment.url: the address of the gateway over HTTP';
    context.addIssue({ code: 'custom', path: ['box'], message, input: box });
  });

/** A validated configuration: defaults filled in, paths absolute, the secret read. */
export interface AgentConfig {
  /** Without a secret the box enrols. */
  box: BoxName & { secret?: string };
  /** The gateway to enrol at; undefined for a box that has a secret. */
  enrolment?: GatewayAddress;
  /** The transport's name and its options. */
  link: GatewayAddress & { transport: string; [option: string]: unknown };
  /** Each display's driver and its options; at least one, and the first confirms pushes. */
  displays: { driver: string; [option: string]: unknown }[];
  http: LocalHttpOptions;
  voice?: VoiceOptions | undefined;
  light?: LightOptions | undefined;
  buttons?: ButtonOptions | undefined;
  dataDir: string;
  paidHoldSeconds: number;
  endedHoldSeconds: number;
  onStop: OnStop;
  /** True if screens say SANDBOX when the gateway asks for it. */
  sandboxMark: boolean;
  /** True if faults may be injected over the box's pages. */
  faults: boolean;
}

/**
 * Checks a configuration that is not from a file. `name` is its name in messages; relative paths start at `folder`.
 * Throws ConfigError with name, path and the expected value.
 */
export function parseAgentConfig(
  value: unknown,
  name: string,
  folder = '.',
  placeOf?: ConfigFile['placeOf'],
): AgentConfig {
  const config = checkConfig(agentConfigSchema, value, name, FIX, placeOf);
  const { box, displays, dataDir, link, enrolment, http, ...rest } = config;
  const { terminalCode, serialNumber } = box;
  const read = (option: string, file: string) => readSecretFile({ option, file }, { name, folder }, strongSecret);
  const secret = box.secret ?? (box.secretFile && read('box.secretFile', box.secretFile));
  const { tokenFile, token = tokenFile && read('http.tokenFile', tokenFile), ...pages } = http;
  const guarded = withSecrets(link as AgentConfig['link'], name, folder);
  const { url, tls, allowPlain } = enrolment ?? guarded;
  const enrolsAt = TRANSPORTS.get(guarded.transport)?.ownLogin === undefined ? { url, tls, allowPlain } : undefined;
  return {
    ...rest,
    http: token === undefined ? pages : { ...pages, token },
    ...(secret === undefined
      ? {
          box: { terminalCode, serialNumber },
          ...(enrolsAt === undefined ? {} : { enrolment: withAbsoluteFiles(enrolsAt, folder) }),
        }
      : { box: { terminalCode, serialNumber, secret } }),
    link: withAbsoluteFiles(guarded, folder),
    displays: displays.map((display) => withAbsolutePath(display as AgentConfig['displays'][number], folder)),
    dataDir: resolve(folder, dataDir ?? dataDirFor(folder)),
  };
}

/** The installed service may write only this folder (StateDirectory= of its unit). */
const SERVICE_FOLDERS = { config: '/etc/paybox', state: '/var/lib/paybox' };

function dataDirFor(folder: string): string {
  return resolve(folder) === SERVICE_FOLDERS.config ? SERVICE_FOLDERS.state : 'data';
}

/** Reads and checks a YAML file. Throws ConfigError. */
export async function loadAgentConfig(path: string): Promise<AgentConfig> {
  const { name, folder, value, placeOf } = await readConfigFile(path);
  assertKind(value, 'agent', path);
  return parseAgentConfig(value, name, folder, placeOf);
}

/** Another service issues this secret and decides about its strength. */
const sharedSecret = z.string().min(1).max(200);

/** Returns the link with the secrets from the files that its `…File` options name. */
function withSecrets(link: AgentConfig['link'], name: string, folder: string): AgentConfig['link'] {
  const read = { ...link };
  for (const option of TRANSPORTS.get(link.transport)?.ownLogin?.fromFiles ?? []) {
    const fileOption = `${option}File`;
    const file = link[fileOption];
    if (typeof file !== 'string') continue;
    read[option] = readSecretFile({ option: `link.${fileOption}`, file }, { name, folder }, sharedSecret);
    delete read[fileOption];
  }
  return read;
}

/** Makes the paths of TLS files absolute. Every transport has them in `tls`. */
function withAbsoluteFiles<T extends GatewayAddress>(link: T, folder: string): T {
  if (link.tls === undefined) return link;
  const { servername, ...files } = link.tls;
  const absolute = Object.fromEntries(
    Object.entries(files).map(([name, path]) => [name, path === undefined ? undefined : resolve(folder, path)]),
  );
  return { ...link, tls: servername === undefined ? absolute : { ...absolute, servername } };
}

/** Drivers that work on a file name it in the option `path`. */
function withAbsolutePath<T extends { [option: string]: unknown }>(display: T, folder: string): T {
  return typeof display.path === 'string' ? { ...display, path: resolve(folder, display.path) } : display;
}
