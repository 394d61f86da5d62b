import { accessSync, constants, existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { startGuardedPartnerServer } from '../../bench/engine/clients/partner-server.ts';
import { type Agent, startAgent } from '../../device/agent/agent.ts';
import { setupOf } from '../../device/agent/setup.ts';
import type { Frame } from '../../device/display/contract.ts';
import { encodePng } from '../../device/display/pixels/png.ts';
import type { BoxScreen } from '../../gateway/common/world.ts';
import type { CallbackAuth } from '../../gateway/config/callback-config.ts';
import { type Gateway, startGateway } from '../../gateway/gateway.ts';
import { thisBoot } from '../../lib/boot.ts';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { makeFolder } from '../../lib/folders.ts';
import { systemRandom } from '../../lib/random.ts';
import { endInOrder } from '../../lib/shutdown.ts';
import { isLoopbackHost } from '../../lib/tls.ts';
import { Closers, fileLog, forgetReadyFile, untilStopped, writeReadyFile } from '../shared/daemon.ts';
import { shareGlyphs } from '../shared/glyph-cache.ts';
import { remark, say } from '../shared/output.ts';
import { secretFrom } from '../shared/secrets.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { KEYS_HELP, takeTerminal } from '../shared/terminal.ts';
import { DEMO, demoAgentConfig, demoGatewayConfig, exposedAt } from './demo.ts';
import { LIVE_ACCOUNT, type LiveDemo, liveDemo } from './live-demo.ts';

export interface UpOptions {
  data?: string;
  host: string;
  httpPort: number;
  mqttPort: number;
  boxPort: number;
  callbackUrl?: string;
  callbackAuth: string;
  callbackAuthFile?: string;
  readyFile?: string;
  display?: string;
  transport?: string | undefined;
  open: boolean;
  liveDemo?: boolean;
  servicePort: number;
}

/** Time for gateway and box to answer; the box needs its first picture and its registration. */
const READY_TIMEOUT_MS = 30_000;
/** How long the gateway waits for the box's goodbye. */
const BOX_FIRST_MS = 500;
/** How long `paybox up` waits for the end of the partner and of a second gateway. */
const CLOSERS_MS = 200;

/** Runs `paybox up`: gateway, broker, one emulated box and a partner in one process, until a signal. */
export async function up(options: UpOptions): Promise<void> {
  shareGlyphs();
  const stop = new StopSignal();
  const startedMs = systemClock.monotonicMs();
  const auth = callbackAuth(howOf(options));
  const dataDir = dataFolder(options);
  if (options.readyFile !== undefined) await forgetReadyFile(options.readyFile);
  assertDifferent(options);
  const live = options.liveDemo === true ? liveDemo({ ...options, dataDir }, systemRandom) : undefined;
  const exposed = exposedAt(options.host, dataDir, systemRandom);
  const agentConfig = demoAgentConfig({
    ...options,
    exposed,
    dataDir,
    onTerminal: process.stdout.isTTY === true,
    box: live?.box,
  });
  await assertFree(options.httpPort, '--http-port', options.host);
  await assertFree(options.mqttPort, '--mqtt-port');
  await assertFree(options.boxPort, '--box-port', options.host);
  if (live !== undefined) await assertFree(options.servicePort, '--service-port');

  const logFile = join(dataDir, 'paybox.log');
  const closers = new Closers();
  const log = fileLog(logFile);
  const deps = { clock: systemClock, random: systemRandom, log };
  let box: Agent | undefined;
  const { output: terminal, keyboard } = takeTerminal(deps, (key) => box?.box.press(key));
  closers.add(async () => keyboard?.close());
  try {
    const callback =
      options.callbackUrl === undefined ? await bundledPartner(closers, deps) : { url: options.callbackUrl, auth };
    // The box redraws the terminal in place, so texts for people are printed before it starts.
    terminal?.write(`paybox: ${addresses(options, live)}\nCtrl-C ends all. ${KEYS_HELP}.\nThe log is ${logFile}\n`);
    const gatewayConfig = live?.shop ?? demoGatewayConfig({ ...options, exposed, dataDir, callback });
    if (live !== undefined) {
      await startGateway(live.service, { ...deps, log: log.with({ program: 'service' }) }).then(closers.adding);
    }
    const starting = [
      startGateway(gatewayConfig, {
        ...deps,
        log: log.with({ program: 'gateway' }),
        boxScreen: screenOf(options, () => box?.box.frame()),
      }).then(closers.adding),
      startAgent(setupOf(agentConfig), {
        ...deps,
        log: log.with({ program: 'agent' }),
        boot: thisBoot(systemClock),
        terminal,
        terminalInput: keyboard,
      }).then(closers.adding),
    ] as const;
    await Promise.allSettled(starting);
    const [gateway, agent] = await Promise.all(starting);
    box = agent;
    const isUp = await Promise.race([untilIdle(agent.box).then(() => true), stop.received.then(() => false)]);
    if (isUp) {
      if (options.readyFile !== undefined)
        await writeReadyFile(options.readyFile, readyContent(gateway, agent, options, live));
      const tookMs = Math.round(systemClock.monotonicMs() - startedMs);
      if (terminal === undefined) say(`paybox is ready in ${tookMs} ms: ${addresses(options, live)}`);
      if (options.open && process.stdout.isTTY) await openPage(agent.origin);
    }
    await untilStopped(stop, log, (withinMs) => {
      keyboard?.close();
      const boxClosed = agent.close(withinMs - CLOSERS_MS);
      // The box ends first, so that its goodbye reaches the gateway. Its display may take longer.
      const goodbye = () => withDeadline(systemClock, BOX_FIRST_MS, boxClosed);
      const both = { gateway: (gatewayMs: number) => gateway.close(gatewayMs), box: () => boxClosed };
      return endInOrder([{ goodbye }, both, { rest: () => closers.close() }], withinMs, deps);
    });
  } catch (error) {
    await closers.close();
    throw error;
  }
}

/**
 * Returns the folder of all state, and makes it if missing. Throws ConfigError for options that exclude each other, or
 * for a full disk.
 */
function dataFolder(options: UpOptions): string {
  if (options.liveDemo === true && options.callbackUrl !== undefined) {
    throw new ConfigError('--callback-url: expected without --live-demo, whose shop has no back end');
  }
  if (options.liveDemo === true && !isLoopbackHost(options.host)) {
    throw new ConfigError('--host: expected without --live-demo: a live gateway needs TLS beyond this machine');
  }
  const home = resolve(options.data ?? defaultDataDir());
  const dataDir = options.liveDemo === true ? join(home, 'live-demo') : home;
  try {
    makeFolder(dataDir, 0o700);
    accessSync(dataDir, constants.W_OK);
  } catch (error) {
    const fix = `name a folder that user ${process.getuid?.()} may write`;
    throw new ConfigError(`--data ${dataDir} cannot be written: ${reasonOf(error)}`, fix);
  }
  return dataDir;
}

function readyContent(
  { baseUrl, mqttUrl, origin }: Gateway,
  { origin: boxUrl }: Agent,
  { servicePort }: UpOptions,
  live: LiveDemo | undefined,
) {
  const { terminalCode, serialNumber } = DEMO.box;
  const { partner } = DEMO;
  const account = live === undefined ? DEMO.account : LIVE_ACCOUNT;
  const consoleUrl = `${origin}/`;
  const serviceUrl = live === undefined ? baseUrl : `http://127.0.0.1:${servicePort}/vqr`;
  const of = { partner, account, box: { terminalCode, serialNumber } };
  return { baseUrl, serviceUrl, mqttUrl, boxUrl, consoleUrl, ...of, ...(live && { adminTokenFile: live.tokenFile }) };
}

function screenOf({ boxPort }: UpOptions, frame: () => Frame | undefined): BoxScreen {
  const { terminalCode } = DEMO.box;
  const picture = () => {
    const shown = frame();
    return shown && encodePng(shown);
  };
  return { terminalCode, pageUrl: `http://127.0.0.1:${boxPort}/`, picture };
}

function addresses({ httpPort, boxPort, servicePort }: UpOptions, live: LiveDemo | undefined): string {
  const gateway = `http://127.0.0.1:${httpPort}`;
  const box = `box http://127.0.0.1:${boxPort}`;
  if (live !== undefined) {
    return `${box}  live shop ${gateway}/  public service http://127.0.0.1:${servicePort}/
Sell with: paybox sell --amount 50000 --gateway ${gateway} --admin-token-file ${live.tokenFile}
Pay with:  paybox pay --amount 50000 --content CODE --account ${LIVE_ACCOUNT.bankAccount} --gateway http://127.0.0.1:${servicePort}`;
  }
  return `${box}  console ${gateway}/  service ${gateway}/vqr`;
}

function defaultDataDir(): string {
  // Empty means unset (XDG Base Directory Specification).
  return join(process.env.XDG_STATE_HOME || join(process.env.HOME || userInfo().homedir, '.local', 'state'), 'paybox');
}

async function bundledPartner(closers: Closers, deps: Parameters<typeof startGateway>[1]) {
  const log = deps.log.with({ program: 'partner' });
  const partner = await startGuardedPartnerServer({
    ...deps,
    log,
    onPayment: ({ transactionid, amount, orderId }) =>
      log.info('callback-received', { transactionId: transactionid, amount, orderId }),
  }).then(closers.adding);
  const { url, tokenUrl, username, password, signingSecret } = partner;
  const auth = { kind: 'token' as const, url: tokenUrl, username, password };
  return { url, auth, signingSecret };
}

/** Settles once the box is registered and shows its idle screen, or an order that was restored after a restart. */
async function untilIdle(box: Awaited<ReturnType<typeof startAgent>>['box']): Promise<void> {
  const isReady = () => {
    const { state, online, display } = box.status();
    return online && display.ok && ['idle', 'showing', 'paid', 'expired'].includes(state) && box.frame() !== undefined;
  };
  const ready = Promise.withResolvers<true>();
  const check = () => {
    if (isReady()) ready.resolve(true);
  };
  const stop = box.onChange(check);
  check();
  const timeout = new AbortController();
  try {
    const late = systemClock.sleep(READY_TIMEOUT_MS, timeout.signal).then(() => false as const);
    if (await Promise.race([ready.promise, late])) return;
    const { state, display, link } = box.status();
    const reason = display.reason ?? link.reason ?? 'no reason known';
    throw new PayboxError('NOT_READY', `the box is still ${state} after ${READY_TIMEOUT_MS / 1000} s: ${reason}`, {
      severity: 'retryable',
      fix: 'see the log in the data folder',
    });
  } finally {
    stop();
    timeout.abort();
  }
}

/**
 * Returns the authorization of callbacks; checks their address too. Secrets come from files, because arguments are
 * visible in the process list.
 */
function howOf({ callbackUrl, callbackAuth, callbackAuthFile }: UpOptions): string {
  if (callbackUrl !== undefined && !/^https?:$/.test(URL.parse(callbackUrl)?.protocol ?? '')) {
    throw new ConfigError(`--callback-url ${callbackUrl}: expected an http:// or https:// address`);
  }
  if (callbackAuthFile === undefined && callbackAuth === 'none') return callbackAuth;
  const [, kind, file = ''] = /^(bearer|token)-file:(.+)$/.exec(callbackAuth) ?? [];
  if (callbackAuthFile === undefined && kind === undefined) {
    throw new ConfigError(
      '--callback-auth: expected none, bearer-file:FILE or token-file:FILE',
      'put the secret into a file: other users of this machine can read command lines',
    );
  }
  if (callbackUrl === undefined) throw new ConfigError('--callback-auth needs --callback-url');
  if (callbackAuthFile !== undefined) return secretFrom('--callback-auth-file', callbackAuthFile);
  return `${kind}:${secretFrom(`--callback-auth ${kind}-file:`, file)}`;
}

/** Parses `none`, `bearer:TOKEN` or `token:USERNAME:PASSWORD@TOKEN-URL`. */
function callbackAuth(how: string): CallbackAuth {
  if (how === 'none') return { kind: 'none' };
  const bearer = /^bearer:(.+)$/.exec(how)?.[1];
  if (bearer !== undefined) return { kind: 'bearer', token: bearer };
  const [, username, password, url] = /^token:([^:]+):(.+)@(https?:\/\/.+)$/.exec(how) ?? [];
  if (username !== undefined && password !== undefined && url !== undefined) {
    return { kind: 'token', username, password, url };
  }
  throw new ConfigError(
    how.startsWith('token:')
      ? '--callback-auth token-file:FILE: expected USERNAME:PASSWORD@TOKEN-URL in the file'
      : '--callback-auth-file: expected bearer:TOKEN or token:USERNAME:PASSWORD@TOKEN-URL in the file',
  );
}

function assertDifferent({ httpPort, mqttPort, boxPort, servicePort, liveDemo }: UpOptions): void {
  const ports = [httpPort, mqttPort, boxPort, ...(liveDemo === true ? [servicePort] : [])];
  if (new Set(ports).size === ports.length) return;
  throw new ConfigError('--http-port, --mqtt-port, --box-port and --service-port: expected different ports');
}

async function assertFree(port: number, option: string, host = '127.0.0.1'): Promise<void> {
  const probe = createServer();
  await new Promise<void>((done, fail) => {
    probe.once('error', (error) => {
      const isForbidden = systemCodeOf(error) === 'EACCES';
      const fix = isForbidden ? 'give one above 1023' : 'stop what uses it, or give another';
      fail(
        new ConfigError(`${option} ${port} is ${isForbidden ? 'for root only' : 'in use'}`, `${fix} with ${option}`),
      );
    });
    probe.listen(port, host, done);
  });
  await new Promise((done) => probe.close(done));
}

/** Opens a browser only if the machine has a screen. */
async function openPage(url: string): Promise<void> {
  const hasScreen = process.platform !== 'linux' || Boolean(process.env.DISPLAY ?? process.env.WAYLAND_DISPLAY);
  if (!hasScreen || existsSync('/.dockerenv')) return;
  const { default: open } = await import('open');
  const opened = await open(url);
  opened.on('error', () => remark(`open ${url} in a browser to see the box`));
}
