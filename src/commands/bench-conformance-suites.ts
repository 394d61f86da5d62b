import { join } from 'node:path';
import { BoxClient } from '../bench/clients/box.ts';
import { screenProbe } from '../bench/probes.ts';
import type { Transport } from '../bench/targets/identities.ts';
import { realTime } from '../bench/test-time.ts';
import { BOX_CHECKS } from '../conformance/box/checks/all.ts';
import { openEmulatedBox } from '../conformance/box/emulated-box.ts';
import { boxLacks } from '../conformance/box/subject.ts';
import { BOX_NOT_JUDGED } from '../conformance/box/unjudged.ts';
import { type CallbackAuth, type CallbackListener, startListener } from '../conformance/service/callback-listener.ts';
import { SERVICE_CHECKS } from '../conformance/service/checks/all.ts';
import { openEmulatedService, uniqueOrders } from '../conformance/service/emulated-service.ts';
import { type ServiceAccess, ServiceSubject } from '../conformance/service/subject.ts';
import { SERVICE_NOT_JUDGED } from '../conformance/service/unjudged.ts';
import { createSuite, type JudgeTarget, type Suite } from '../conformance/suite.ts';
import { selectNotJudged } from '../conformance/unjudged.ts';
import { systemClock } from '../lib/clock.ts';
import { ConfigError } from '../lib/errors.ts';
import { systemRandom } from '../lib/random.ts';
import { seededRandom } from '../lib/seeded.ts';
import { webhookKey } from '../protocol/webhook.ts';
import { anyAuthority, facesOf } from './bench-conformance-tls.ts';
import { emulatedStarter } from './bench-emulated.ts';
import { noLog } from './bench-target.ts';
import { fileLog } from './daemon.ts';
import { boxTokenOf, secretFrom } from './secrets.ts';

/** What a person gives about a service that is judged; files hold secrets. */
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
  boxTokenFile?: string;
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
  report?: string;
}

const LOOPBACK = '127.0.0.1';

type IsWanted = (clause: string) => boolean;

/** Our own gateway, in this process and in time that is skipped. */
export function ownService({ report }: ServiceOptionsGiven, seed: number, isWanted: IsWanted): JudgeTarget {
  const checks = SERVICE_CHECKS.filter(({ clause }) => isWanted(clause));
  const target = 'our own gateway';
  return {
    target,
    size: checks.length,
    unjudged: selectNotJudged(SERVICE_NOT_JUDGED, isWanted),
    open: async () => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ transport: 'http', probe: screenProbe, random, log: logOf(report) });
      const { subject, close } = await openEmulatedService(starter, random);
      return serviceSuite(checks, subject, close);
    },
  };
}

/** Why a run that judges neither service nor box of others cannot have been meant; undefined when it can. */
export function strayOption(given: ServiceOptionsGiven): string | undefined {
  const { username, passwordFile, account, boxCode, callbackListen } = given;
  const stray = {
    username,
    'password-file': passwordFile,
    account,
    'box-code': boxCode,
    'callback-listen': callbackListen,
  };
  const name = Object.entries(stray).find(([, value]) => value !== undefined)?.[0];
  return name === undefined ? undefined : `--${name} belongs to --service`;
}

/** Our own agent, likewise. */
export function ownBox(
  { report }: ServiceOptionsGiven,
  transport: Transport,
  seed: number,
  isWanted: IsWanted,
): JudgeTarget {
  const other = transport === 'mqtt' ? 'http' : 'mqtt';
  const checks = BOX_CHECKS.filter(({ clause, needs = [] }) => isWanted(clause) && !needs.includes(other));
  const target = `our own agent over ${transport.toUpperCase()}`;
  const judged = new Set(checks.map(({ clause }) => clause));
  const others = BOX_CHECKS.map(({ clause }) => clause).filter((clause) => isWanted(clause) && !judged.has(clause));
  const elsewhere = { clauses: [...new Set(others)], why: `what a box does over ${other.toUpperCase()}` };
  return {
    target,
    size: checks.length,
    unjudged: selectNotJudged([elsewhere, ...BOX_NOT_JUDGED], isWanted),
    open: async (signal) => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ transport, probe: screenProbe, random, log: logOf(report) });
      const faces = await facesOf(await anyAuthority(), LOOPBACK);
      const subject = await openEmulatedBox(starter, { transport, probe: screenProbe, random, tls: faces, signal });
      const close = () => subject.controls.close();
      return createSuite(checks, {
        subject,
        time: subject.time,
        lacks: (need) => boxLacks(subject, need, true),
        close,
      });
    },
  };
}

/** A service anywhere. Throws ConfigError that names the option. */
export function serviceAt(given: ServiceOptionsGiven, isWanted: IsWanted): JudgeTarget {
  const checks = SERVICE_CHECKS.filter(({ clause }) => isWanted(clause));
  const listen = given.callbackListen === undefined ? undefined : hostAndPort(given.callbackListen);
  const options = { ...partnersOf(given), ...boxesOf(given), ...callbacksOf(given) };
  const target = options.access.baseUrl;
  return {
    target,
    size: checks.length,
    unjudged: selectNotJudged(SERVICE_NOT_JUDGED, isWanted),
    open: async () => {
      const listener = listen && (await startListener(listen, systemClock, options.callbackAuth));
      const subject = new ServiceSubject({
        ...options,
        ...uniqueOrders(systemRandom),
        time: realTime,
        listener,
        slow: given.slow === true,
        guessPasswords: given.guessPasswords === true,
      });
      tellListener(listener);
      return serviceSuite(checks, subject, async () => listener?.close());
    },
  };
}

