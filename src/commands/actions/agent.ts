import { userInfo } from 'node:os';
import { join } from 'node:path';
import { type Agent, startAgent } from '../../device/agent/agent.ts';
import { type AgentConfig, loadAgentConfig } from '../../device/agent/config.ts';
import { expectPlatform } from '../../device/agent/platform.ts';
import { setupOf } from '../../device/agent/setup.ts';
import { notifyServiceManager } from '../../device/agent/systemd.ts';
import type { AgentWorld } from '../../device/agent/world.ts';
import { thisBoot } from '../../lib/boot.ts';
import { systemClock } from '../../lib/clock.ts';
import { optimizeHotCode } from '../../lib/compiler.js';
import { stderrLog } from '../../lib/log.ts';
import { systemRandom } from '../../lib/random.ts';
import { type ServiceManager, serviceManager } from '../../lib/systemd.ts';
import { forgetReadyFile, untilStopped, writeReadyFile } from '../shared/daemon.ts';
import { StopSignal } from '../shared/stop-signal.ts';
import { takeTerminal } from '../shared/terminal.ts';

export interface AgentOptions {
  config: string;
  readyFile?: string;
  setupReport?: string;
}

/** Runs `paybox agent`, the box daemon, until a signal. */
export async function agent(options: AgentOptions): Promise<void> {
  const stop = new StopSignal();
  const log = stderrLog();
  const manager = serviceManager(process.env, process.pid, log);
  const isAlone = manager !== undefined || options.setupReport !== undefined;
  // This runs before the agent uses the terminal, so that a person can read the error.
  const known = isAlone ? undefined : await loadAgentConfig(options.config);
  if (known !== undefined) expectPlatform(known, options.config);
  if (options.readyFile !== undefined) await forgetReadyFile(options.readyFile);
  const io = { clock: systemClock, random: systemRandom, log, boot: thisBoot(systemClock) };
  let box: Agent | undefined;
  const { output, keyboard } = takeTerminal(io, (key) => box?.box.press(key));
  let optimize = () => {
    optimize = () => undefined;
    optimizeHotCode();
  };
  const deps = { ...io, terminal: output, terminalInput: keyboard, beforePainting: () => optimize() };
  const config = known ?? (await waitedFor(options, deps, manager, stop));
  const running = await stop.started(startAgent(setupOf(config), deps)).catch((error: unknown) => {
    keyboard?.close();
    throw error;
  });
  box = running;
  if (options.readyFile !== undefined) await writeReadyFile(options.readyFile, { boxUrl: running.origin });
  log.info('ready', { box: running.origin });
  const stopping = new AbortController();
  if (manager !== undefined) void notifyServiceManager(manager, running, systemClock, stopping.signal);
  await untilStopped(stop, log, (withinMs) => {
    stopping.abort();
    manager?.notify({ STOPPING: '1', STATUS: 'stopping' });
    keyboard?.close();
    return running.close(withinMs);
  });
}

/** Waits for a valid configuration. Nobody reads the exit message on a device, so the box shows the problem. */
async function waitedFor(
  { config, setupReport }: AgentOptions,
  deps: AgentWorld,
  manager: ServiceManager | undefined,
  stop: StopSignal,
): Promise<AgentConfig> {
  const { configured } = await import('./agent-waiting.ts');
  const stopped = new AbortController();
  void stop.received.then(() => stopped.abort());
  const options = { config, setupReport, cacheDir: cacheFolder(), root: '/' };
  const found = await configured(options, deps, manager, stopped.signal);
  if (found !== undefined) return found;
  return untilStopped(stop, deps.log, async () => manager?.notify({ STOPPING: '1', STATUS: 'stopping' }));
}

/** Returns the folder that systemd has made, or a folder of the user. */
function cacheFolder(): string {
  const { CACHE_DIRECTORY, XDG_CACHE_HOME, HOME } = process.env;
  return CACHE_DIRECTORY || join(XDG_CACHE_HOME || join(HOME || userInfo().homedir, '.cache'), 'paybox');
}
