import { isIP } from 'node:net';
import { systemClock } from '../lib/clock.ts';
import { ConfigError } from '../lib/errors.ts';
import { systemRandom } from '../lib/random.ts';
import { boxCode } from '../protocol/fields.ts';
import type { BoxName } from '../provision/configs.ts';
import { ProvisionFolder } from '../provision/folder.ts';

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
}

/**
 * `paybox provision`: certificates, secrets and configurations for a gateway, its broker and boxes, in one folder. Says
 * where they are and what is to be copied where, and nothing that is secret. Throws ConfigError; what was there before
 * is then as it was.
 */
export async function provision(options: ProvisionOptions): Promise<void> {
  const { out, host, rotate, httpPort, mqttPort } = options;
  const boxes = options.box.map(boxOf);
  checkArguments(host, boxes, rotate);
  const folder = new ProvisionFolder(out, systemClock.wallMs(), systemRandom);
  const known = await folder.hosts();
  const at = { hosts: host.length > 0 ? host : (known ?? LOCAL_HOSTS), httpPort, mqttPort };

  if (rotate.includes(GATEWAY)) {
    await folder.rotateGateway(at.hosts);
    say(
      `gateway: new certificates. Copy ${folder.path}/gateway/*.pem to the gateway and its broker, and start them anew.`,
    );
  } else if (await folder.begin(at)) {
    say(`a certificate authority is in ${folder.path}. Keep ca-key.pem where nobody gets at it.`);
    say(`gateway: paybox gateway --config ${folder.path}/gateway/gateway.yaml, for ${at.hosts.join(', ')}`);
    say(`a broker of your own: see ${folder.path}/mosquitto and ${folder.path}/emqx`);
  }
  for (const box of boxes) {
    await folder.addBox(box, at);
    const path = folder.boxFolder(box.terminalCode);
    say(`${box.terminalCode}: copy ${path} to the box, as /etc/paybox that only its user paybox can read.`);
  }
  const codes = rotate.filter((it) => it !== GATEWAY);
  for (const terminalCode of codes) {
    await folder.rotateBox(terminalCode);
    const path = folder.boxFolder(terminalCode);
    say(`${terminalCode}: copy secret, key.pem and cert.pem from ${path} to the box; the old ones are refused.`);
  }
  if (boxes.length + codes.length > 0) say(TELL_OTHERS);
}

const TELL_OTHERS =
  'then: the gateway takes boxes from gateway/gateway.yaml; Mosquitto takes mosquitto/passwords and ca.crl, EMQX emqx/users.csv. Start them anew.';

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

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
