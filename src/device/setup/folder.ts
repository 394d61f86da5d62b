import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { ConfigError } from '../../lib/errors.ts';
import type { Random } from '../../lib/random.ts';
import type { BoxName } from '../../protocol/fields.ts';
import { loginOf } from '../../protocol/keys.ts';
import { newSecret } from '../../protocol/secret.ts';
import {
  EMQX_USERS_HEAD,
  emqxAcl,
  emqxUser,
  GATEWAY_LOGIN,
  mosquittoAcl,
  mosquittoConfig,
  mosquittoPassword,
  withLines,
} from './brokers.ts';
import {
  type Addresses,
  agentConfig,
  type BoxEntry,
  gatewayConfig,
  isOnlyHere,
  PAGE_ONLY,
  withBoxes,
} from './configs.ts';
import { type Content, createFolder, readIfThere, replaceFile } from './files.ts';
import { NATS_USERS, natsConfig, natsNode, withNatsUsers } from './nats.ts';
import { type Credential, createAuthority, issue, revoke, validFor } from './pki.ts';
import { RABBITMQ_DEFINITIONS, rabbitmqConfig, withRabbitmqUsers } from './rabbitmq.ts';

const SECRET_BYTES = 32;
const AUTHORITY_YEARS = 10;
const SERVER_YEARS = 2;
/** Certificates are valid for long, because a box may be unused in a shop for as long as the authority is valid. */
const CLIENT_YEARS = 10;

/**
 * Owns a folder with a certificate authority and its files for a gateway, brokers and boxes. Files stay unchanged until
 * rotated. Only the lists of boxes grow. Only the folder's owner can read secrets.
 */
export class ProvisionFolder {
  /** An absolute path. */
  readonly path: string;
  readonly #nowMs: number;
  readonly #random: Random;

  constructor(path: string, nowMs: number, random: Random) {
    this.path = resolve(path);
    this.#nowMs = nowMs;
    this.#random = random;
  }