function serviceSuite(checks: typeof SERVICE_CHECKS, subject: ServiceSubject, close: () => Promise<void>): Suite {
  const { time, redactor: masks } = subject;
  const lacks = subject.lacks.bind(subject);
  return createSuite(checks, { subject, time, lacks, masked: (text) => masks.text(text), close });
}

function partnersOf(given: ServiceOptionsGiven) {
  const access = accessOf(given);
  const { sandbox, secondAccount, secondBank = given.bank } = given;
  const account = {
    bankAccount: needed('--account', given.account),
    bankCode: needed('--bank', given.bank),
    userBankName: needed('--holder', given.holder),
  };
  const outside = sandbox ? undefined : access;
  return { access, account, sandbox, outside, second: secondOf(given, access), secondAccount, secondBank };
}

function boxesOf(given: ServiceOptionsGiven) {
  const { boxCode, serial, confirm, boxPage, boxSecretFile, unlinkedBox } = given;
  if (confirm !== 'displayed' && confirm !== 'accepted') {
    throw new ConfigError(`--confirm ${confirm}: expected displayed or accepted`);
  }
  const boxSecret = fromFile('--box-secret-file', boxSecretFile);
  if (boxSecret !== undefined && (boxCode === undefined || serial === undefined)) {
    throw new ConfigError('--box-secret-file: expected --box-code and --serial beside it');
  }
  const named = { ...(boxCode && { terminalCode: boxCode }), ...(serial && { serialNumber: serial }) };
  const box = boxCode === undefined && serial === undefined ? undefined : named;
  const boxOn = boxSecret === undefined ? box : undefined;
  const nobody = { terminalCode: '', serialNumber: '' };
  const page =
    boxPage === undefined ? undefined : new BoxClient(urlOf('--box-page', boxPage), nobody, boxTokenOf(given));
  const seeQr = page && (async () => (await screenProbe.capture(page))?.qr);
  return { box, boxOn, seeQr, boxSecret, confirm, unlinkedBox } as const;
}

function callbacksOf({ callbackAuthFile, callbackSigningSecretFile }: ServiceOptionsGiven) {
  const authText = fromFile('--callback-auth-file', callbackAuthFile);
  const signingSecret = fromFile('--callback-signing-secret-file', callbackSigningSecretFile);
  if (signingSecret !== undefined && webhookKey(signingSecret) === undefined) {
    throw new ConfigError('--callback-signing-secret-file: expected whsec_ and 24 to 64 random bytes in base64');
  }
  return { callbackAuth: authText === undefined ? undefined : authOf(authText), signingSecret };
}

function fromFile(option: string, file: string | undefined): string | undefined {
  return file === undefined ? undefined : secretFrom(option, file);
}

function accessOf(given: ServiceOptionsGiven): ServiceAccess {
  const baseUrl = urlOf('--service', given.service ?? '').replace(/\/+$/, '');
  const username = needed('--username', given.username);
  const file = given.passwordFile;
  const password = file === undefined ? process.env.PAYBOX_PASSWORD : secretFrom('--password-file', file);
  if (!password)
    throw new ConfigError('--password-file is needed: a file that holds the password (or PAYBOX_PASSWORD)');
  return { baseUrl, username, password };
}

function secondOf({ secondUsername, secondPasswordFile }: ServiceOptionsGiven, { baseUrl }: ServiceAccess) {
  if (secondUsername === undefined && secondPasswordFile === undefined) return undefined;
  const username = needed('--second-username', secondUsername);
  const file = needed('--second-password-file', secondPasswordFile);
  return { baseUrl, username, password: secretFrom('--second-password-file', file) };
}

function needed(option: string, value: string | undefined): string {
  if (value !== undefined && value !== '') return value;
  throw new ConfigError(`${option} is needed to judge the service`, 'see `paybox bench run conformance --help`');
}

function urlOf(option: string, text: string): string {
  const isHttp = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isHttp && new URL(text).username === '') return text;
  const example = option === '--service' ? 'https://dev.example.com/vqr' : 'http://127.0.0.1:8810';
  throw new ConfigError(`${option} ${text}: expected an address as ${example}, without a user name in it`);
}

function hostAndPort(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && port <= 65_535) return { host, port };
  throw new ConfigError(`--callback-listen ${text}: expected an address of this machine and a port, as 0.0.0.0:8900`);
}

/** `none`, `bearer:TOKEN` or `token:USERNAME:PASSWORD`. */
function authOf(text: string): CallbackAuth {
  const [, token] = /^bearer:(.+)$/.exec(text) ?? [];
  const [, username, password] = /^token:([^:]+):(.+)$/.exec(text) ?? [];
  if (text === 'none') return { kind: 'none' };
  if (token !== undefined) return { kind: 'bearer', token };
  if (username !== undefined && password !== undefined) return { kind: 'token', username, password };
  throw new ConfigError('--callback-auth-file: expected none, bearer:TOKEN or token:USERNAME:PASSWORD in it');
}

function tellListener(listener: CallbackListener | undefined): void {
  if (listener === undefined) return;
  process.stderr.write(`The partner's endpoint is ${listener.url}, its token endpoint ${listener.tokenUrl}\n`);
}

function logOf(report: string | undefined) {
  return report === undefined ? noLog() : fileLog(join(report, 'bench.log'));
}
