import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { readFileBytes } from '../../lib/files.ts';
import { openHttp } from '../../lib/http-client.ts';
import { systemRandom } from '../../lib/random.ts';
import { HTTP_SCHEMES, isExposed, isTlsUrl, portOfUrl } from '../../lib/tls.ts';
import type { AgentConfig } from '../agent/config.ts';
import type { GatewayAddress } from '../agent/contract.ts';
import { LINK_SCHEMES, TRANSPORTS } from '../agent/transports/registry.ts';
import { certificateFix, connectionTls } from '../agent/transports/tls.ts';
import { type Finding, failed, well } from './findings.ts';
import { gatewayFinding } from './machine.ts';

const ANSWER_TIMEOUT_MS = 8_000;
const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
const RENEW_FIX = 'make a new one in time: paybox provision --rotate';

/**
 * Checks each step from the host name to the login at the gateway. The login sends no hello, so a running agent keeps
 * its session. `secret` is undefined for a box that has not enrolled.
 */
export async function linkFindings(config: AgentConfig, secret: string | undefined): Promise<Finding[]> {
  const { link, enrolment } = config;
  const findings = await reachFindings('gateway', link, 'link.url');
  const reached = !findings.some((it) => it.result === 'failed');
  if (reached && secret !== undefined) findings.push(await loginFinding(config, secret));
  if (secret !== undefined || enrolment === undefined) return findings;
  if (enrolment.url !== link.url) findings.push(...(await reachFindings('enrolment', enrolment, 'enrolment.url')));
  if (!findings.some((it) => it.result === 'failed')) findings.push(await healthFinding(enrolment));
  return findings;
}

/** Checks each step from the host name to the certificate of an address. `option` names it in the configuration. */
export async function reachFindings(check: string, link: GatewayAddress, option: string): Promise<Finding[]> {
  const { hostname } = new URL(link.url);
  const named = await nameFinding(check, hostname.replace(/^\[|\]$/g, ''));
  if (named?.result === 'failed') return [named];
  const listens = await gatewayFinding(link.url, check, option);
  const findings = named === undefined ? [listens] : [named, listens];
  if (listens.result === 'failed') return findings;
  if (isTlsUrl(link.url, LINK_SCHEMES)) return [...findings, ...(await certificateFindings(check, link))];
  if (!isExposed(link.url, LINK_SCHEMES)) return findings;
  const found = 'no TLS: others on the network can read and change messages';
  return [...findings, { check: `${check} TLS`, result: 'warning', found, fix: 'use an address with TLS' }];
}

/** Checks the host name. Returns undefined for an IP address. */
async function nameFinding(what: string, host: string): Promise<Finding | undefined> {
  if (isIP(host) !== 0) return undefined;
  const check = `${what} DNS`;
  const fix = 'check the name, and that the network provides a name server: resolvectl status, or /etc/resolv.conf';
  const answer = await withDeadline(systemClock, ANSWER_TIMEOUT_MS, lookup(host)).catch((error: unknown) => error);
  if (answer === undefined) return failed(check, new Error(`${host}: no answer within ${ANSWER_TIMEOUT_MS} ms`), fix);
  if (answer instanceof Error) return failed(check, new Error(`${host}: ${systemCodeOf(answer)}`), fix);
  return well(check, `${host} is ${(answer as { address: string }).address}`);
}

async function certificateFindings(check: string, link: GatewayAddress): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const name of ['ca', 'cert'] as const) {
    const file = link.tls?.[name];
    if (file !== undefined) findings.push(await fileFinding(`${check} ${name} file`, file));
  }
  if (findings.some((it) => it.result === 'failed')) return findings;
  return [...findings, await peerFinding(`${check} certificate`, link)];
}

async function fileFinding(check: string, file: string): Promise<Finding> {
  try {
    return datesFinding(check, new X509Certificate(await readFileBytes(file)), file);
  } catch (error) {
    return failed(check, new Error(`${file}: ${reasonOf(error)}`), 'name a PEM file that this user may read');
  }
}

