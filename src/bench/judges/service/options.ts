import { ConfigError } from '../../../lib/errors.ts';
import { PATHS } from '../../../protocol/http-api.ts';
import { webhookKey } from '../../../protocol/webhook.ts';
import { BoxClient } from '../../engine/clients/box.ts';
import { screenProbe } from '../../engine/probes.ts';
import { type CallbackAuth, ELSEWHERE_PATH } from './callback-listener.ts';
import type { ServiceAccess } from './subject.ts';

/** Options of the command line about a service. The named files contain secrets. */
export interface ServiceOptionsGiven {
  service?: string;
  username?: string;
  passwordFile?: string;
  account?: string;
  bank?: string;
  holder?: string;
  boxCode?: string;
  serial?: string;
  boxSecretFile?: string;
  boxPage?: string;
  confirm: string;
  unlinkedBox?: string;
  secondUsername?: string;
  secondPasswordFile?: string;
  secondAccount?: string;
  secondBank?: string;
  /** False with `--no-sandbox`. */
  sandbox: boolean;
  callbackListen?: string;
  callbackAuthFile?: string;
  callbackSigningSecretFile?: string;
  slow?: boolean;
  guessPasswords?: boolean;
}

interface Secrets {
  /** Reads a secret. Throws ConfigError that names the option. */
  secretFrom(option: string, file: string): string;
  boxToken: string | undefined;
}

/** Returns everything that is known of the judged service. Throws ConfigError that names the option. */
export function serviceOptionsOf(given: ServiceOptionsGiven, secrets: Secrets) {
  const read = (option: string, file: string | undefined) =>
    file === undefined ? undefined : secrets.secretFrom(option, file);
  return {
    listen: given.callbackListen === undefined ? undefined : endpointOf(given.callbackListen),
    ...partnersOf(given, read),
    ...boxesOf(given, read, secrets.boxToken),
    ...callbacksOf(given, read),
    slow: given.slow === true,
    guessPasswords: given.guessPasswords === true,
  };
}

type Read = (option: string, file: string | undefined) => string | undefined;

function partnersOf(given: ServiceOptionsGiven, read: Read) {
  const access: ServiceAccess = {
    baseUrl: urlOf('--service', given.service ?? '').replace(/\/+$/, ''),
    username: needed('--username', given.username),
    password:
      (given.passwordFile === undefined ? process.env.PAYBOX_PASSWORD : read('--password-file', given.passwordFile)) ??
      '',
  };
  if (access.password === '')
    throw new ConfigError('--password-file is needed: a file that holds the password (or PAYBOX_PASSWORD)');
  const { sandbox, secondAccount, secondBank = given.bank } = given;
  const account = {
    bankAccount: needed('--account', given.account),
    bankCode: needed('--bank', given.bank),
    userBankName: needed('--holder', given.holder),
  };
  const outside = sandbox ? undefined : access;
  return { access, account, sandbox, outside, second: secondOf(given, access, read), secondAccount, secondBank };
}

function secondOf({ secondUsername, secondPasswordFile }: ServiceOptionsGiven, { baseUrl }: ServiceAccess, read: Read) {
  if (secondUsername === undefined && secondPasswordFile === undefined) return undefined;
  const username = needed('--second-username', secondUsername);
  const password = read('--second-password-file', needed('--second-password-file', secondPasswordFile)) ?? '';
  return { baseUrl, username, password };
}

function boxesOf(given: ServiceOptionsGiven, read: Read, boxToken: string | undefined) {
  const { boxCode, serial, confirm, boxPage, boxSecretFile, unlinkedBox } = given;
  if (confirm !== 'displayed' && confirm !== 'accepted') {
    throw new ConfigError(`--confirm ${confirm}: expected displayed or accepted`);
  }
  const boxSecret = read('--box-secret-file', boxSecretFile);
  if (boxSecret !== undefined && (boxCode === undefined || serial === undefined)) {
    throw new ConfigError('--box-secret-file: expected --box-code and --serial beside it');
  }
  const named = { ...(boxCode && { terminalCode: boxCode }), ...(serial && { serialNumber: serial }) };
  const box = boxCode === undefined && serial === undefined ? undefined : named;
  const boxOn = boxSecret === undefined ? box : undefined;
  const unknown = { terminalCode: '', serialNumber: '' };
  const page = boxPage === undefined ? undefined : new BoxClient(urlOf('--box-page', boxPage), unknown, boxToken);
  const probe = screenProbe();
  const seeQr = page && (async () => (await probe.capture(page))?.qr);
  return { box, boxOn, seeQr, boxSecret, confirm, unlinkedBox } as const;
}

function callbacksOf({ callbackAuthFile, callbackSigningSecretFile }: ServiceOptionsGiven, read: Read) {
  const authText = read('--callback-auth-file', callbackAuthFile);
  const signingSecret = read('--callback-signing-secret-file', callbackSigningSecretFile);
  if (signingSecret !== undefined && webhookKey(signingSecret) === undefined) {
    throw new ConfigError('--callback-signing-secret-file: expected whsec_ and 24 to 64 random bytes in base64');
  }
  return { callbackAuth: authText === undefined ? undefined : authOf(authText), signingSecret };
}

function needed(option: string, value: string | undefined): string {
  if (value !== undefined && value !== '') return value;
  throw new ConfigError(`${option} is needed to judge the service`, 'see `paybox judge service --help`');
}

function urlOf(option: string, text: string): string {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isHttp && new URL(text).username === '') return text;
  const example = option === '--service' ? 'https://dev.example.com/vqr' : 'http://127.0.0.1:8810';
  throw new ConfigError(`${option} ${text}: expected an address as ${example}, without a user name in it`);
}

/** Reads an address as `0.0.0.0:8900`, or with the path of the endpoint behind it. */
function endpointOf(text: string): { host: string; port: number; path?: string } {
  const [, bracketed, plain, digits, path] = /^(?:\[([^\]]+)\]|([^:/]+)):(\d{1,5})(\/[^\s?#]*)?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (path === PATHS.token || path === ELSEWHERE_PATH) {
    throw new ConfigError(`--callback-listen ${text}: the judge needs ${path} for itself, expected another path`);
  }
  if (host !== undefined && port <= 65_535) return { host, port, ...(path !== undefined && path !== '/' && { path }) };
  throw new ConfigError(
    `--callback-listen ${text}: expected an address of this machine and a port, as 0.0.0.0:8900, or with a path, as 0.0.0.0:8900/shop/paid`,
  );
}

/** Reads `none`, `bearer:TOKEN` or `token:USERNAME:PASSWORD`. */
function authOf(text: string): CallbackAuth {
  const [, token] = /^bearer:(.+)$/.exec(text) ?? [];
  const [, username, password] = /^token:([^:]+):(.+)$/.exec(text) ?? [];
  if (text === 'none') return { kind: 'none' };
  if (token !== undefined) return { kind: 'bearer', token };
  if (username !== undefined && password !== undefined) return { kind: 'token', username, password };
  throw new ConfigError('--callback-auth-file: expected none, bearer:TOKEN or token:USERNAME:PASSWORD in it');
}