  /**
   * Makes the authority and the files of gateway and brokers. Returns false if they exist. Throws ConfigError if the
   * folder contains something else, or its certificate is for other hosts.
   */
  async begin(at: Addresses): Promise<boolean> {
    const cert = await readIfThere(join(this.path, 'gateway/cert.pem'));
    if (cert !== undefined) {
      const wrong = at.hosts.find((host) => !isFor(new X509Certificate(cert), host));
      if (wrong === undefined) return false;
      const fix = `leave --host out, or make a new one with --rotate ${GATEWAY_LOGIN} and every --host`;
      throw new ConfigError(`--host ${wrong}: the certificate in ${this.path}/gateway is for other hosts`, fix);
    }
    const authority = await createAuthority(`paybox ${this.#random.secret(6)}`, validFor(this.#nowMs, AUTHORITY_YEARS));
    const password = newSecret(this.#random, SECRET_BYTES);
    const gateway = await this.#gatewayFiles(authority, at.hosts);
    await createFolder(this.path, {
      'ca.pem': { text: authority.cert, isPublic: true },
      'ca-key.pem': { text: authority.key },
      'ca.crl': { text: await revoke(authority, undefined, [], this.#nowMs), isPublic: true },
      ...Object.fromEntries(Object.entries(gateway).map(([name, content]) => [`gateway/${name}`, content])),
      'gateway/ca.pem': { text: authority.cert, isPublic: true },
      'gateway/gateway.yaml': { text: gatewayConfig(at, password) },
      'mosquitto/mosquitto.conf': { text: mosquittoConfig(this.path, at.mqttPort, isOnlyHere(at)), isPublic: true },
      'mosquitto/acl': { text: mosquittoAcl() },
      'mosquitto/passwords': { text: withLines('', [mosquittoPassword(GATEWAY_LOGIN, password)]) },
      'emqx/acl.conf': { text: emqxAcl() },
      'emqx/users.csv': { text: withLines(`${EMQX_USERS_HEAD}\n`, [emqxUser(GATEWAY_LOGIN, password)]) },
      'rabbitmq/rabbitmq.conf': { text: rabbitmqConfig(this.path, at.mqttPort, isOnlyHere(at)), isPublic: true },
      'rabbitmq/definitions.json': {
        text: withRabbitmqUsers(RABBITMQ_DEFINITIONS, { [GATEWAY_LOGIN]: password }, 'definitions.json'),
      },
      'nats/nats.conf': { text: natsConfig(this.path), isPublic: true },
      'nats/node.conf': { text: natsNode(at.mqttPort, isOnlyHere(at)), isPublic: true },
      'nats/users.conf': { text: withNatsUsers(NATS_USERS, { [GATEWAY_LOGIN]: password }) },
    });
    return true;
  }

  /** Returns the folder of a box's files. */
  boxFolder(terminalCode: string): string {
    return join(this.path, 'boxes', terminalCode);
  }

  async hasBox(terminalCode: string): Promise<boolean> {
    return (await readIfThere(join(this.boxFolder(terminalCode), 'cert.pem'))) !== undefined;
  }

  /**
   * Adds boxes to the gateway's configuration and the brokers' lists, one write per file. It makes their folders, and
   * calls `made` for each complete box. After an interruption no box has a folder yet, and the caller can repeat the
   * call. Throws ConfigError and changes nothing if one of the boxes exists.
   */
  async addBoxes(
    boxes: readonly BoxName[],
    at: Addresses,
    made: (box: BoxName) => void,
    displays: readonly object[] = PAGE_ONLY,
  ): Promise<void> {
    for (const { terminalCode } of boxes) {
      if (!(await this.hasBox(terminalCode))) continue;
      const fix = `nothing was changed; --rotate ${terminalCode} makes a new secret and certificate`;
      throw new ConfigError(`${this.boxFolder(terminalCode)} is there already`, fix);
    }
    const authority = await this.#authority();
    const drafts = [];
    for (const box of boxes) {
      const secret = newSecret(this.#random, SECRET_BYTES);
      drafts.push({ box, secret, ...(await this.#clientOf(authority, box.terminalCode)) });
    }
    await this.#tellOthers(drafts.map(({ box, secret }) => ({ ...box, secret })));
    for (const { box, secret, cert, key } of drafts) {
      await createFolder(this.boxFolder(box.terminalCode), {
        'agent.yaml': { text: agentConfig(box, at, displays) },
        secret: { text: `${secret}\n` },
        'cert.pem': { text: cert, isPublic: true },
        'key.pem': { text: key },
        'ca.pem': { text: authority.cert, isPublic: true },
      });
      made(box);
    }
  }

  /** Gives a box a new secret and certificate, and revokes the old one. Throws ConfigError for an unknown box. */
  async rotateBox(terminalCode: string): Promise<void> {
    const folder = this.boxFolder(terminalCode);
    const old = await readIfThere(join(folder, 'cert.pem'));
    if (old === undefined) {
      throw new ConfigError(`--rotate ${terminalCode}: there is no ${folder}`, 'make the box first, with --box');
    }
    const authority = await this.#authority();
    const secret = newSecret(this.#random, SECRET_BYTES);
    const { cert, key } = await this.#clientOf(authority, terminalCode);
    await this.#revoke(authority, old);
    await this.#tellOthers([{ terminalCode, secret }]);
    await this.#replace(`boxes/${terminalCode}`, {
      secret: { text: `${secret}\n` },
      'key.pem': { text: key },
      'cert.pem': { text: cert, isPublic: true },
    });
  }

  /** Gives gateway and broker new certificates for these hosts, and revokes the old ones. Throws ConfigError. */
  async rotateGateway(hosts: readonly string[]): Promise<void> {
    const authority = await this.#authority();
    const names = ['gateway/cert.pem', 'gateway/client-cert.pem'];
    const old = await Promise.all(names.map((name) => readIfThere(join(this.path, name))));
    const files = await this.#gatewayFiles(authority, hosts);
    await this.#revoke(authority, ...old.filter((it) => it !== undefined));
    await this.#replace('gateway', files);
  }

  /** Returns the hosts in the gateway's certificate; undefined before there is one. */
  async hosts(): Promise<string[] | undefined> {
    const cert = await readIfThere(join(this.path, 'gateway/cert.pem'));
    return cert === undefined ? undefined : hostsOf(new X509Certificate(cert));
  }

  async #gatewayFiles(authority: Credential, hosts: readonly string[]): Promise<Record<string, Content>> {
    const validity = validFor(this.#nowMs, SERVER_YEARS);
    const server = await issue(authority, hosts[0] ?? '', { kind: 'server', hosts }, validity);
    const client = await issue(authority, GATEWAY_LOGIN, { kind: 'client' }, validity);
    return {
      'cert.pem': { text: server.cert, isPublic: true },
      'key.pem': { text: server.key },
      'client-cert.pem': { text: client.cert, isPublic: true },
      'client-key.pem': { text: client.key },
    };
  }

  #clientOf(authority: Credential, terminalCode: string): Promise<Credential> {
    return issue(authority, terminalCode, { kind: 'client' }, validFor(this.#nowMs, CLIENT_YEARS));
  }

  async #tellOthers(boxes: readonly BoxEntry[]): Promise<void> {
    const lines = (lineOf: (name: string, password: string) => string) =>
      boxes.map(({ terminalCode, secret }) => lineOf(terminalCode, loginOf(secret)));
    await this.#change('gateway/gateway.yaml', (text) => withBoxes(text, boxes, 'gateway/gateway.yaml'));
    await this.#change('mosquitto/passwords', (text) => withLines(text, lines(mosquittoPassword)));
    await this.#change('emqx/users.csv', (text) => withLines(text, lines(emqxUser)));
    const logins = Object.fromEntries(boxes.map(({ terminalCode, secret }) => [terminalCode, loginOf(secret)]));
    const file = 'rabbitmq/definitions.json';
    await this.#change(file, (text) => withRabbitmqUsers(text, logins, file));
    await this.#change('nats/users.conf', (text) => withNatsUsers(text, logins));
  }

  async #revoke(authority: Credential, ...certs: string[]): Promise<void> {
    const before = await readIfThere(join(this.path, 'ca.crl'));
    const text = await revoke(authority, before, certs, this.#nowMs);
    await replaceFile(join(this.path, 'ca.crl'), { text, isPublic: true });
  }

  /** Skips a file that a person has deleted. */
  async #change(name: string, change: (text: string) => string): Promise<void> {
    const path = join(this.path, name);
    const text = await readIfThere(path);
    if (text !== undefined) await replaceFile(path, { text: change(text) });
  }

  async #replace(folder: string, files: Readonly<Record<string, Content>>): Promise<void> {
    for (const [name, content] of Object.entries(files)) await replaceFile(join(this.path, folder, name), content);
  }

  async #authority(): Promise<Credential> {
    const cert = await readIfThere(join(this.path, 'ca.pem'));
    const key = await readIfThere(join(this.path, 'ca-key.pem'));
    if (cert !== undefined && key !== undefined) return { cert, key };
    const fix =
      'put ca.pem and ca-key.pem back, or start again in another folder: boxes trust only the authority that they know';
    throw new ConfigError(`${this.path} has no certificate authority`, fix);
  }
}

function isFor(certificate: X509Certificate, host: string): boolean {
  const found = isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host);
  return found !== undefined;
}

function hostsOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName.split(', ').map((name) => name.replace(/^[^:]+:/, ''));
}
