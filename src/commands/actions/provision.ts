import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { readBoxFile } from '../../device/agent/setup/box-file.ts';
import { BOX_FILE_BYTES_MAX } from '../../device/agent/setup/machine.ts';
import { DISPLAY_DRIVERS } from '../../device/display/registry.ts';
import {
  type BoxFileContent,
  boxFileText,
  checkBootFolder,
  isBootPartition,
  writeBootFile,
} from '../../device/setup/boot-file.ts';
import { type Addresses, brokerUrl, isOnlyHere } from '../../device/setup/configs.ts';
import { ProvisionFolder } from '../../device/setup/folder.ts';
import type { Wifi } from '../../device/setup/wifi.ts';
import { systemClock } from '../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { readFileText } from '../../lib/files.ts';
import { systemRandom } from '../../lib/random.ts';
import { withSuggestion } from '../../lib/schema-issues.ts';
import type { BoxName } from '../../protocol/fields.ts';
import { boxCode } from '../../protocol/fields.ts';
import { readGivenText } from '../shared/given-text.ts';
import { say } from '../shared/output.ts';
import { secretFrom } from '../shared/secrets.ts';

const LOCAL_HOSTS = ['localhost', '127.0.0.1'];
const HOST_NAME = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;
const GATEWAY = 'gateway';

export interface ProvisionOptions {
  out: string;
  host: string[];
  box: string[];
  rotate: string[];
  httpPort: number;
  mqttPort: number;
  /** The folder of a mounted boot partition. */
  boot?: string;
  /** The address of an existing gateway; `out` is then the boot partition. */
  gateway?: string;
  enrolment?: string;
  ca?: string;
  display?: string;
  wifi?: string;
  wifiPasswordFile?: string;
  wifiCountry?: string;
  replace?: boolean;
}

/**
 * Runs `paybox provision`: makes certificates, secrets and configurations for a gateway, its broker and boxes in one
 * folder, and the boot file of a box. It prints paths and next steps, no secrets. Throws ConfigError; existing files
 * are then unchanged.
 */
export async function provision(options: ProvisionOptions): Promise<void> {
  try {
    await provisionAll(options);
  } catch (error) {
    const code = systemCodeOf(error);
    if (error instanceof PayboxError || code === undefined || !UNWRITABLE.includes(code)) throw error;
    throw new ConfigError(`--out ${options.out}: ${reasonOf(error)}`, 'name a folder that may be written');
  }
}

/** Errors of a folder that was named wrongly. */
const UNWRITABLE = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS'];

async function provisionAll(options: ProvisionOptions): Promise<void> {
  const boxes = options.box.map(boxOf);
  checkArguments(options.host, boxes, options.rotate);
  if (options.gateway !== undefined) return provisionCard(options, options.gateway, boxes);
  if (options.enrolment !== undefined || options.ca !== undefined) {
    throw new ConfigError('--enrolment and --ca are for a gateway that is there already', 'name it with --gateway');
  }
  if (await isBootPartition(options.out)) {
    const fix = 'name a folder of your own with --out, and the card with --boot; or an existing gateway with --gateway';
    throw new ConfigError(`--out ${options.out} is a boot partition: the key of an authority must not be there`, fix);
  }
  const wifi = await wifiOf(options);
  const [box] = boxes;
  if (options.boot === undefined && wifi !== undefined) {
    throw new ConfigError('--wifi is for the file on a boot partition', 'name that with --boot');
  }
  if (options.boot === undefined) return void (await provisionFolder(options, boxes));
  if (box === undefined || boxes.length > 1) throw new ConfigError('--boot: expected one --box', ONE_CARD);
  await checkBootFolder(options.boot, box.terminalCode, options.replace === true);
  const { folder, at } = await provisionFolder(options, boxes);
  const own = folder.boxFolder(box.terminalCode);
  const text = (name: string) => readFileText(join(own, name));
  const secret = (await text('secret')).trim();
  const pems = { ca: await text('ca.pem'), cert: await text('cert.pem'), key: await text('key.pem') };
  await writeCard(options.boot, { box, gateway: brokerUrl(at), secret, ...pems, wifi, display: displayOf(options) });
}

