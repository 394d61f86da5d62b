import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { AgentConfig } from '../agent/config.ts';
import { certificateFix, connectionTls, type GuardedLink } from '../agent/transports/tls.ts';
import { systemClock, withDeadline } from '../lib/clock.ts';
import { MissingPeerError, reasonOf, systemCodeOf } from '../lib/errors.ts';
import { openHttp } from '../lib/http-client.ts';
import { systemRandom } from '../lib/random.ts';
import { isExposed } from '../lib/tls.ts';
import { decodePresence } from '../protocol/codec.ts';
import { BOX_PATHS, BOX_SESSION_HEADER } from '../protocol/http-api.ts';
import { loginOf } from '../protocol/keys.ts';
import { boxTopic, GATEWAY_PRESENCE_TOPIC } from '../protocol/topics.ts';
import { type Finding, failed, well } from './findings.ts';
import { gatewayFinding, portOf } from './machine.ts';

const ANSWER_TIMEOUT_MS = 8_000;
/** A broker sends what it has retained right after it has granted. */
const PRESENCE_TIMEOUT_MS = 2_000;
const DAY_MS = 86_400_000;
const SOON_DAYS = 30;
const RENEW_FIX = 'make a new one in time: paybox provision --rotate';

/**
 * Whether the box gets through to its gateway, from the name of the host to the login. A login says no hello, so it takes
 * nothing from an agent that runs. `secret` is undefined for a box that has yet to enrol.
 */
export async function linkFindings(config: AgentConfig, secret: string | undefined): Promise<Finding[]> {
  const { link, enrolment } = config;
  const findings = await reachFindings('gateway', link);
  const reached = !findings.some((it) => it.result === 'failed');
  if (reached && secret !== undefined) findings.push(await loginFinding(config, secret));
  if (secret !== undefined || enrolment === undefined) return findings;
  if (enrolment.url !== link.url) findings.push(...(await reachFindings('enrolment', enrolment)));
  if (!findings.some((it) => it.result === 'failed')) findings.push(await healthFinding(enrolment));
  return findings;
}

async function reachFindings(check: string, link: GuardedLink): Promise<Finding[]> {
  const { hostname } = new URL(link.url);
  const named = await nameFinding(check, hostname.replace(/^\[|\]$/g, ''));
  if (named?.result === 'failed') return [named];
  const listens = await gatewayFinding(link.url, check);
  const findings = named === undefined ? [listens] : [named, listens];
  if (listens.result === 'failed') return findings;
  if (/^(https|mqtts|wss):/.test(link.url)) return [...findings, ...(await certificateFindings(check, link))];
  if (!isExposed(link.url)) return findings;
  const found = 'no TLS: anyone on the way can read and change what is said';
  return [...findings, { check: `${check} TLS`, result: 'warning', found, fix: 'use https:// or mqtts://' }];
}

/** Undefined for an address that needs no name service. */
async function nameFinding(what: string, host: string): Promise<Finding | undefined> {
  if (isIP(host) !== 0) return undefined;
  const check = `${what} DNS`;
  const fix = 'check the name, and that the network gives a name server: resolvectl status, or /etc/resolv.conf';
  const answer = await withDeadline(systemClock, ANSWER_TIMEOUT_MS, lookup(host)).catch((error: unknown) => error);
  if (answer === undefined) return failed(check, new Error(`${host}: no answer within ${ANSWER_TIMEOUT_MS} ms`), fix);
  if (answer instanceof Error) return failed(check, new Error(`${host}: ${systemCodeOf(answer)}`), fix);
  return well(check, `${host} is ${(answer as { address: string }).address}`);
}

async function certificateFindings(check: string, link: GuardedLink): Promise<Finding[]> {
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
    return datesFinding(check, new X509Certificate(await readFile(file)), file);
  } catch (error) {
    return failed(check, new Error(`${file}: ${reasonOf(error)}`), 'name a PEM file that this user may read');
  }
}

/** Until when a certificate holds. */
function datesFinding(check: string, { validFromDate, validToDate }: X509Certificate, what: string): Finding {
  const nowMs = systemClock.wallMs();
  const day = validToDate.toISOString().slice(0, 10);
  const daysLeft = Math.floor((validToDate.getTime() - nowMs) / DAY_MS);
  if (daysLeft < 0) return failed(check, new Error(`${what} has run out on ${day}`), `check the clock; ${RENEW_FIX}`);
  if (validFromDate.getTime() > nowMs) {
    const from = validFromDate.toISOString().slice(0, 10);
    return failed(check, new Error(`${what} holds only from ${from} on`), 'set the clock of this machine');
  }
  const found = `${what} holds until ${day}, ${daysLeft} days`;
  return daysLeft < SOON_DAYS ? { check, result: 'warning', found, fix: RENEW_FIX } : well(check, found);
}