/** Checks the validity dates of a certificate. */
export function datesFinding(check: string, { validFromDate, validToDate }: X509Certificate, what: string): Finding {
  const nowMs = systemClock.wallMs();
  const day = validToDate.toISOString().slice(0, 10);
  const daysLeft = Math.floor((validToDate.getTime() - nowMs) / DAY_MS);
  if (daysLeft < 0) return failed(check, new Error(`${what} expired on ${day}`), `check the clock; ${RENEW_FIX}`);
  if (validFromDate.getTime() > nowMs) {
    const from = validFromDate.toISOString().slice(0, 10);
    return failed(check, new Error(`${what} is valid only from ${from} on`), 'set the clock of this machine');
  }
  const found = `${what} is valid until ${day}, ${daysLeft} days`;
  return daysLeft < SOON_DAYS ? { check, result: 'warning', found, fix: RENEW_FIX } : well(check, found);
}

/** Checks the TLS certificate of the peer. */
async function peerFinding(check: string, link: GatewayAddress): Promise<Finding> {
  const url = new URL(link.url);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const fix = 'check link.tls';
  try {
    const named = isIP(host) === 0 ? { servername: host } : {};
    const tls = { ...named, ...connectionTls(link) };
    // The connection is not verified, so that the doctor can report on a refused certificate too.
    const socket = connectTls({ ...tls, host, port: portOfUrl(url, LINK_SCHEMES), rejectUnauthorized: false });
    const shaken = new Promise<true>((resolve, reject) => {
      socket.once('secureConnect', () => resolve(true));
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection was closed')));
    });
    try {
      const done = await withDeadline(systemClock, ANSWER_TIMEOUT_MS, shaken);
      if (done === undefined) throw new Error(`no TLS within ${ANSWER_TIMEOUT_MS} ms`);
      const certificate = socket.getPeerX509Certificate();
      if (certificate === undefined) throw new Error('the peer sent no certificate');
      if (socket.authorized) return datesFinding(check, certificate, 'it');
      const code = String(socket.authorizationError);
      const refused = Object.assign(new Error(code), { code });
      const { subject, validTo } = certificate;
      const what = `${code}: ${subject?.replaceAll('\n', ', ')}, until ${validTo}`;
      return failed(check, new Error(what), certificateFix(refused) ?? fix);
    } finally {
      socket.on('error', () => undefined);
      socket.destroy();
    }
  } catch (error) {
    return failed(check, error, certificateFix(error) ?? fix);
  }
}

async function loginFinding({ box, link }: AgentConfig, secret: string): Promise<Finding> {
  const check = 'login';
  const transport = TRANSPORTS.get(link.transport);
  const own = transport?.ownLogin === undefined ? 'box.terminalCode and box.secret' : 'the login in link';
  const fix = `check ${own} against the gateway`;
  try {
    const io = { clock: systemClock, identity: { ...box, secret }, sessionId: systemRandom.uuid() };
    const options = { ...link, connectTimeoutMs: ANSWER_TIMEOUT_MS };
    const found = await transport?.checkLogin(options, io, AbortSignal.timeout(ANSWER_TIMEOUT_MS));
    return well(check, found ?? '');
  } catch (error) {
    return failed(check, error, fix);
  }
}

async function healthFinding(at: GatewayAddress): Promise<Finding> {
  const check = 'gateway health';
  const fix = 'see the log of the gateway, or correct the address';
  try {
    const tls = isTlsUrl(at.url, HTTP_SCHEMES) ? connectionTls(at) : {};
    const options = { ...tls, agent: false, signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) } as const;
    const { statusCode: status } = (await openHttp(new URL('/healthz', at.url), options)).destroy();
    return status === 200 ? well(check, 'it is well') : failed(check, new Error(`it answers ${status}`), fix);
  } catch (error) {
    return failed(check, error, certificateFix(error) ?? fix);
  }
}