const ONE_CARD = 'a card is the boot partition of one box';

/** Writes the boot file of a box that enrols at an existing gateway. */
async function provisionCard(options: ProvisionOptions, gateway: string, boxes: readonly BoxName[]): Promise<void> {
  const { out, boot, host, rotate, enrolment, replace = false } = options;
  const [box] = boxes;
  if (box === undefined || boxes.length > 1) throw new ConfigError('--gateway: expected one --box', ONE_CARD);
  if (host.length + rotate.length > 0 || boot !== undefined) {
    throw new ConfigError('--gateway: expected no --host, --rotate or --boot beside it', '--out is the boot partition');
  }
  await checkBootFolder(out, box.terminalCode, replace);
  const ca = options.ca === undefined ? undefined : certificateIn(options.ca);
  await writeCard(out, { box, gateway, enrolment, ca, wifi: await wifiOf(options), display: displayOf(options) });
}

/** Throws ConfigError if the box would refuse the file. */
async function writeCard(folder: string, content: BoxFileContent): Promise<void> {
  const text = boxFileText(content);
  readBoxFile(Buffer.from(text), undefined);
  const path = await writeBootFile(resolve(folder), text);
  const { terminalCode } = content.box;
  if (content.display !== undefined) tellPlace(content.display, path);
  say(`${terminalCode}: ${path} is written. Unmount the card, put it into the box and switch that on.`);
  if (content.secret === undefined) {
    const url = new URL(content.enrolment ?? content.gateway).origin;
    say(`then: accept the code on its screen with paybox enrol --gateway ${url} --box ${terminalCode} --code …`);
  } else {
    say('The box takes the secrets off the card when it starts. Until then, let nobody have it.');
  }
}

function certificateIn(file: string): string {
  try {
    return readGivenText(file, BOX_FILE_BYTES_MAX);
  } catch (error) {
    throw new ConfigError(`--ca ${file} cannot be read: ${reasonOf(error)}`, 'name a PEM file');
  }
}

async function wifiOf({ wifi: ssid, wifiPasswordFile: file, wifiCountry: country }: ProvisionOptions) {
  if (ssid !== undefined) {
    const psk = file === undefined ? undefined : secretFrom('--wifi-password-file', file);
    return { ssid, psk, country } satisfies Wifi;
  }
  if (file === undefined && country === undefined) return undefined;
  throw new ConfigError('expected --wifi beside --wifi-password-file and --wifi-country', 'name the network');
}

async function provisionFolder(
  options: ProvisionOptions,
  boxes: readonly BoxName[],
): Promise<{ folder: ProvisionFolder; at: Addresses }> {
  const { out, host, rotate, httpPort, mqttPort } = options;
  const folder = new ProvisionFolder(out, systemClock.wallMs(), systemRandom);
  const known = await folder.hosts();
  const at = { hosts: host.length > 0 ? host : (known ?? LOCAL_HOSTS), httpPort, mqttPort };
  if (options.boot !== undefined && isOnlyHere(at)) {
    throw new ConfigError(`--boot: no box finds its gateway at ${at.hosts[0]}`, 'name the gateway with --host');
  }

  if (rotate.includes(GATEWAY)) {
    await folder.rotateGateway(at.hosts);
    say(
      `gateway: new certificates. Copy ${folder.path}/gateway/*.pem to the gateway and its broker, and restart them.`,
    );
  } else if (await folder.begin(at)) {
    say(`a certificate authority is in ${folder.path}. Keep ca-key.pem where nobody gets at it.`);
    say(`gateway: paybox gateway --config ${folder.path}/gateway/gateway.yaml, for ${at.hosts.join(', ')}`);
    say(`a broker of your own: see mosquitto, emqx, rabbitmq and nats in ${folder.path}`);
  }
  await addBoxes(folder, boxes, at, { isForCard: options.boot !== undefined, display: displayOf(options) });
  const codes = rotate.filter((it) => it !== GATEWAY);
  for (const terminalCode of codes) {
    await folder.rotateBox(terminalCode);
    const path = folder.boxFolder(terminalCode);
    say(
      `${terminalCode}: the old secret and certificate are refused. Copy ${path}/secret, cert.pem and key.pem to the box,`,
    );
    say(`  into a folder ${terminalCode}, and there: ${installed(terminalCode)}`);
  }
  if (boxes.length + codes.length > 0) say(TELL_OTHERS);
  return { folder, at };
}