/** What the other side shows of itself, and whether that is believed. */
async function peerFinding(check: string, link: GuardedLink): Promise<Finding> {
  const url = new URL(link.url);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const fix = 'check link.tls';
  try {
    const named = isIP(host) === 0 ? { servername: host } : {};
    const tls = { ...named, ...connectionTls(link) };
    // Looked at in any case: a certificate that is refused is still to be told of.
    const socket = connectTls({ ...tls, host, port: portOf(url), rejectUnauthorized: false });
    const shaken = new Promise<true>((resolve, reject) => {
      socket.once('secureConnect', () => resolve(true));
      socket.once('error', reject);
      socket.once('close', () => reject(new Error('the connection was ended')));
    });
    try {
      const done = await withDeadline(systemClock, ANSWER_TIMEOUT_MS, shaken);
      if (done === undefined) throw new Error(`no TLS within ${ANSWER_TIMEOUT_MS} ms`);
      const certificate = socket.getPeerX509Certificate();
      if (certificate === undefined) throw new Error('the other side shows no certificate');
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
  const { terminalCode } = box;
  const check = 'login';
  const fix = 'check box.terminalCode and box.secret against the gateway';
  try {
    const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
    const login = { username: String(link.username ?? terminalCode), password: loginOf(secret) };
    if (link.transport === 'mqtt') return well(check, await loginAtBroker(link, terminalCode, login, signal));
    return well(check, await loginAtGateway(link, login, signal));
  } catch (error) {
    return failed(check, error, fix);
  }
}

interface Login {
  username: string;
  password: string;
}

/** Reads what the box reads, under a name of its own; says nothing. */
async function loginAtBroker(link: GuardedLink, terminalCode: string, login: Login, signal: AbortSignal) {
  const { connectAsync } = await import('mqtt');
  const tls = /^(mqtts|wss):/.test(link.url) ? connectionTls(link) : undefined;
  const client = await connectAsync(
    link.url,
    {
      protocolVersion: 4,
      clean: true,
      clientId: `${terminalCode}-${systemRandom.uuid().slice(0, 8)}`,
      ...login,
      connectTimeout: ANSWER_TIMEOUT_MS,
      reconnectPeriod: 0,
      ...(tls && { ...tls, wsOptions: tls }),
    },
    false,
  );
  try {
    const presence = new Promise<boolean>((resolve) => {
      client.on('message', (topic, payload) => {
        const decoded = topic === GATEWAY_PRESENCE_TOPIC ? decodePresence(payload) : undefined;
        if (decoded?.ok) resolve(decoded.value.online);
      });
    });
    const topics = [GATEWAY_PRESENCE_TOPIC, boxTopic(terminalCode, 'down')];
    const grants = await client.subscribeAsync(topics, { qos: 1 });
    signal.throwIfAborted();
    if (grants.some(({ qos }) => qos > 2)) {
      throw new Error(`the broker takes the login, and does not let ${terminalCode} read ${topics.join(', ')}`);
    }
    if (await withDeadline(systemClock, PRESENCE_TIMEOUT_MS, presence))
      return 'the broker takes it, and the gateway is there';
    const fix = 'start the gateway, or correct the broker address of one of the two';
    throw new MissingPeerError('the broker takes the login, and the gateway is not there', fix);
  } finally {
    client.end(true);
  }
}

/** Posts a sign of life of a stream that is not there, which is answered by whether the login is good. */
async function loginAtGateway(link: GuardedLink, { username, password }: Login, signal: AbortSignal): Promise<string> {
  const credentials = Buffer.from(`${username}:${password}`, 'utf8').toString('base64');
  const headers = { authorization: `Basic ${credentials}`, [BOX_SESSION_HEADER]: systemRandom.uuid() };
  const status = await answerTo(link, BOX_PATHS.messages, { method: 'POST', headers, signal });
  if (status === 409 || status === 204) return 'the gateway takes it';
  throw new Error(status === 401 ? 'the gateway does not take it' : `the gateway answers ${status} to it`);
}

async function healthFinding(at: GuardedLink): Promise<Finding> {
  const check = 'gateway health';
  const fix = 'look into the log of the gateway, or correct the address';
  try {
    const status = await answerTo(at, '/healthz', { method: 'GET', signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
    return status === 200 ? well(check, 'it is well') : failed(check, new Error(`it answers ${status}`), fix);
  } catch (error) {
    return failed(check, error, certificateFix(error) ?? fix);
  }
}

async function answerTo(
  link: GuardedLink,
  path: string,
  options: { method: string; headers?: Record<string, string>; signal: AbortSignal },
): Promise<number | undefined> {
  const url = new URL(path, link.url);
  const tls = url.protocol === 'https:' ? connectionTls(link) : {};
  const response = await openHttp(url, { ...tls, ...options, agent: false });
  response.destroy();
  return response.statusCode;
}