/** Returns the command that copies a box's folder to the service's place, readable only by the service. */
function installed(terminalCode: string): string {
  return `sudo install -g paybox-agent -m 0640 ${terminalCode}/* /etc/paybox && sudo systemctl restart paybox-agent`;
}

/** Adds boxes. A box that needs a new card may be provisioned already. */
async function addBoxes(
  folder: ProvisionFolder,
  boxes: readonly BoxName[],
  at: Addresses,
  { isForCard, display }: { isForCard: boolean; display: object | undefined },
): Promise<void> {
  const missing: BoxName[] = [];
  for (const box of boxes) if (!isForCard || !(await folder.hasBox(box.terminalCode))) missing.push(box);
  if (missing.length === 0) return;
  const made = ({ terminalCode }: BoxName) => {
    const path = folder.boxFolder(terminalCode);
    if (isForCard) return;
    say(
      `${terminalCode}: copy ${path} to the box, where the package is installed, and there: ${installed(terminalCode)}`,
    );
    if (display === undefined)
      say(`  its screen is its own page only: name its display in ${path}/agent.yaml, or with --display`);
    else tellPlace(display, `${path}/agent.yaml`);
  };
  await folder.addBoxes(missing, at, made, display && [display]);
}

/** Options that the service needs. Nobody sees a picture in its own /tmp, and its folder in /run is in memory. */
const OF_SERVICE: Record<string, object> = { png: { path: '/run/paybox-agent/screen.png' } };

/** Returns the display that is named, with the options that it cannot do without. Throws ConfigError. */
function displayOf({ display }: ProvisionOptions): object | undefined {
  if (display === undefined) return undefined;
  const found = DISPLAY_DRIVERS.get(display);
  if (found === undefined) {
    const known = [...DISPLAY_DRIVERS.keys()].join(', ');
    throw new ConfigError(withSuggestion(`--display ${display}: expected one of ${known}`, display));
  }
  // Only the required options of the example are used. The framebuffer's example names the screen of one board, and is
  // dark at night.
  const missing = new Set(found.options.safeParse({}).error?.issues.map(({ path }) => path[0]));
  const needed = Object.entries(found.example as object).filter(([name]) => missing.has(name));
  return { driver: display, ...Object.fromEntries(needed), ...OF_SERVICE[display] };
}

/** Prints where the display is expected, because it may be elsewhere than in the example of its driver. */
function tellPlace(display: object, file: string): void {
  if ('path' in display) say(`  its display is expected at ${display.path}: correct that in ${file}`);
}

const TELL_OTHERS =
  'then: the gateway takes boxes from gateway/gateway.yaml; Mosquitto takes mosquitto/passwords and ca.crl, EMQX emqx/users.csv, RabbitMQ rabbitmq/definitions.json, NATS nats/users.conf. Start them anew.';

function boxOf(text: string): BoxName {
  const [terminalCode = '', serialNumber = '', ...more] = text.split(':');
  if (more.length === 0 && boxCode.safeParse(terminalCode).success && boxCode.safeParse(serialNumber).success) {
    return { terminalCode, serialNumber };
  }
  throw new ConfigError(`--box ${text}: expected terminalCode and serialNumber, as VVB000001:VVB900001`);
}

function checkArguments(hosts: readonly string[], boxes: readonly BoxName[], rotate: readonly string[]): void {
  const wrong = hosts.find((host) => isIP(host) === 0 && !HOST_NAME.test(host));
  if (wrong !== undefined) throw new ConfigError(`--host ${wrong}: expected a host name or an IP address`);
  const unknown = rotate.find((name) => name !== GATEWAY && !boxCode.safeParse(name).success);
  if (unknown !== undefined) throw new ConfigError(`--rotate ${unknown}: expected a terminalCode, or gateway`);
  const names = [...boxes.map((it) => it.terminalCode), ...boxes.map((it) => it.serialNumber), ...rotate];
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined) throw new ConfigError(`${twice} is named twice`);
}
